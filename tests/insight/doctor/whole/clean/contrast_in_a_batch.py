class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.g = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return F.normalize(self.g(self.f(x)), dim=1)

def nt_xent(z, temperature=0.5):
    n = len(z) // 2
    similarity = z @ z.T / temperature
    similarity = similarity.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, targets)

model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
x = torch.randn(128, 10)
for epoch in range(2):
    for (batch,) in DataLoader(TensorDataset(x), batch_size=32, shuffle=True, drop_last=True):
        views = torch.cat([batch + 0.2 * torch.randn_like(batch) for _ in range(2)])
        loss = nt_xent(model(views))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
