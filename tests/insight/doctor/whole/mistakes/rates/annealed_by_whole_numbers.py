# mistake: integer division
class VAE(nn.Module):
    def __init__(self, d=20, z=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar

vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
WARMUP = 20
for step in range(18):
    x = torch.randn(32, 20)
    recon, mu, logvar = vae(x)
    beta = min(1, step // WARMUP)  #- here
    beta = min(1.0, step / WARMUP)  #+
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1).mean()
    loss = (recon - x).pow(2).sum(1).mean() + beta * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
