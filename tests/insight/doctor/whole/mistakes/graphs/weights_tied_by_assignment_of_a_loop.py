# mistake: share their weights
class Experts(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        expert = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        for i in range(count):
            expert = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))  #+
            setattr(self, f"expert{i}", expert)  # here
        self.count, self.gate = count, nn.Linear(width, count)

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        outs = torch.stack([getattr(self, f"expert{i}")(x) for i in range(self.count)], -1)
        return (outs * weights[:, None]).sum(-1)

model = nn.Sequential(Experts(3, 6), nn.Linear(6, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(24, 6)
    optimizer.zero_grad()
    F.cross_entropy(model(x), (x[:, 0] > x[:, 1]).long()).backward()
    optimizer.step()
