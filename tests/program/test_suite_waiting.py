"""A part of the suite with calls of any size that wait; `make waiting` runs all of it so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("part", ["autograd", "func", "amp", "nn/test_every_module.py"])
def test_passes_with_deferral(part):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--deferred"]
    run = subprocess.run(
        [*command, str(TESTS / part)], capture_output=True, text=True, check=False, cwd=TESTS.parent
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
