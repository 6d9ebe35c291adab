"""What each rank of the distributed suite runs, under clew's launcher or PyTorch's.

`python -m clew launch -n 2 bench/on_ranks.py CASE`; the first rank prints JSON last.

B batch, T length, C channels.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch as t
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from bench.suites import models

F = nn.functional


def milliseconds(calls: list[Callable[[], object]], seconds: float = 2.0) -> list[float]:
    """Median wall time of each of the calls, which take turns; all ranks make as many."""
    for call in calls:
        for _ in range(3):
            call()
    start = time.perf_counter()
    for call in calls:
        call()
    rounds = t.tensor([min(2000, max(5, int(seconds / (time.perf_counter() - start))))])
    dist.broadcast(rounds, 0)
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(int(rounds)):
        for call, took in zip(calls, found):
            dist.barrier()  # or a call would pay for what the ranks differed in before
            start = time.perf_counter()
            call()
            took.append(time.perf_counter() - start)
    return [statistics.median(took) * 1e3 for took in found]


def all_reduce() -> dict[str, float]:
    """Of one float, of a hundred thousand, of ten million."""
    made: dict[str, float] = {}
    for name, count in (("1", 1), ("100k", 100_000), ("10M", 10_000_000)):
        x = t.zeros(count)
        (made[f"all_reduce of {name} floats"],) = milliseconds([lambda x=x: dist.all_reduce(x)])
    return made


def tiny_mlp(B: int) -> tuple[Any, Any, Any]:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return model, t.randn(B, 8), t.randint(0, 4, (B,))


def mlp(B: int) -> tuple[Any, Any, Any]:
    widths = [784, 512, 512, 10]
    layers: list[Any] = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), t.randn(B, 784), t.randint(0, 10, (B,))


def char_gpt(B: int) -> tuple[Any, Any, Any]:
    ids = t.randint(0, 96, (B, 128))
    return models.gpt(t, layers=4, width=128, heads=4), ids, ids.view(-1)


def resnet20(B: int) -> tuple[Any, Any, Any]:
    return models.resnet20(t), t.randn(B, 3, 32, 32), t.randint(0, 10, (B,))


MODELS: dict[str, tuple[Callable[[int], tuple[Any, Any, Any]], int]] = {
    "tiny MLP": (tiny_mlp, 4),
    "MLP": (mlp, 64),
    "char-GPT": (char_gpt, 4),
    "ResNet-20": (resnet20, 16),
}


def step_of(model: Any, x: Any, y: Any) -> Callable[[], None]:
    optimizer = t.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        scores = model(x)
        F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y).backward()
        optimizer.step()

    return step


def data_parallel(name: str) -> dict[str, float]:
    """A step of all ranks, the same without exchange, and the exchange alone."""
    make, batch = MODELS[name]
    if dist.get_world_size() == 1:  # what the ranks have together, by one of them
        (took,) = milliseconds([step_of(*make(2 * batch))])
        return {f"{name}, half of one process's step of both batches": took / 2}
    model, x, y = make(batch)
    ddp = DistributedDataParallel(model)
    step = step_of(ddp, x, y)
    grads = t.zeros(sum(p.numel() for p in model.parameters()))

    def alone() -> None:
        with ddp.no_sync():
            step()

    both, without, exchange = milliseconds([step, alone, lambda: dist.all_reduce(grads)])
    return {
        f"{name}, DDP": both,
        f"{name}, exchange that a step waits for": max(both - without, 0.0),
        f"{name}, exchange alone": exchange,
    }


class Attention(nn.Module):
    """Heads of which a rank has its own."""

    def __init__(self, C: int, size: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(C, C) for _ in range(4))
        self.size = size

    def forward(self, x: Any) -> Any:
        B, T = x.shape[:2]
        q, k, v = (m(x).view(B, T, -1, self.size).transpose(1, 2) for m in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, -1))


class Block(nn.Module):
    def __init__(self, C: int, size: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attention = Attention(C, size)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, layers: int, C: int, size: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(96, C), nn.Embedding(128, C)
        self.blocks = nn.ModuleList([Block(C, size) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, 96, bias=False)

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.places(t.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def tensor_parallel() -> dict[str, float]:
    """GPT 6x384, each block's products cut in two."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = GPT(6, 384, 64)
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"} | {
        "attention.out": RowwiseParallel(),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    ids = t.randint(0, 96, (4, 128))
    (took,) = milliseconds([step_of(model, ids, ids.view(-1))], seconds=4.0)
    return {"GPT, 6 layers of 384, batch 4, tensor parallel": took}


def main() -> None:
    case = sys.argv[1]
    t.set_num_threads(1)
    t.manual_seed(0)
    dist.init_process_group("gloo")
    made = {"all_reduce": all_reduce, "tensor parallel": tensor_parallel}.get(case)
    values = made() if made else data_parallel(case)
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps(values), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
