"""Cost of recorded operations by node: chains of 8x8 tensors and of numbers, both ways."""

from __future__ import annotations

import time
from typing import Any

UNIT = "ns"
BETTER = "lower"


def chain(t: Any, n: int, step: Any, shape: tuple[int, ...] = (8, 8)) -> tuple[float, float]:
    """ns a node, forward and backward, of a chain of n operations."""
    best = (float("inf"), float("inf"))
    for _ in range(5):
        x = t.ones(shape, requires_grad=True)
        start = time.perf_counter_ns()
        y = x
        for _ in range(n):
            y = step(y)
        middle = time.perf_counter_ns()
        y.backward(t.ones(shape))
        end = time.perf_counter_ns()
        best = min(best, ((middle - start) / n, (end - middle) / n), key=sum)
    return best


def run(t: Any) -> dict[str, float]:
    """ns a node, of chains of ten thousand and of a million."""
    t.set_num_threads(1)
    one, number = t.ones(8, 8), t.tensor(1.0)
    cases = {
        "add 8x8": (lambda y: y + one, (8, 8)),
        "mul 8x8": (lambda y: y * one, (8, 8)),
        "tanh 8x8": (lambda y: y.tanh(), (8, 8)),
        "matmul 8x8": (lambda y: y @ one, (8, 8)),
        "add 0-d": (lambda y: y + number, ()),
        "mul 0-d": (lambda y: y * 0.999, ()),
    }
    found = {}
    for name, (step, shape) in cases.items():
        forward, backward = chain(t, 10_000, step, shape)
        found[f"{name}, forward"] = forward
        found[f"{name}, forward + backward"] = forward + backward
    # The first time the system has to find memory for the nodes; later on it is there.
    for when in ("for the first time", "again"):
        x = t.ones((), requires_grad=True)
        start = time.perf_counter_ns()
        y = x
        for _ in range(1_000_000):
            y = y + number
        y.backward()
        del y
        found[f"a million adds, made, run back and freed, {when}"] = (
            time.perf_counter_ns() - start
        ) / 1e6
    return found
