class Pairs:
    def __init__(self):
        self.x = torch.randn(96, 4)
        self.y = torch.randn(96, 4) * 0.5 + 1

    def batches(self, size):
        self.x = self.x[torch.randperm(len(self.x))]
        for i in range(0, len(self.x), size):
            yield self.x[i : i + size], self.y[i : i + size]

there, back = nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.Adam([*there.parameters(), *back.parameters()], lr=2e-3)
pairs = Pairs()
for epoch in range(3):
    for x, y in pairs.batches(24):
        cycle = F.l1_loss(back(there(x)), x) + F.l1_loss(there(back(y)), y)
        level = (there(x).mean(0) - y.mean(0)).square().sum()
        opt.zero_grad()
        (cycle + level).backward()
        opt.step()
