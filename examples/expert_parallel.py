"""A mixture of experts, some on each process; every token travels to its expert and back.

A router sends each token to one expert (Fedus et al., Switch Transformers, 2021). Which process has
how many tokens for which other is known only once the router has spoken: the processes first tell
each other the numbers, then exchange the tokens. No token is dropped, no place is kept empty.

    clew launch -n 2 examples/expert_parallel.py

N tokens of this process, C channels, E experts.
"""

from __future__ import annotations

import argparse
import json
import time

import clew
import clew.distributed as dist
import clew.nn.functional as F
from clew import Tensor, nn, optim
from clew.distributed.nn.functional import all_to_all_single

E, C = 4, 32


def expert() -> nn.Sequential:
    return nn.Sequential(nn.Linear(C, 4 * C), nn.Tanh(), nn.Linear(4 * C, C))


class Experts(nn.Module):
    """E experts over all processes; the router is the same on each."""

    def __init__(self) -> None:
        super().__init__()
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        if E % self.count:
            raise ValueError(f"{E} experts cannot be spread over {self.count} processes")
        self.router = nn.Linear(C, E)
        everybody = [expert() for _ in range(E)]  # drawn alike everywhere, kept in part
        own = E // self.count
        self.experts = nn.ModuleList(everybody[self.rank * own : (self.rank + 1) * own])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (N, C) to (N, C), and a loss that grows where experts are not equally busy."""
        chances = self.router(x).softmax(1)
        chance, chosen = chances.max(1)
        order = chosen.argsort(stable=True)  # by expert, and so by process
        counts = clew.bincount(chosen, minlength=E)

        # How many tokens come from each process for each expert here.
        coming = clew.empty_like(counts)
        dist.all_to_all_single(coming, counts)
        table = coming.view(self.count, -1).tolist()
        sends = counts.view(self.count, -1).sum(1).tolist()
        gets = [sum(row) for row in table]

        arrived = x.new_empty(sum(gets), C)
        arrived = all_to_all_single(arrived, x[order], gets, sends)
        pieces = arrived.split([n for row in table for n in row])
        done: list[Tensor] = [clew.empty(0, C)] * len(pieces)
        own = len(self.experts)
        for e, module in enumerate(self.experts):  # an expert runs all of its tokens at once
            mine = pieces[e::own]
            done[e::own] = module(clew.cat(mine)).split([len(piece) for piece in mine])
        back = all_to_all_single(x.new_empty(len(x), C), clew.cat(done), sends, gets)

        y = clew.empty_like(x).index_copy(0, order, back)
        everywhere = counts.clone()
        dist.all_reduce(everywhere)
        share = everywhere / everywhere.sum()
        return y * chance.unsqueeze(1), E * (share * chances.mean(0)).sum()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(2, C), Experts(), nn.Linear(C, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.first(x).tanh()
        mixed, busy = self.middle(h)
        return self.last(h + mixed), busy


def points(step: int, N: int) -> tuple[Tensor, Tensor]:
    """Points (N, 2) of four quarters, each cut in two in a way of its own, and the sides (N,)."""
    x = clew.rand(N, 2, generator=clew.Generator().manual_seed(step)) * 2 - 1
    quarter = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    turned = clew.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[quarter]
    return x, (((x.abs() - 0.5) * turned).sum(1) > 0).long()


def average_gradients(model: Model) -> None:
    """Of what every process has: the mean. An expert's gradients came from all with its tokens."""
    experts = set(model.middle.experts.parameters())
    for p in model.parameters():
        if p.grad is None:
            p.grad = clew.zeros_like(p)
        if p not in experts:
            dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def train(steps: int, batch: int = 256) -> list[float]:
    """Losses over the points of all processes."""
    clew.manual_seed(0)
    model = Model()
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    rank, count = dist.get_rank(), dist.get_world_size()
    losses = []
    for step in range(steps):
        x, y = (whole.chunk(count)[rank] for whole in points(step, batch))
        scores, busy = model(x)
        loss = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        (loss + 0.02 * busy).backward()
        average_gradients(model)
        optimizer.step()
        total = loss.detach() / count
        dist.all_reduce(total)
        losses.append(total.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print the losses alone")
    options = parser.parse_args()
    dist.init_process_group()
    begun = time.perf_counter()
    losses = train(options.steps)
    if dist.get_rank() == 0 and options.json:
        print(json.dumps(losses))
    elif dist.get_rank() == 0:
        each = 1e3 * (time.perf_counter() - begun) / options.steps
        print(f"{dist.get_world_size()} processes, {each:.0f} ms a step: ", end="")
        print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
