from clew.nn.utils import spectral_norm

G = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
one, two = spectral_norm(nn.Linear(2, 24)), spectral_norm(nn.Linear(24, 1))
D = nn.Sequential(one, nn.LeakyReLU(0.1), two)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=4e-4, betas=(0.0, 0.9))
real_data = torch.randn(200, 2) * 0.5
for step in range(8):
    real = real_data[torch.randint(0, 200, (40,))]
    fake = G(torch.randn(40, 6))
    d_loss = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake.detach())).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    for p in D.parameters():
        p.requires_grad_(False)
    g_loss = -D(G(torch.randn(40, 6))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    for p in D.parameters():
        p.requires_grad_(True)
