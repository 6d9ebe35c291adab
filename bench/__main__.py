"""`python -m bench [suites]`: clew and PyTorch in alternation, each in processes of its own.

A round goes through a suite in parts, each of them by every library in turn, so that what is
compared was measured within seconds. Medians over the rounds are printed with their ratio and
appended to bench/results/SUITE.jsonl with commit and processor; docs/benchmarks.md is made of the
latest.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from bench import report

SUITES = (
    "overhead",
    "small",
    "graph",
    "kernels",
    "numeric",
    "training",
    "compile",
    "batching",
    "budget",
    "distributed",
    "export",
    "ragged",
    "memory",
    "start",
    "insight",
    "load",
)
RESULTS = Path(__file__).parent / "results"


def work(python: str, suite: str, part: int, library: str) -> tuple[str, dict[str, float]]:
    """One run of a part of a suite: the library's version and its values."""
    command = [python, "-m", "bench.worker", suite, str(part), library]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{library}, {suite}:\n{run.stdout}{run.stderr}")
    last = json.loads(run.stdout.splitlines()[-1])
    return last["version"], last["values"]


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def commit() -> str:
    """The commit; dirty where something but what is recorded here differs from it."""

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return run.stdout.strip()

    made = [":!bench/results", ":!docs/benchmarks.md"]
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", *made)
    return git("describe", "--always") + ("-dirty" if changed else "")


def main() -> int:
    """Runs the suites that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(SUITES))
    parser.add_argument("--torch-python", help="an interpreter that has PyTorch; else clew alone")
    parser.add_argument("--rounds", type=int, default=3, help="alternations (3)")
    parser.add_argument("--dry", action="store_true", help="print only")
    options = parser.parse_args()
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"unknown suites {sorted(unknown)}; there are {', '.join(SUITES)}")
    libraries = {"clew": sys.executable}
    if options.torch_python:
        libraries["torch"] = options.torch_python
    for suite in options.suites or SUITES:
        parts = getattr(importlib.import_module(f"bench.suites.{suite}"), "PARTS", 1)
        # A limit of the machine is measured in several parts: all of its values count.
        found: dict[str, dict[str, list[float]]] = {name: {} for name in libraries}
        versions = {}
        for turn, part in itertools.product(range(options.rounds), range(parts)):
            # Who goes first changes from round to round: what heats the machine hits both.
            for name in list(libraries)[:: -1 if turn % 2 else 1]:
                versions[name], values = work(libraries[name], suite, part, name)
                for case, value in values.items():
                    found[name].setdefault(case, []).append(value)
        record = {
            "suite": suite,
            "commit": commit(),
            "cpu": cpu(),
            "python": platform.python_version(),
            "versions": versions,
            "rounds": options.rounds,
            "median": {
                name: {case: round(statistics.median(all_), 4) for case, all_ in cases.items()}
                for name, cases in found.items()
            },
            "spread": {
                name: {case: round(max(all_) - min(all_), 4) for case, all_ in cases.items()}
                for name, cases in found.items()
            },
        }
        print(report.table(record), flush=True)
        if not options.dry:
            RESULTS.mkdir(exist_ok=True)
            with (RESULTS / f"{suite}.jsonl").open("a") as file:
                file.write(json.dumps(record) + "\n")
    if not options.dry:
        report.write(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
