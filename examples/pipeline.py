"""A network in stages, one on each process; a batch goes through them in small parts.

Every stage runs the part that comes in forward and then one that comes back backward, in turn, so
that it keeps few parts' graphs at a time (one forward, one backward: Narayanan et al., PipeDream,
2019). With S stages and M parts, (S - 1) / (M + S - 1) of the time a stage has nothing to do.

    clew launch -n 2 examples/pipeline.py

M parts of a batch, B samples of a part, C channels.
"""

from __future__ import annotations

import argparse
import json
import time

import clew
import clew.distributed as dist
import clew.nn.functional as F
from clew import Tensor, nn, optim

LAYERS, C = 8, 48


def stage(rank: int, count: int) -> nn.Sequential:
    """This process's part of the network; all of it has the same first weights everywhere."""
    clew.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(2, C)]
    for _ in range(LAYERS):
        layers.append(nn.Sequential(nn.Tanh(), nn.Linear(C, C), nn.LayerNorm(C)))
    layers.append(nn.Linear(C, 2))
    begin, end = (len(layers) * r // count for r in (rank, rank + 1))
    return nn.Sequential(*layers[begin:end])


def points(step: int, M: int, B: int) -> tuple[Tensor, Tensor]:
    """Points (M, B, 2) of a checkerboard, and the colours (M, B) of their squares."""
    x = clew.rand(M, B, 2, generator=clew.Generator().manual_seed(step)) * 4 - 2
    return x, ((x[..., 0].floor() + x[..., 1].floor()) % 2).long()


class Pipeline:
    """One stage, and the messages to its neighbours.

    A stage gets activations (B, *size) from the one before and gives it their gradients.
    """

    def __init__(self, model: nn.Module, *size: int) -> None:
        self.model, self.size = model, size
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        self.first, self.last = self.rank == 0, self.rank == self.count - 1
        self.sent: list[tuple[object, Tensor]] = []  # messages on their way, and what they carry

    def _send(self, value: Tensor, to: int) -> None:
        value = value.detach().contiguous()
        self.sent.append((dist.isend(value, to), value))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Runs a part; returns what came in and what went out, of the last stage the loss."""
        if not self.first:
            x = clew.empty(len(x), *self.size)
            dist.recv(x, self.rank - 1)
            x.requires_grad_()
        out = self.model(x)
        if self.last:
            return x, F.cross_entropy(out.flatten(0, -2), y.flatten())
        self._send(out, self.rank + 1)
        return x, out

    def backward(self, x: Tensor, out: Tensor, parts: int) -> None:
        """Follows a part back, and hands on the gradient of what came in."""
        if self.last:
            (out / parts).backward()
        else:
            grad = clew.empty_like(out)
            dist.recv(grad, self.rank + 1)
            out.backward(grad)
        if not self.first:
            assert x.grad is not None
            self._send(x.grad, self.rank - 1)

    def step(self, x: Tensor, y: Tensor) -> float:
        """All parts forward and backward; returns the mean loss, which the last stage knows."""
        M = len(x)
        ahead = min(self.count - self.rank - 1, M)  # parts that are forward before one is back
        under_way: list[tuple[Tensor, Tensor]] = []
        total = 0.0
        for part in range(M + ahead):
            if part < M:
                under_way.append(self.forward(x[part], y[part]))
            if part >= ahead:
                came, out = under_way.pop(0)
                self.backward(came, out, M)
                total += out.item() / M if self.last else 0.0
        for work, _ in self.sent:
            work.wait()  # type: ignore[attr-defined]
        self.sent.clear()
        return total


def train(steps: int, M: int = 8, B: int = 32) -> list[float]:
    """Losses, on every process."""
    pipeline = Pipeline(stage(dist.get_rank(), dist.get_world_size()), C)
    optimizer = optim.Adam(pipeline.model.parameters(), lr=3e-3)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = clew.tensor(pipeline.step(*points(step, M, B)))
        optimizer.step()
        dist.broadcast(loss, pipeline.count - 1)
        losses.append(loss.item())
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
        print(f"{dist.get_world_size()} stages, {each:.0f} ms a step: ", end="")
        print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
