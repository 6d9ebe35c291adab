"""Starts ranks for tests: one launch runs many checks."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="MPI is not installed: pip install mpi4py mpich",
)


def launch(n, program, *options, args=(), timeout=60, env=None):
    """Runs a program on n ranks; gives the finished process with its output."""
    command = [sys.executable, "-m", "clew", "launch", "-n", str(n), *options, str(program), *args]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(
        [str(HERE.parents[1] / "src"), str(HERE), os.environ.get("PYTHONPATH", "")])}  # fmt: skip
    where.update(env or {})
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=where, check=False
    )


def run_through(n, program, **options):
    """Runs a program of this folder on n ranks, each of which gets to its end."""
    done = launch(n, HERE / program, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(n):
        assert f"rank {r} is through" in done.stdout


def run_text(tmp_path, n, text, *options, **kwargs):
    """Runs the text of a program on n ranks."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text))
    return launch(n, path, *options, **kwargs)
