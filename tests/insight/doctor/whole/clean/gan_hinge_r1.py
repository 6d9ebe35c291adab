G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
og = torch.optim.Adam(G.parameters(), 2e-4, betas=(0, 0.99))
od = torch.optim.Adam(D.parameters(), 2e-4, betas=(0, 0.99))
avg = copy.deepcopy(G)
for step in range(12):
    real = (torch.randn(32, 2) * 0.2 + 1).requires_grad_(True)
    out = D(real)
    fake = G(torch.randn(32, 4))
    d_loss = F.relu(1 - out).mean() + F.relu(1 + D(fake.detach())).mean()
    if step % 4 == 0:
        (g,) = torch.autograd.grad(out.sum(), real, create_graph=True)
        d_loss = d_loss + 5 * g.pow(2).sum(1).mean()
    od.zero_grad(set_to_none=True)
    d_loss.backward()
    od.step()
    g_loss = -D(G(torch.randn(32, 4))).mean()
    og.zero_grad(set_to_none=True)
    g_loss.backward()
    og.step()
    with torch.no_grad():
        for a, p in zip(avg.parameters(), G.parameters()):
            a.copy_(p.lerp(a, 0.99))
