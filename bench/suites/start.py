"""Start-up and size: `import` beyond NumPy and the first backward in fresh interpreters, bytes of
the package.
"""

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

# The first step of a model, without its making: what libraries prepare at their first use.
FIRST = """
import time
import {module} as t
f = t.nn.functional
make = t.nn.Sequential
layers, image = t.nn, t.randn(16, 3, 32, 32)
models = {{
    "MLP": lambda: (
        make(layers.Linear(784, 512), layers.ReLU(), layers.Linear(512, 10)), t.randn(128, 784)
    ),
    "convolutions": lambda: (
        make(layers.Conv2d(3, 16, 3), layers.ReLU(), layers.Flatten(), layers.Linear(14400, 10)),
        image,
    ),
}}
model, x = models["{model}"]()
labels = t.randint(0, 10, (len(x),))
loss = f.cross_entropy(model(x), labels)
start = time.perf_counter()
loss.backward()
print(time.perf_counter() - start)
"""


def fresh_milliseconds(code: str) -> float:
    """Median of what the code prints, in seconds, in fresh interpreters."""
    found = []
    for turn in range(RUNS + 1):
        run = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        if turn > 0:  # the first one fills the disk cache
            found.append(float(run.stdout) * 1e3)
    return statistics.median(found)


def import_milliseconds(module: str) -> float:
    """Median wall time of the import in fresh interpreters that have NumPy loaded."""
    return fresh_milliseconds(PROBE.format(module=module))


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
    """Import time, first steps and size."""
    return {
        "import, ms": import_milliseconds(t.__name__),
        **{
            f"first backward of {model}, ms": fresh_milliseconds(
                FIRST.format(module=t.__name__, model=model)
            )
            for model in ("MLP", "convolutions")
        },
        "installed, MB": installed_megabytes(t.__name__),
    }
