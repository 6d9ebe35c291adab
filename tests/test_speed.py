"""Gates against gross slowness: ratios to NumPy in the same process, never absolute times.

The bounds are about four times what a quiet machine measures, so that noise does not fail them
and a path that became several times slower does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import clew


def cost(call: Callable[[], object], count: int = 1000, repeats: int = 15) -> float:
    """The least CPU time of a call, in ns: what other processes add is only ever more."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time_ns()
        for _ in range(count):
            call()
        best = min(best, (time.thread_time_ns() - start) / count)
    return best


def test_small_operations_cost_no_more_than_a_few_of_numpys() -> None:
    x, a, b = np.ones((8, 8), np.float32), clew.ones(8, 8), clew.ones(8, 8)
    w = clew.ones(8, 8, requires_grad=True)
    number = clew.tensor(1.5)
    unit = cost(lambda: x + x)
    bounds = {
        "add": (lambda: a + b, 1.5),
        "recorded add": (lambda: w + a, 3),
        "method": (lambda: a.exp(), 2),
        "function": (lambda: clew.add(a, b), 2),
        "row": (lambda: a[3], 2),
        "view": (lambda: a.view(64), 3),
        "item": (lambda: number.item(), 1),
        "matmul": (lambda: a @ b, 4),
    }
    over = {}
    for name, (call, bound) in bounds.items():
        ratio = cost(call) / unit
        if ratio > bound:
            over[name] = round(ratio, 2)
    assert not over


def test_backward_of_a_chain_costs_no_more_than_a_few_additions() -> None:
    x = np.ones((8, 8), np.float32)
    unit = cost(lambda: x + x)
    one = clew.ones(8, 8)

    def chain() -> None:
        y = clew.ones(8, 8, requires_grad=True)
        for _ in range(200):
            y = y + one
        y.backward(one)

    assert cost(chain, 5) / 200 / unit < 6
