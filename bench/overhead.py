"""Cost of one small operation from Python, in ns: 8x8 float32, with and without recording, and of
backward by node.

Run with clew or with PyTorch: `python bench/overhead.py [--framework torch] [--append
results.jsonl]`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from timer import nanoseconds


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


def chain(t: Any, n: int, step: Any) -> tuple[float, float]:
    """ns a node, forward and backward, of a chain of n operations."""
    best = (float("inf"), float("inf"))
    for _ in range(5):
        x = t.ones(8, 8, requires_grad=True)
        start = time.perf_counter_ns()
        y = x
        for _ in range(n):
            y = step(y)
        middle = time.perf_counter_ns()
        y.backward(t.ones(8, 8))
        end = time.perf_counter_ns()
        best = min(best, ((middle - start) / n, (end - middle) / n), key=sum)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", default="clew", choices=["clew", "torch"])
    parser.add_argument("--append", help="a JSON-lines file to add the results to")
    options = parser.parse_args()
    t = importlib.import_module(options.framework)
    t.set_num_threads(1)
    results: dict[str, float] = {}
    for name, call in single_operations(t).items():
        median, spread = nanoseconds(call)
        results[name] = round(median, 1)
        print(f"{name:24} {median:9.0f} ns  ± {spread:.0f}")
    one = t.ones(8, 8)
    for name, step in (
        ("chain of add", lambda y: y + one),
        ("chain of mul", lambda y: y * one),
        ("chain of tanh", lambda y: y.tanh()),
    ):
        forward, backward = chain(t, 10_000, step)
        results[f"{name}, forward a node"] = round(forward, 1)
        results[f"{name}, backward a node"] = round(backward, 1)
        print(f"{name:24} {forward:9.0f} ns forward, {backward:.0f} ns backward a node")
    if options.append:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
        cpu = next(
            (
                line.split(":")[1].strip()
                for line in open("/proc/cpuinfo")
                if line.startswith("model name")
            ),
            "",
        )
        record = {
            "suite": "overhead",
            "framework": options.framework,
            "version": t.__version__,
            "commit": commit,
            "cpu": cpu or platform.processor(),
            "python": platform.python_version(),
            "ns": results,
        }
        with open(options.append, "a") as f:
            f.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
