net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i in range(6):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).long()
    d = torch.zeros_like(x, requires_grad=True)
    for _ in range(3):
        F.cross_entropy(net(x + d), y).backward()
        d.data = (d + 0.02 * d.grad.sign()).clamp(-0.1, 0.1)
        d.grad.zero_()
    opt.zero_grad()
    F.cross_entropy(net(x + d.detach()), y).backward()
    opt.step()
