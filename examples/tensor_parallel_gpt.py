"""A small GPT of which each process has a part of every block, trained on Python's own source.

Attention's heads and the wide layer's columns are cut over the processes, and the layers after them
by rows, so that a block needs two sums over all (Shoeybi et al., Megatron-LM, 2019). Losses are
those of one process, whatever the number.

    clew launch -n 2 examples/tensor_parallel_gpt.py

B batch, T length, C channels.
"""

from __future__ import annotations

import argparse
import inspect
import json
import textwrap
import time

import clew
import clew.distributed as dist
import clew.nn.functional as F
from clew import Tensor, nn, optim
from clew.distributed.device_mesh import init_device_mesh
from clew.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


class Block(nn.Module):
    """Attention and a wide layer. It never asks how many heads there are here."""

    def __init__(self, C: int, head: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.q, self.k, self.v = (nn.Linear(C, C) for _ in range(3))
        self.o = nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (
            m(y).unflatten(-1, (-1, self.head)).transpose(1, 2) for m in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, symbols: int, T: int, C: int, layers: int, head: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(symbols, C), nn.Embedding(T, C)
        self.blocks = nn.ModuleList(Block(C, head) for _ in range(layers))
        self.norm, self.scores = nn.LayerNorm(C), nn.Linear(C, symbols)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(clew.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


# How a block is cut: by columns (outputs), then by rows (inputs).
PLAN = {
    "q": ColwiseParallel(),
    "k": ColwiseParallel(),
    "v": ColwiseParallel(),
    "o": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}


def train(steps: int, B: int = 8, T: int = 64, C: int = 64) -> list[float]:
    """Losses of a training on the source of this standard library's textwrap and argparse."""
    text = inspect.getsource(textwrap) + inspect.getsource(argparse)
    symbols = sorted(set(text))
    place = {s: i for i, s in enumerate(symbols)}
    ids = clew.tensor([place[s] for s in text])

    clew.manual_seed(0)  # the same everywhere: the parts are of one model
    model = GPT(len(symbols), T, C, layers=2, head=16)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        parallelize_module(block, mesh, PLAN)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        begins = clew.randint(len(ids) - T - 1, (B,)).tolist()
        x = clew.stack([ids[b : b + T] for b in begins])
        y = clew.stack([ids[b + 1 : b + T + 1] for b in begins])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
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
        print(f"{dist.get_world_size()} processes, {each:.0f} ms a step: ", end="")
        print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
