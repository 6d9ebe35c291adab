"""What finding out costs: time with a tool on, relative to the same with it off.

Each figure alternates both in one process, one thread, and is the median ratio.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.suites import overhead, training
from bench.timer import nanoseconds

UNIT = "times the cost without"
BETTER = "lower"
# What the tool may cost, by case; PyTorch's figure stands beside it where it has such a tool.
LIMITS = {
    "provenance: geometric mean of the operations": 1.1,
    "nan_watch: MLP step": 1.5,
    "nan_watch: char-GPT step": 1.5,
    "detect_anomaly: MLP step": 1.3,
    "detect_anomaly: char-GPT step": 1.3,
    "nan_watch: 300 small operations": 1.3,
    "detect_anomaly: 300 small operations": 1.3,
    "profiler: 300 small operations": 1.5,
    "doctor: MLP step": 1.3,
    "doctor: 300 small operations": 1.3,
}
PROVENANCE = "provenance: "


def alternated(call: Callable[[], object], tool: Callable[[], Any], pairs: int = 9) -> float:
    """Median of (with the tool) / (without), each sample a few calls long."""

    def sample(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - start

    call()
    count = max(1, int(0.15 / max(sample(1), 1e-6)))
    ratios = []
    for _ in range(pairs):
        plain = sample(count)
        with tool():
            ratios.append(sample(count) / plain)
    return statistics.median(ratios)


def provenance(t: Any) -> dict[str, float]:
    """Every operation of the overhead suite with provenance on and off."""
    found = {}
    switch = t._C._enable_provenance
    for name, call in overhead.single_operations(t).items():
        on, off = [], []
        try:
            for _ in range(5):
                switch(True)
                on.append(nanoseconds(call, 3, 0.01))
                switch(False)
                off.append(nanoseconds(call, 3, 0.01))
        finally:
            switch(True)
        found[PROVENANCE + name] = statistics.median(on) / statistics.median(off)
    mean = math.exp(sum(map(math.log, found.values())) / len(found))
    found["provenance: geometric mean of the operations"] = mean
    return found


def small_operations(t: Any) -> Callable[[], None]:
    """300 operations on matrices of 8x8, forward and backward."""
    x, w = t.randn(8, 8, requires_grad=True), t.randn(8, 8)

    def call() -> None:
        h = x
        for _ in range(100):
            h = (h * w + x).tanh()
        h.sum().backward()

    return call


def steps(t: Any) -> dict[str, Callable[[], None]]:
    """Training steps that the tools are tried on."""
    return {
        "MLP step": training.mlp(t, 32, 64, 256, 256, 10),
        "char-GPT step": training.gpt(t, 2, layers=2, width=64, heads=4),
        "300 small operations": small_operations(t),
    }


def tools(t: Any) -> dict[str, Callable[[], Any]]:
    """Context managers by name."""
    import warnings

    warnings.filterwarnings("ignore", message="Anomaly Detection has been enabled")
    found: dict[str, Callable[[], Any]] = {"detect_anomaly": t.autograd.detect_anomaly}
    if hasattr(t, "profiler"):
        found["profiler"] = lambda: t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU])
    with contextlib.suppress(AttributeError, ImportError):
        found["nan_watch"] = t.debug.nan_watch
        found["doctor"] = lambda: t.debug.doctor(quiet=True)
        # A loss that jumps is saved there.
        path = os.path.join(tempfile.gettempdir(), "bench.clew")
        found["record"] = lambda: t.debug.record(path)
        found["record(graphs=4)"] = lambda: t.debug.record(path, graphs=4)
    return found


def run(t: Any) -> dict[str, float]:
    """Ratios by case; provenance and nan_watch only where the library has them."""
    t.set_num_threads(1)
    found = provenance(t) if hasattr(t, "_C") and hasattr(t._C, "_enable_provenance") else {}
    for step, call in steps(t).items():
        for name, tool in tools(t).items():
            t.manual_seed(0)
            found[f"{name}: {step}"] = alternated(call, tool)
    return found
