"""Hogwild: several processes train one network at once, without locks.

The parameters lie in shared memory. Each process computes gradients of its own on batches of its
own and steps into the same parameters; now and then two writes collide, which costs little.
Recht, Re, Wright and Niu (2011).

    python examples/hogwild.py --processes 2
"""

from __future__ import annotations

import argparse
import math

import clew
import clew.multiprocessing as mp
import clew.nn.functional as F
from clew import Tensor, nn, optim


def spirals(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Points of two spirals that wind around each other, and which of them each belongs to."""
    generator = clew.Generator().manual_seed(seed)
    side = clew.randint(2, (n,), generator=generator).float()
    turn = clew.rand(n, generator=generator).sqrt() * 3 * math.pi
    radius = turn / (3 * math.pi)
    angle = turn + math.pi * side
    points = clew.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.01 * clew.randn(n, 2, generator=generator), side


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )


def train(rank: int, model: nn.Module, steps: Tensor, count: int) -> None:
    """What each process does; `steps` counts, in shared memory, what each has done."""
    clew.set_num_threads(1)
    clew.manual_seed(rank)
    points, side = spirals(4000, seed=100 + rank)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(count):
        batch = clew.randint(len(points), (128,))
        optimizer.zero_grad()
        scores = model(points[batch]).squeeze(1)
        F.binary_cross_entropy_with_logits(scores, side[batch]).backward()
        optimizer.step()
        steps[rank] += 1


def accuracy(model: nn.Module) -> float:
    points, side = spirals(2000, seed=7)
    with clew.no_grad():
        return ((model(points).squeeze(1) > 0) == side.bool()).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600, help="of each process")
    args = parser.parse_args()

    clew.manual_seed(0)
    model = network().share_memory()
    steps = clew.zeros(args.processes, dtype=clew.int64).share_memory_()
    before = accuracy(model)
    mp.spawn(train, (model, steps, args.steps), nprocs=args.processes)
    print(f"steps of each process: {steps.tolist()}")
    print(f"accuracy before: {before:.3f}, after: {accuracy(model):.3f}")


if __name__ == "__main__":
    main()
