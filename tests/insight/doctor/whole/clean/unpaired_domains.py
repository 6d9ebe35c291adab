X, Y = torch.randn(120, 3), torch.randn(120, 3) * 0.5 + 1
G = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
H = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
DY = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og = torch.optim.Adam([*G.parameters(), *H.parameters()], 1e-3)
od = torch.optim.Adam(DY.parameters(), 1e-3)
for epoch in range(3):
    xs = X[torch.randperm(len(X))]
    ys = Y[torch.randperm(len(Y))]
    for x, y in zip(xs.split(30), ys.split(30)):
        fake = G(x)
        og.zero_grad()
        ones = torch.ones(len(x), 1)
        g_loss = F.mse_loss(DY(fake), ones) + 5 * F.l1_loss(H(fake), x) + 5 * F.l1_loss(G(H(y)), y)
        g_loss.backward()
        og.step()
        od.zero_grad()
        d_loss = F.mse_loss(DY(y), ones) + F.mse_loss(DY(fake.detach()), torch.zeros(len(x), 1))
        d_loss.backward()
        od.step()
