class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.net(x)

class Triplets(Dataset):
    def __init__(self):
        self.labels = torch.arange(90) % 3
        self.x = torch.randn(90, 8) + self.labels[:, None]

    def __len__(self):
        return 90

    def __getitem__(self, i):
        same = (self.labels == self.labels[i]).nonzero().flatten()
        other = (self.labels != self.labels[i]).nonzero().flatten()
        pick = same[torch.randint(len(same), (1,))], other[torch.randint(len(other), (1,))]
        return self.x[i], self.x[pick[0]][0], self.x[pick[1]][0]

model, criterion = Embed(), nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for a, p, n in DataLoader(Triplets(), batch_size=30, shuffle=True):
        loss = criterion(model(a), model(p), model(n))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
