enc, dec = nn.Linear(10, 8), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for i in range(8):
    x = torch.randn(32, 10)
    mu, log = enc(x).chunk(2, dim=1)
    std = log.exp()
    z = mu + torch.randn_like(mu) * std
    kl = 0.5 * (mu**2 + std**2 - 1 - 2 * log).sum(1).mean()
    loss = F.mse_loss(dec(z), x) + 0.1 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
