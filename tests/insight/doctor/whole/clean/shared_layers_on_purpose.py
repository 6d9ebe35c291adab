class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.tower = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.cls, self.box = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        levels = [x, F.avg_pool2d(x, 2), F.avg_pool2d(x, 4)]
        towers = [self.tower(level) for level in levels]
        scores = [self.cls(t).mean((2, 3)) for t in towers]
        return scores, [self.box(t).mean((2, 3)) for t in towers]

class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, a, b):
        left = self.f(a)
        right = self.f(b)
        for _ in range(3):
            left, right = torch.tanh(self.layer(left)), torch.tanh(self.layer(right))
        return (left - right).pow(2).sum(1)

net, twins = Pyramid(), Twins()
opt = torch.optim.Adam([*net.parameters(), *twins.parameters()], lr=1e-3)
for step in range(10):
    x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
    scores, boxes = net(x)
    loss = sum(F.cross_entropy(s, y) for s in scores)
    loss = loss + sum(F.smooth_l1_loss(b, x.mean((2, 3))[:, :1].expand(-1, 4)) for b in boxes)
    d = twins(torch.randn(8, 6), torch.randn(8, 6))
    same = torch.randint(0, 2, (8,)).float()
    loss = loss + (same * d + (1 - same) * F.relu(1 - d.clamp(min=1e-6).sqrt()) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
