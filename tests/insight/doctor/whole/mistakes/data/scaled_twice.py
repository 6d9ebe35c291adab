# mistake: not normalised
class Images(Dataset):
    def __init__(self):
        self.data = torch.randint(0, 256, (128, 1, 8, 8), dtype=torch.uint8)
        self.y = torch.randint(0, 4, (128,))
        self.x = self.data.float() / 255

    def __len__(self):
        return 128

    def __getitem__(self, i):
        return self.x[i], self.y[i]

net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(Images(), batch_size=16, shuffle=True):
        x = x / 255.0  #-
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)  # here
        loss.backward()
        opt.step()
