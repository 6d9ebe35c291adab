g = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
d = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.RMSprop(g.parameters(), lr=5e-4)
opt_d = torch.optim.RMSprop(d.parameters(), lr=5e-4)
data = torch.randn(128, 6)
for step in range(15):
    real = data[torch.randint(0, 128, (32,))]
    fake = g(torch.randn(32, 4))
    opt_d.zero_grad()
    (d(fake.detach()).mean() - d(real).mean()).backward()
    opt_d.step()
    with torch.no_grad():
        for p in d.parameters():
            p.clamp_(-0.05, 0.05)
    if step % 3 == 0:
        opt_g.zero_grad()
        (-d(fake).mean()).backward()
        opt_g.step()
