"""Distributions: a variational autoencoder, a mixture, constraints, divergences."""

from __future__ import annotations

from dataclasses import dataclass

import clew
import clew.nn.functional as F
from clew import Tensor, nn
from clew.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Independent,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
    constraints,
    kl_divergence,
    transforms,
)


@dataclass
class Parts:
    reconstruction: Tensor
    divergence: Tensor

    @property
    def loss(self) -> Tensor:
        return self.reconstruction + self.divergence


class Encoder(nn.Module):
    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.body = nn.Linear(size, 32)
        self.mean = nn.Linear(32, hidden)
        self.scale = nn.Linear(32, hidden)

    def forward(self, x: Tensor) -> Independent[Normal]:
        h = F.silu(self.body(x))
        return Independent(Normal(self.mean(h), F.softplus(self.scale(h)) + 1e-3), 1)


class Autoencoder(nn.Module):
    def __init__(self, size: int = 8, hidden: int = 2) -> None:
        super().__init__()
        self.encoder = Encoder(size, hidden)
        self.decoder = nn.Sequential(nn.Linear(hidden, 32), nn.SiLU(), nn.Linear(32, size))
        self.hidden = hidden

    def forward(self, x: Tensor) -> Parts:
        posterior: Independent[Normal] = self.encoder(x)
        z = posterior.rsample()
        likelihood = Bernoulli(logits=self.decoder(z))
        prior = Independent(Normal(clew.zeros(self.hidden), clew.ones(self.hidden)), 1)
        return Parts(
            -likelihood.log_prob(x).sum(dim=-1).mean(), kl_divergence(posterior, prior).mean()
        )


def mixture(k: int) -> MixtureSameFamily:
    parts = Independent(Normal(clew.randn(k, 2), clew.ones(k, 2)), 1)
    return MixtureSameFamily(Categorical(logits=clew.zeros(k)), parts)


def describe(d: Distribution) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(d.batch_shape), tuple(d.event_shape)


def main() -> None:
    clew.manual_seed(0)
    model = Autoencoder()
    optimizer = clew.optim.Adam(model.parameters(), lr=1e-2)
    data = (clew.rand(32, 8) > 0.5).float()
    losses: list[float] = []
    for _ in range(10):
        parts: Parts = model(data)
        optimizer.zero_grad()
        parts.loss.backward()
        optimizer.step()
        losses.append(parts.loss.item())
    print(losses[-1] < losses[0])
    mixed = mixture(3)
    samples = mixed.sample((5,))
    density = mixed.log_prob(samples).exp()
    print(density.shape, describe(mixed))
    flow = TransformedDistribution(
        Normal(clew.zeros(2), clew.ones(2)),
        [transforms.AffineTransform(1.0, 2.0), transforms.ExpTransform()],
    )
    x = flow.rsample(clew.Size([4]))
    print(flow.log_prob(x).sum().item(), constraints.positive.check(x).all().item())
    normal = MultivariateNormal(clew.zeros(2), covariance_matrix=clew.eye(2))
    print(normal.entropy().item(), normal.mean.tolist(), normal.variance.max().item())


if __name__ == "__main__":
    main()
