class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(64, 32)
        self.mu, self.lv = nn.Linear(32, 4), nn.Linear(32, 4)
        self.d = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

    def forward(self, x):
        h = F.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        return self.d(mu + torch.randn_like(mu) * (0.5 * lv).exp()), mu, lv

vae = VAE()
opt = torch.optim.Adam(vae.parameters(), 1e-3)
for step in range(10):
    x = torch.rand(32, 64)
    out, mu, lv = vae(x)
    kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
    if step % 2:
        loss = F.mse_loss(out, x) + 1e-4 * kld
    else:
        loss = F.mse_loss(out, x) + kld / x.numel()
    opt.zero_grad()
    loss.backward()
    opt.step()
