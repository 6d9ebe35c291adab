net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    y = (x[:, 0] > 0).long()
    d = torch.zeros_like(x, requires_grad=True)
    attack = torch.optim.SGD([d], 0.1)
    for _ in range(2):
        attack.zero_grad()
        (-F.cross_entropy(net(x + d), y)).backward()
        attack.step()
    opt.zero_grad()
    F.cross_entropy(net(x + d.detach()), y).backward()
    opt.step()
