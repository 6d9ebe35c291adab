"""Random programs on samples of different lengths: the same plainly and under autobatch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import clew
from clew import nn
from clew._program import autobatch

F = nn.functional
C = 4  # columns
Step = tuple[str, float, float, float]

# Of rows of any number of columns: the value, another one, and a choice below 1.
ANY: dict[str, Callable[[Any, Any, float], Any]] = {
    "elementwise": lambda v, u, c: v.sin() if c < 0.5 else v.sigmoid() * 2,
    "two": lambda v, u, c: v * u if v.shape == u.shape else v * v,
    "sum of rows": lambda v, u, c: v.sum(0, keepdim=c < 0.5),
    "mean of rows": lambda v, u, c: v.mean(0, keepdim=c < 0.5),
    "total": lambda v, u, c: v.sum() if c < 0.5 else v.mean(),
    "centred": lambda v, u, c: v - v.mean(0),
    "softmax": lambda v, u, c: v.softmax(-1),
    "layer norm": lambda v, u, c: F.layer_norm(v, v.shape[-1:]),
    "rms norm": lambda v, u, c: F.rms_norm(v, v.shape[-1:]),
    "pick": lambda v, u, c: (
        v[clew.arange(len(v)).flip(0)] if c < 0.5 else v[clew.tensor([0, len(v) - 1, 0])]
    ),
    "add to rows": lambda v, u, c: v.index_add(0, clew.arange(len(v)) // 2, v * 2),
    "slice": lambda v, u, c: v[1:] if c < 0.5 else v[:-1],
    "row": lambda v, u, c: v[0] if c < 0.5 else v[-1],
    "join": lambda v, u, c: clew.cat([v, v.sin()], -1 if c < 0.5 else 0),
    "stack": lambda v, u, c: clew.stack([v, v + 1], 1),
    "view": lambda v, u, c: v.reshape(len(v), -1) if c < 0.5 else v.reshape(-1),
    "unsqueeze": lambda v, u, c: v.unsqueeze(1) if c < 0.5 else v.unsqueeze(0),
    "where": lambda v, u, c: clew.where(v > 0, v, v.sum()),
    "scale": lambda v, u, c: v * u.mean(),
    "greatest": lambda v, u, c: v.amax(0) if c < 0.5 else v.amax(-1),
    "sums": lambda v, u, c: v.cumsum(-1) if c < 0.5 else v.cumsum(0),
    "turn": lambda v, u, c: v.transpose(0, -1),
    "cast": lambda v, u, c: v.float().to(v.dtype),
    "sort": lambda v, u, c: v.sort(-1).values,
    "variance": lambda v, u, c: v.var(0, correction=0),
}


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.matrix = nn.Linear(C, C), nn.Parameter(clew.randn(C, C) / 2)
        self.table, self.gru, self.lstm = nn.Embedding(7, C), nn.GRUCell(C, C), nn.LSTMCell(C, C)

    def apply_step(self, name: str, v: Any, u: Any) -> Any:
        """Of a matrix of C columns."""
        if name == "linear":
            return self.linear(v)
        if name == "product":
            return v @ self.matrix
        if name == "embedding":
            return self.table(clew.arange(len(v)) % 7)
        if name == "gru":
            return self.gru(v, u if u.shape == v.shape else None)
        if name == "lstm":
            return self.lstm(v)[0]
        if name == "group norm":
            return F.group_norm(v, 2)
        if name == "columns":
            return v[:, 1:3] * v[:, ::2]
        assert name == "gather"
        return v.gather(1, clew.zeros(len(v), 2, dtype=clew.int64))


MATRIX = ("linear", "product", "embedding", "gru", "lstm", "group norm", "columns", "gather")


def run(x: Any, steps: list[Step], weights: Weights) -> list[Any]:
    values = [x * 1.5, (x + 0.25).tanh()]
    for name, a, b, choice in steps:
        v, u = values[int(a * len(values))], values[int(b * len(values))]
        if v.ndim == 0 or (name in MATRIX and (v.ndim != 2 or v.shape[1] != C)):
            continue
        made = weights.apply_step(name, v, u) if name in MATRIX else ANY[name](v, u, choice)
        if 0 < made.numel() <= 400:
            values.append(made)
    return values[-3:]


@pytest.mark.parametrize("seed", range(120))
def test_random_program(seed):
    rng = random.Random(seed)
    names = [*ANY, *MATRIX]
    steps = [
        (rng.choice(names), rng.random(), rng.random(), rng.random())
        for _ in range(rng.randint(3, 10))
    ]
    clew.manual_seed(seed)
    weights = Weights().double()
    lengths = [rng.randint(2, 6) for _ in range(rng.randint(2, 6))]
    samples = [clew.randn(n, C, dtype=clew.float64, requires_grad=True) for n in lengths]
    leaves = [*weights.parameters(), *samples]

    def outcome(batched: bool) -> tuple[list[Any], list[Any]]:
        if batched:
            autobatch._history.clear()
            with clew.autobatch():
                results = [run(x, steps, weights) for x in samples]
        else:
            results = [run(x, steps, weights) for x in samples]
        flat = [v for values in results for v in values]
        loss = sum((v * v).mean() for v in flat)
        grads = clew.autograd.grad(loss, leaves, create_graph=True, materialize_grads=True)
        slope = sum(g.square().sum() for g in grads if g.requires_grad)
        if isinstance(slope, clew.Tensor):
            grads += clew.autograd.grad(slope, leaves, materialize_grads=True)
        return flat, list(grads)

    plain, plain_grads = outcome(False)
    batched, batched_grads = outcome(True)
    for got, want in zip(batched, plain):
        assert got.shape == want.shape and got.dtype == want.dtype
        assert clew.allclose(got, want, rtol=1e-6, atol=1e-9)
    for got, want in zip(batched_grads, plain_grads):
        assert clew.allclose(got, want, rtol=1e-5, atol=1e-7 * max(1, want.abs().max().item()))
