"""A variational autoencoder of points on a ring, with torch.distributions."""

import math

import torch
import torch.nn as nn
from torch.distributions import Independent, Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, hidden=64, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, 2))
        self.register_buffer("zeros", torch.zeros(latent))

    def loss(self, x):
        mean, log_std = self.encoder(x).chunk(2, dim=-1)
        posterior = Independent(Normal(mean, log_std.exp()), 1)
        prior = Independent(Normal(self.zeros, torch.ones_like(self.zeros)), 1)
        z = posterior.rsample()
        likelihood = Independent(Normal(self.decoder(z), 0.1), 1)
        return (kl_divergence(posterior, prior) - likelihood.log_prob(x)).mean()

    @torch.no_grad()
    def sample(self, n):
        return self.decoder(torch.randn(n, self.zeros.numel()))


def main():
    torch.manual_seed(0)
    angle = torch.rand(512) * 2 * math.pi
    x = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(512, 2)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    first = model.loss(x).item()
    for _ in range(500):
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        optimizer.step()
    radius = model.sample(1000).norm(dim=1)
    print(f"loss {first:.2f} -> {loss.item():.2f}; radius of samples {radius.mean():.2f}")
    assert loss.item() < 4.0
    assert 0.7 < radius.mean() < 1.2


if __name__ == "__main__":
    main()
