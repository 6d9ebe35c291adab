"""Start-up and size: `import` beyond NumPy in fresh interpreters, bytes of the package."""

from __future__ import annotations

import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

UNIT = "ms or MB"
BETTER = "lower"

RUNS = 9
PROBE = """
import time
import numpy
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def import_milliseconds(module: str) -> float:
    """Median wall time of the import in fresh interpreters that have NumPy loaded."""
    found = []
    for turn in range(RUNS + 1):
        code = PROBE.format(module=module)
        run = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        if turn > 0:  # the first one fills the disk cache
            found.append(float(run.stdout) * 1e3)
    return statistics.median(found)


def installed_megabytes(module: str) -> float:
    """Size of the package's files. In an editable install the native files lie in another folder
    than the sources; both count.
    """
    folders = set()
    for name in (module, f"{module}._C"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{module} is not installed")
        folders.add(Path(spec.origin).parent)
    return (
        sum(
            path.stat().st_size
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
        / 1e6
    )


def run(t: Any) -> dict[str, float]:
    """Import time and size."""
    return {
        "import, ms": import_milliseconds(t.__name__),
        "installed, MB": installed_megabytes(t.__name__),
    }
