one, two = nn.Linear(12, 8), nn.Linear(9, 8)
opt = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=1e-3)
mixing = torch.randn(12, 9)
for i in range(8):
    x = torch.randn(16, 12)
    u, v = F.normalize(one(x), dim=1), F.normalize(two(x @ mixing), dim=1)
    sim, own = u @ v.t() / 0.1, torch.arange(16)
    loss = (F.cross_entropy(sim, own) + F.cross_entropy(sim.t(), own)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
