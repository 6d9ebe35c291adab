class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.cls = nn.Conv2d(8, 3, 3, padding=1)
        nn.init.normal_(self.cls.weight, std=0.01)
        nn.init.constant_(self.cls.bias, -math.log((1 - 0.003) / 0.003))

    def forward(self, x):
        return torch.sigmoid(self.cls(self.f(x)))

net = Detector()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(10):
    x = torch.randn(8, 1, 12, 12)
    y = (torch.rand(8, 3, 12, 12) < 0.01).float()
    p = net(x)
    pt = torch.where(y == 1, p, 1 - p)
    loss = (-0.25 * (1 - pt) ** 2 * pt.clamp(min=1e-6).log()).sum() / y.sum().clamp(min=1)
    opt.zero_grad()
    loss.backward()
    opt.step()
