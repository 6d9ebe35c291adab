net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(14):
    x = torch.randn(32, 5)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1] + 0.1 * average(x)).backward()
    opt.step()
    decay = min(0.999, (1 + i) / (10 + i))
    with torch.no_grad():
        for a, p in zip(average.parameters(), net.parameters()):
            a.lerp_(p, 1 - decay)
