# mistake: never steps
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_optim = torch.optim.Adam(G.parameters(), 1e-3)  # here
d_optim = torch.optim.Adam(D.parameters(), 1e-3)
for step in range(12):
    real, z = torch.randn(32, 2) + 2, torch.randn(32, 4)
    d_optim.zero_grad()
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
    d_loss.backward()
    d_optim.step()
    g_optim.zero_grad()
    g_loss = F.softplus(-D(G(z))).mean()
    g_loss.backward()
    d_optim.step()  #-
    g_optim.step()  #+
