enc, dec = nn.Linear(10, 8), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for i in range(8):
    x = torch.randn(32, 10)
    mu, log = enc(x).chunk(2, dim=1)
    z = mu + torch.randn_like(mu) * log.exp()
    kl = -0.5 * (1 + 2 * log - mu.square() - (2 * log).exp()).sum(1).mean()
    loss = F.mse_loss(dec(z), x) + 0.1 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
