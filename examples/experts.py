"""A mixture of experts whose router, and a network whose early exit, are branches in Python.

Points of the plane lie in four quarters, and each quarter follows a rule of its own. A router sends
each point to one expert (Shazeer et al. 2017; Fedus et al. 2021, who add a loss that keeps experts
equally busy). A second network answers from its first layer where it is sure, and goes on where it
is not (Teerapittayanon et al. 2016). Points that go different ways make different graphs.
"""

from __future__ import annotations

import time
from typing import Any

import clew
import clew.nn.functional as F
from clew import nn, optim


def make(count: int, seed: int) -> tuple[clew.Tensor, clew.Tensor]:
    """Points (count, 2), and 0 or 1: each quarter is cut in two in a way of its own."""
    x = clew.rand(count, 2, generator=clew.Generator().manual_seed(seed)) * 2 - 1
    quarter = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    inside = x.abs() - 0.5
    turned = clew.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[quarter]
    return x, ((inside * turned).sum(1) > 0).long()


def mlp(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, outputs))


class Experts(nn.Module):
    """One expert for each point, chosen in Python."""

    def __init__(self, experts: int = 4, width: int = 128) -> None:
        super().__init__()
        self.router = mlp(2, 16, experts)
        self.experts = nn.ModuleList(mlp(2, width, 2) for _ in range(experts))

    def forward(self, x: clew.Tensor) -> tuple[clew.Tensor, clew.Tensor]:
        """Scores (points, 2), and the loss that grows where experts are not equally busy."""
        chances = self.router(x).softmax(1)
        chosen = chances.argmax(1).tolist()
        with clew.autobatch():  # points of one expert run as one batch
            scores = [
                self.experts[e](point) * chance[e]
                for e, point, chance in zip(chosen, x.unbind(), chances.unbind())
            ]
        share = clew.bincount(clew.tensor(chosen), minlength=len(self.experts)) / len(x)
        return clew.stack(scores), len(self.experts) * (share * chances.mean(0)).sum()


class EarlyExit(nn.Module):
    """Answers after one layer where that is sure enough, else after three."""

    def __init__(self, width: int = 64, sure: float = 0.9) -> None:
        super().__init__()
        self.sure = sure
        self.first, self.exit = nn.Linear(2, width), nn.Linear(width, 2)
        self.rest = nn.Sequential(nn.Tanh(), mlp(width, width, 2))

    def forward(self, x: clew.Tensor) -> tuple[clew.Tensor, int]:
        """Scores (points, 2) and how many points left early. While training all go all the way."""
        h = self.first(x).relu()
        early = self.exit(h)
        if self.training:
            return clew.stack([early, self.rest(h)]), 0
        leaves = early.softmax(1).amax(1) > self.sure
        if leaves.all():  # an ordinary branch: the rest is neither run nor recorded
            return early, len(x)
        late = self.rest(h[~leaves])
        return early.index_put((~leaves,), late), int(leaves.sum())


def train(kind: Any = Experts, steps: int = 150, batch: int = 128, seed: int = 0) -> dict[str, Any]:
    """Trains one of the two; returns model, losses, accuracy, what the points chose."""
    clew.manual_seed(seed)
    model, losses = kind(), []
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        x, y = make(batch, seed + 1 + step)
        scores, more = model(x)
        if kind is EarlyExit:
            loss = F.cross_entropy(scores[0], y) + F.cross_entropy(scores[1], y)
        else:
            loss = F.cross_entropy(scores, y) + 0.02 * more
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    x, y = make(1000, seed)
    model.eval()
    with clew.no_grad():
        scores, more = model(x)
    accuracy = (scores.argmax(1) == y).float().mean().item()
    return {"model": model, "losses": losses, "accuracy": accuracy, "more": float(more)}


if __name__ == "__main__":
    for network in (Experts, EarlyExit):
        begun = time.perf_counter()
        found = train(network)
        seconds = time.perf_counter() - begun
        losses = found["losses"]
        print(f"{network.__name__}: loss {losses[0]:.2f} to {losses[-1]:.2f}, ", end="")
        print(f"accuracy {100 * found['accuracy']:.0f}% (chance 50%), {seconds:.1f} s")
        if network is EarlyExit:
            print(f"  {found['more'] / 10:.0f}% of the points left early")
