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
    }


def run(t: Any) -> dict[str, float]:
    """ns of every operation."""
    t.set_num_threads(1)
    return {name: nanoseconds(call) for name, call in single_operations(t).items()}
