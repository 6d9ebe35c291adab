enc, dec = nn.Linear(4, 8), nn.Linear(4, 4)
opt = clew.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
for step in range(8):
    mean, log_var = enc(x).chunk(2, 1)
    z = mean + (0.5 * log_var).exp() * clew.randn_like(mean)
    kl = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum(1).mean()
    loss = F.mse_loss(dec(z), x, reduction="sum") / len(x) + kl
    opt.zero_grad()
    loss.backward()
    opt.step()
