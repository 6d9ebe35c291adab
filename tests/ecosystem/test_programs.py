"""Programs of PyTorch's libraries under `clew run`, beside the numbers that PyTorch 2.13 gives.

They run where the libraries are installed (the extra `ecosystem`) and are skipped elsewhere.
"""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew

HERE = Path(__file__).parent
NUMBERS = json.loads((HERE / "numbers.json").read_text())
PROGRAMS = sorted((HERE / "programs").glob("*.py"))


def needs(program):
    tree = ast.parse(program.read_text())
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_numbers(program):
    missing = [n for n in needs(program) if n != "torch" and importlib.util.find_spec(n) is None]
    if missing:
        pytest.skip(f"not installed: {missing}")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "clew", "run", str(program)],
        capture_output=True,
        text=True,
        timeout=600,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.pathsep.join(
                [str(Path(clew.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
            ),
        },
    )
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    for name, want in NUMBERS[program.stem].items():  # libraries may print other lines, too
        found = [float(word) for word in lines[name]]
        assert found == pytest.approx(want, rel=2e-4, abs=1e-5, nan_ok=True), name
