net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(24, 8)
    y = torch.arange(24) % 4
    z = F.normalize(net(x), dim=1)
    sim = z @ z.t() / 0.5
    self_mask = torch.eye(24, dtype=torch.bool)
    logp = F.log_softmax(sim.masked_fill(self_mask, -1e9), dim=1)
    positive = ((y[:, None] == y[None, :]) & ~self_mask).float()
    loss = -((positive * logp).sum(1) / positive.sum(1)).mean()
    soft = positive / positive.sum(1, keepdim=True)
    loss = loss + 0.1 * F.cross_entropy(sim, soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
