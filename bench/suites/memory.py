"""Peak memory of training steps: how far the process grows beyond where it stood."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.suites import training

UNIT = "MB"
BETTER = "lower"

CASES = (
    "MLP 784-512-512-10, batch 128",
    "char-GPT, 4 layers of 128, batch 8",
    "GPT, 6 layers of 384, batch 4",
    "ResNet-20, 32x32, batch 32",
)


def peak() -> float:
    """The most memory this process has had, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e3
    raise RuntimeError("no VmHWM in /proc/self/status")


def one(t: Any, case: str) -> float:
    """Growth of the peak over three steps, in MB."""
    t.manual_seed(0)
    t.randn(64, 64) @ t.randn(64, 64)
    before = peak()
    step = training.CASES[case](t)
    for _ in range(3):
        step()
    return peak() - before


def run(t: Any) -> dict[str, float]:
    """MB by case, each in a process of its own."""
    found = {}
    for case in CASES:
        code = (
            f"import importlib; from bench.suites import memory; "
            f"print(memory.one(importlib.import_module({t.__name__!r}), {case!r}))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        found[case] = float(run.stdout.split()[-1])
    return found
