# mistake: compared with itself
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), 1e-3)
partner = torch.cat([torch.arange(16, 32), torch.arange(16)])
for i in range(8):
    x = torch.randn(16, 8)
    views = [x + 0.1 * torch.randn(16, 8) for _ in range(2)]
    z = F.normalize(net(torch.cat(views)), dim=1)
    sim = z @ z.t() / 0.5
    sim.fill_diagonal_(float("-inf"))  #+
    loss = F.cross_entropy(sim, partner)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
