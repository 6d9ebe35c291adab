net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    with torch.random.fork_rng():
        torch.manual_seed(7)
        probe = torch.randn(4, 6)
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
    with torch.no_grad():
        net.eval()(probe)
        net.train()
