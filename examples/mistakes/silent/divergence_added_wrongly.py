import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 6), nn.Linear(3, 8)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for _step in range(4):
    x = torch.randn(32, 8)
    mu, logvar = encoder(x).chunk(2, dim=1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    kl = 0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    opt.zero_grad()
    (F.mse_loss(decoder(z), x) + kl).backward()
    opt.step()
