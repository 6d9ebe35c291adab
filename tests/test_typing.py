"""The type stubs are up to date, and the examples pass a type checker with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_stubs_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "tools/make_stubs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_pass_the_type_checker(tmp_path):
    pytest.importorskip("mypy")
    files = ["digits_cnn.py", "tree_lstm.py", "curves.py", "graph_networks.py", "cart_pole.py"]
    files += ["ragged_sequences.py", "thinking_time.py", "experts.py"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--follow-imports=silent",
            "--ignore-missing-imports",
            "--config-file=",
            f"--cache-dir={tmp_path}",
            *files,
        ],
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
