"""Cost of one small operation from Python: 8x8 float32, one thread."""

from __future__ import annotations

from typing import Any

from bench.timer import nanoseconds

UNIT = "ns"
BETTER = "lower"


def single_operations(t: Any) -> dict[str, Any]:
    a, b = t.randn(8, 8), t.randn(8, 8)
    w = t.randn(8, 8, requires_grad=True)
    s = t.tensor(1.5)
    out = t.empty(8, 8)
    nn, f = t.nn, t.nn.functional
    linear, table = nn.Linear(8, 8), nn.Embedding(16, 8)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    optimizer = t.optim.Adam(model.parameters(), foreach=False)
    for p in model.parameters():
        p.grad = t.zeros_like(p)
    ids, labels = t.tensor([3]), t.tensor([1, 2, 3, 4, 5, 6, 7, 0])
    return {
        "add": lambda: a + b,
        "add, recorded": lambda: w + a,
        "mul by a number": lambda: a * 2.0,
        "mul, recorded": lambda: w * a,
        "add (method)": lambda: a.add(b),
        "add (function)": lambda: t.add(a, b),
        "add in place": lambda: out.add_(b),
        "exp": lambda: a.exp(),
        "tanh": lambda: a.tanh(),
        "matmul": lambda: a @ b,
        "sum": lambda: a.sum(),
        "sum of dim": lambda: a.sum(1),
        "softmax": lambda: a.softmax(1),
        "view": lambda: a.view(64),
        "transpose": lambda: a.t(),
        "index row": lambda: a[3],
        "index element": lambda: a[3, 4],
        "slice": lambda: a[2:5],
        "item": lambda: s.item(),
        "zeros": lambda: t.zeros(8, 8),
        "tensor of list": lambda: t.tensor([1.0, 2.0, 3.0]),
        "cat": lambda: t.cat([a, b]),
        "detach": lambda: a.detach(),
        "shape": lambda: a.shape,
        "mean": lambda: a.mean(),
        "max of dim": lambda: a.max(1),
        "where": lambda: t.where(a > 0, a, b),
        "stack": lambda: t.stack([a, b]),
        "assign a row": lambda: out.__setitem__(2, s),
        "relu (nn.functional)": lambda: f.relu(a),
        "layer_norm": lambda: f.layer_norm(a, (8,)),
        "cross_entropy": lambda: f.cross_entropy(a, labels),
        "Linear module": lambda: linear(a),
        "Embedding module": lambda: table(ids),
        "Sequential of three": lambda: model(a),
        "Adam step, 4 parameters": optimizer.step,
    }


def run(t: Any) -> dict[str, float]:
    """ns of every operation."""
    t.set_num_threads(1)
    return {name: nanoseconds(call) for name, call in single_operations(t).items()}
