"""The results page docs/benchmarks.md, made of the latest line of every suite."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
# Ratios to PyTorch that we want to reach, by suite and case ("" is the geometric mean, and in the
# suites of EACH every case).
EACH = ("memory", "small", "numeric")
TARGETS: dict[str, dict[str, float]] = {
    "overhead": {"": 0.15},
    "graph": {
        "a million adds, made, run back and freed, again": 0.05,
    }
    | {
        f"{step} {shape}, forward + backward": 0.05
        for step, shape in (
            ("add", "8x8"),
            ("mul", "8x8"),
            ("tanh", "8x8"),
            ("matmul", "8x8"),
            ("add", "0-d"),
            ("mul", "0-d"),
        )
    },
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
    "compile": {
        f"{name}, compiled": 1.0
        for name in (
            "gelu chain",
            "Black-Scholes",
            "block by hand",
            "LSTM by hand",
            "layer norm by hand",
            "softmax cross-entropy by hand",
            "Adam by hand",
            "diffusion",
            "PINN",
            "policy, batch 1",
            "tiny MLP",
            "branches",
            "new lengths",
            "GPT step",
            "neural ODE",
        )
    },
    "distributed": {
        "all_reduce of 1 floats": 0.3,
        "all_reduce of 100k floats": 0.5,
        "all_reduce of 10M floats": 0.7,
        "tiny MLP, DDP": 0.15,
        "MLP, DDP": 0.3,
        "char-GPT, DDP": 0.45,
        "ResNet-20, DDP": 0.5,
        "GPT, 6 layers of 384, batch 4, tensor parallel": 0.6,
    },
    "memory": {"": 0.85},
    "small": {"": 0.08},
    "numeric": {"": 1.0},
    "start": {"import, ms": 0.1, "installed, MB": 0.12},
}


def _number(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def _percent(spread: float | None, median: float | None) -> str:
    """Half the range of the rounds, relative to their median."""
    if spread is None or not median:
        return ""
    return f"{50 * spread / median:.0f}%"


# Why a case is behind, where it is known.
REASONS: dict[tuple[str, str], str] = {
    ("training", "recursive Tree-LSTM, 32 trees"): (
        "A graph of 35,000 small nodes: half a kilobyte a node passes through the shared cache, "
        "and what neighbours leave of it decides"
    ),
    ("training", "GPT, 6 layers of 384, batch 4"): (
        "Four fifths of the step are products, which run at the processor's rate in both"
    ),
    ("training", "char-GPT, 4 layers of 128, batch 8"): "Bound by products, as the larger one is",
    ("graph", "matmul 8x8, forward + backward"): "Fixed costs of the product's kernel",
    ("distributed", "tiny MLP, DDP"): "Its whole step takes less than the ranks need to meet twice",
    (
        "distributed",
        "MLP, DDP",
    ): "Three fifths of what it takes beyond the half are the "
    "exchange; two ranks share the memory's bandwidth, and Adam is not halved",
    (
        "distributed",
        "char-GPT, DDP",
    ): "One process's step of half the batch takes 0.7 of PyTorch's, and is most of it",
    ("distributed", "char-GPT, exchange that a step waits for"): (
        "The ranks fill all cores, so that an exchange takes processor time from backward"
    ),
    ("kernels", "matmul 1024 float64"): "A loop of our own against MKL's",
    (
        "kernels",
        "softmax, columns",
    ): "Rows lie 16 KB apart, and a tile of columns does not fit into "
    "the second-level cache: half the traffic goes to the third",
    ("kernels", "pow 2.7 of abs"): "Bound by arithmetic: a logarithm in pairs of floats and an "
    "exponential, for 1.25 units in the last place",
    **{
        ("kernels", case): "Bound by memory in both, as the triad, which is the same code in both"
        for case in ("add into out", "add in place", "sum", "sum of rows")
    },
    **{
        ("kernels", case): "In the cache its arithmetic alone takes most of the time that the "
        "target leaves; memory's is hidden behind it only in part"
        for case in ("sin", "cos", "erf", "gelu", "softmax, rows", "log_softmax")
    },
    ("kernels", "conv2d 3x3, stride 2"): "oneDNN in both",
    ("kernels", "gelu of 4e6, bfloat16"): "Bound by the arithmetic of erf in float32",
    (
        "kernels",
        "embedding of 50000x512, with backward",
    ): "Half of the time goes to the zeros of the dense gradient",
    ("kernels", "dropout"): "Two words of mt19937 an element, the stream that PyTorch draws; each "
    "word needs the ones before it",
    ("kernels", "cross_entropy, with backward"): "The exponentials are computed twice, rather than "
    "kept",
}


def least(suite: Any, record: dict[str, Any]) -> dict[str, float]:
    """What the machine's limit, measured in the same run, asks of the cases."""
    return suite.least(record["median"]["clew"]) if hasattr(suite, "least") else {}


def uncertainty(record: dict[str, Any], case: str) -> float:
    """How far off the ratio of the medians may be: half the range of the rounds, of both."""
    return sum(
        record["spread"][library].get(case, 0) / (2 * record["median"][library][case])
        for library in ("clew", "torch")
    )


def behind(record: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The cases that miss their target, or PyTorch where there is none, worst first.

    Second, those of the latter kind that are behind by less than the rounds differ among
    themselves.
    """
    suite = importlib.import_module(f"bench.suites.{record['suite']}")
    targets = TARGETS.get(record["suite"], {})
    found: list[tuple[float, str]] = []
    even: list[tuple[float, str]] = []
    for case, limit in getattr(suite, "LIMITS", {}).items():
        value = record["median"]["clew"].get(case, 0.0)  # not every machine can measure all
        if value > limit:
            text = (
                f"- {record['suite']}, {case}: {value:.2f} {suite.UNIT} (target at most {limit:g})"
            )
            found.append((value / limit, text))
    for case, limit in least(suite, record).items():
        value = record["median"]["clew"][case]
        if value < limit:
            reason = REASONS.get((record["suite"], case), "")
            text = f"- {record['suite']}, {case}: {value:.1f} GB/s (target at least {limit:.1f})"
            found.append((limit / value, text + (f". {reason}" if reason else "")))
    for case, (other, most) in getattr(suite, "WITHIN", {}).items():
        if case not in record["median"]["clew"]:
            continue  # what could not be done at all is told by the suite's own page
        ratio = record["median"]["clew"][case] / record["median"]["clew"][other]
        if ratio > most:
            reason = REASONS.get((record["suite"], case), "")
            text = f"- {record['suite']}, {case}: {ratio:.2f}x {other} (target at most {most:g}x)"
            found.append((ratio / most, text + (f". {reason}" if reason else "")))
    theirs = record["median"].get("torch", {})
    for case, value in record["median"]["clew"].items():
        machine = case == getattr(suite, "TRIAD", None)  # the same code in both
        if not theirs.get(case) or hasattr(suite, "LIMITS") or machine:
            continue
        ratio = value / theirs[case]
        slower = ratio if suite.BETTER == "lower" else 1 / ratio
        wanted = targets.get(case, targets.get("", 1.0) if record["suite"] in EACH else 1.0)
        if slower <= wanted:
            continue
        reason = REASONS.get((record["suite"], case), "")
        what = "memory" if suite.UNIT == "MB" else "time"
        ratio_text = f"{slower:.{2 if slower >= 0.1 else 3}f}x PyTorch's {what}"
        text = f"- {record['suite']}, {case}: {ratio_text} (target at most {wanted:g}x)"
        told = wanted != 1 or slower - 1 > uncertainty(record, case)
        listed = found if told else even
        listed.append((slower / wanted, text + (f". {reason}" if reason else "")))
    return [text for _, text in sorted(found, reverse=True)], [
        text for _, text in sorted(even, reverse=True)
    ]


def table(record: dict[str, Any]) -> str:
    """One suite as a Markdown table."""
    suite = importlib.import_module(f"bench.suites.{record['suite']}")
    ours, theirs = record["median"]["clew"], record["median"].get("torch", {})
    spreads = record["spread"]
    targets = TARGETS.get(record["suite"], {})
    limits = getattr(suite, "LIMITS", {})
    asked = least(suite, record)
    better = "below 1 is faster" if suite.BETTER == "lower" else "above 1 is faster"
    lines = [
        f"## {record['suite']} ({suite.UNIT})",
        "",
        f"| case | clew | ± | PyTorch | ± | clew / PyTorch ({better}) | target |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    logs = []
    for case, value in ours.items():
        other = theirs.get(case)
        ratio = value / other if other else None
        if ratio:
            logs.append(math.log(ratio))
        shown = "" if ratio is None else f"{ratio:.3f}"
        there = "" if other is None else _number(other)
        target = limits.get(case, targets.get(case, ""))
        if case in asked:
            target = f"{_number(asked[case])} {suite.UNIT.split(' ')[0]}"
        mine, other_spread = (
            _percent(spreads.get(library, {}).get(case), median)
            for library, median in (("clew", value), ("torch", other))
        )
        row = (case, _number(value), mine, there, other_spread, shown, target)
        lines.append(f"| {' | '.join(map(str, row))} |")
    if logs:
        mean = math.exp(sum(logs) / len(logs))
        lines.append(f"| **geometric mean** | | | | | **{mean:.3f}** | {targets.get('', '')} |")
    return "\n".join(lines)


def write(results: Path) -> None:
    """Makes the page."""
    parts = [
        "# Benchmarks",
        "",
        "Made by `python -m bench` from the latest results in bench/results; not edited by hand. "
        "clew and PyTorch ran in alternation, in processes of their own; medians over the "
        "rounds, ± half their range.",
    ]
    latest = [
        json.loads(file.read_text().splitlines()[-1]) for file in sorted(results.glob("*.jsonl"))
    ]
    late = [behind(record) for record in latest]
    parts += [
        "",
        "## Where clew is behind",
        "",
        "Behind a target that was set, which is mostly far below PyTorch's time: more than 1x is "
        "slower than PyTorch.",
        "",
    ]
    parts += [line for found, _ in late for line in found] or ["Nowhere in these suites."]
    if even := [line for _, found in late for line in found]:
        parts += ["", "Slower than PyTorch by less than the rounds differ:", "", *even]
    for record in latest:
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
    for record in latest:
        suite = importlib.import_module(f"bench.suites.{record['suite']}")
        if hasattr(suite, "page"):
            fill(record["suite"], suite.page(record))


def fill(name: str, lines: list[str]) -> None:
    """Writes a table into the page that has a place for it."""
    begin, end = f"<!-- made by `python -m bench {name}` -->", "<!-- end -->"
    for page in PAGE.parent.glob("*.md"):
        before, found, rest = page.read_text().partition(begin)
        if found:
            after = rest.partition(end)[2]
            page.write_text("\n".join([before + begin, "", *lines, "", end]) + after)
