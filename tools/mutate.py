#!/usr/bin/env python3
"""Makes one small mistake at a time in a copy of the Python sources; tells which no test notices.

    python tools/mutate.py [--jobs N] LIST.py [number ...]

LIST.py sets MUTATIONS, a list of (file, old text, new text, tests): the first place of the old text
in the file is replaced; the tests are arguments of pytest.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent


def copied(where: Path) -> Path:
    """A tree to spoil: sources and tests as copies, the native module as a link."""
    skip = shutil.ignore_patterns("__pycache__", "*.so")
    for part in ("src", "tests", "tools"):
        shutil.copytree(ROOT / part, where / part, ignore=skip)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, where)
    for module in (ROOT / "src").rglob("*.so"):
        (where / module.relative_to(ROOT)).symlink_to(module)
    return where


def outcome(tree: Path, file: str, old: str, new: str, tests: str) -> str:
    """What the tests make of one mistake: noticed, SURVIVED, or why it could not be tried."""
    path = tree / file
    text = path.read_text()
    if old not in text:
        return "STALE: the old text is not there"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    path.write_text(text.replace(old, new, 1))
    try:
        run = subprocess.run(
            [*command, *tests.split()],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        return "SLOW: the tests did not end"
    finally:
        path.write_text(text)
    lines = run.stdout.strip().splitlines() or [run.stderr[-100:]]
    if run.returncode == 0:
        return f"SURVIVED: {lines[-1]}"
    if run.returncode != 1:
        return f"FAILED TO RUN: {lines[-1]}"
    return "noticed: " + next((x for x in lines if x.startswith(("FAILED", "ERROR"))), lines[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at a time")
    parser.add_argument("list", help="a Python file that sets MUTATIONS")
    parser.add_argument("number", type=int, nargs="*", help="which of them; all by default")
    options = parser.parse_args()
    mutations = runpy.run_path(options.list)["MUTATIONS"]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        trees: Queue[Path] = Queue()
        for i in range(options.jobs):
            trees.put(copied(Path(scratch) / str(i)))

        def tried(number: int) -> str:
            tree = trees.get()
            result = outcome(tree, *mutations[number])
            trees.put(tree)
            print(number, mutations[number][0], result[:150], flush=True)
            return result

        results = list(pool.map(tried, options.number or range(len(mutations))))
    missed = [r for r in results if not r.startswith("noticed")]
    print(f"{len(results)} mistakes, {len(missed)} not noticed")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
