"""Measure how long `import clew` takes beyond NumPy, and how much room the package takes.

    python bench/start.py

Prints the median of several fresh interpreters. The targets are 100 ms and 75 MB.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

RUNS = 9
PROBE = """
import time
import numpy
wall, busy = time.perf_counter(), time.process_time()
import clew
print(time.perf_counter() - wall, time.process_time() - busy)
"""


def import_seconds() -> tuple[list[float], list[float]]:
    """Wall and processor seconds of `import clew` in fresh interpreters that have NumPy loaded.

    Both are sorted. On a busy machine the processor's time is the one to look at.
    """
    wall, busy = [], []
    for turn in range(RUNS + 1):
        run = subprocess.run(
            [sys.executable, "-c", PROBE], check=True, capture_output=True, text=True
        )
        if turn > 0:  # the first one fills the disk cache
            first, second = run.stdout.split()
            wall.append(float(first))
            busy.append(float(second))
    return sorted(wall), sorted(busy)


def installed_bytes() -> dict[str, int]:
    """Bytes of the package's files by suffix: Python sources, the module, oneDNN, the rest.

    In an editable install the native files lie in another folder than the sources; both count.
    """
    spec = find_spec("clew")
    native = find_spec("clew._C")
    if spec is None or spec.origin is None or native is None or native.origin is None:
        raise SystemExit("clew is not installed")
    folders = {Path(spec.origin).parent, Path(native.origin).parent}
    sizes = {"module": 0, "oneDNN": 0, "Python": 0, "other": 0}
    for folder in folders:
        for path in folder.rglob("*"):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            if path.name.startswith("_C."):
                kind = "module" if path.suffix == ".so" else "other"
            elif path.name.startswith("libdnnl"):
                kind = "oneDNN"
            else:
                kind = "Python" if path.suffix in (".py", ".pyi") else "other"
            sizes[kind] += path.stat().st_size
    return sizes


def main() -> None:
    """Print both measurements."""
    for name, times in zip(("wall", "processor"), import_seconds()):
        print(
            f"import clew, beyond NumPy, {name} time: median {statistics.median(times) * 1e3:.1f} "
            f"ms, min {times[0] * 1e3:.1f}, max {times[-1] * 1e3:.1f} ({RUNS} fresh interpreters)"
        )
    sizes = installed_bytes()
    parts = ", ".join(f"{kind} {size / 1e6:.1f}" for kind, size in sizes.items())
    print(f"installed: {sum(sizes.values()) / 1e6:.1f} MB ({parts})")


if __name__ == "__main__":
    main()
