"""docs/coverage.md says what is true. Skipped without PyTorch; `make parity` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_names_is_up_to_date():
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the page is about PyTorch 2.13")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "coverage.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
