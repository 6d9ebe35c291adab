"""The results page docs/benchmarks.md, made of the latest line of every suite."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
# Ratios to PyTorch that we want to reach, by suite and case ("" is the geometric mean).
TARGETS: dict[str, dict[str, float]] = {
    "overhead": {"": 0.15},
    "graph": {"": 0.05},
    "training": {
        "tiny MLP 8-16-4, batch 4": 0.15,
        "MLP 784-512-512-10, batch 128": 0.5,
        "char-GPT, 4 layers of 128, batch 8": 0.6,
        "GPT, 6 layers of 384, batch 4": 0.8,
        "char-GPT, bfloat16 autocast": 0.6,
        "ResNet-20, 32x32, batch 32": 0.6,
        "wide 3x3 convolutions, 28x28, batch 16": 0.75,
        "LSTM module, 50 steps of 128": 0.7,
        "LSTMCell unrolled, 50 steps of 128": 0.35,
        "recursive Tree-LSTM, 32 trees": 0.04,
        "policy gradient, 20 single steps": 0.15,
    },
    "memory": {"": 0.85},
    "start": {"import, ms": 0.1, "installed, MB": 0.12},
}


def _number(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def table(record: dict[str, Any]) -> str:
    """One suite as a Markdown table."""
    suite = importlib.import_module(f"bench.suites.{record['suite']}")
    ours, theirs = record["median"]["clew"], record["median"].get("torch", {})
    targets = TARGETS.get(record["suite"], {})
    better = "below 1 is faster" if suite.BETTER == "lower" else "above 1 is faster"
    lines = [
        f"## {record['suite']} ({suite.UNIT})",
        "",
        f"| case | clew | PyTorch | clew / PyTorch ({better}) | target |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    logs = []
    for case, value in ours.items():
        other = theirs.get(case)
        ratio = value / other if other else None
        if ratio:
            logs.append(math.log(ratio))
        shown = "" if ratio is None else f"{ratio:.3f}"
        there = "" if other is None else _number(other)
        target = targets.get(case, "")
        lines.append(f"| {case} | {_number(value)} | {there} | {shown} | {target} |")
    if logs:
        mean = math.exp(sum(logs) / len(logs))
        lines.append(f"| **geometric mean** | | | **{mean:.3f}** | {targets.get('', '')} |")
    return "\n".join(lines)


def write(results: Path) -> None:
    """Makes the page."""
    parts = [
        "# Benchmarks",
        "",
        "Made by `python -m bench` from the latest results in bench/results; not edited by hand. "
        "clew and PyTorch ran in alternation, in processes of their own; medians over the rounds.",
    ]
    for file in sorted(results.glob("*.jsonl")):
        record = json.loads(file.read_text().splitlines()[-1])
        versions = ", ".join(f"{name} {v}" for name, v in record["versions"].items())
        parts += [
            "",
            table(record),
            "",
            f"{versions}; commit {record['commit']}; {record['cpu']}; Python {record['python']}; "
            f"{record['rounds']} rounds.",
        ]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(parts) + "\n")
