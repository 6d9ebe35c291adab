net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(4):
    x = torch.randn(32, 4)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1].sin()).backward()
    opt.step()
field = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
seen = []
for scale in (0.1, 1.0, 10.0):
    field.zero_grad()
    y = scale * torch.randn(16, 4)
    for part in range(3):
        y = y + 0.1 * field(y)
    y.pow(2).mean().backward()
    seen.append(field[0].weight.grad.norm().item())
