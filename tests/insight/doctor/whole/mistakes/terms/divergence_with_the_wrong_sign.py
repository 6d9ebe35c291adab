# mistake: divergence
class VAE(nn.Module):
    def __init__(self, d, z):
        super().__init__()
        self.enc = nn.Linear(d, 32)
        self.mu, self.logvar = nn.Linear(32, z), nn.Linear(32, z)
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar

def loss_of(x, out, mu, logvar):
    recon = F.mse_loss(out, x, reduction="sum")
    kl = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  #- here
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  #+
    return (recon + kl) / len(x)

data = torch.randn(128, 10)
vae = VAE(10, 3)
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
for epoch in range(4):
    for (x,) in DataLoader(TensorDataset(data), batch_size=32, shuffle=True):
        loss = loss_of(x, *vae(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
