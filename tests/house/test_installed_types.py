"""An installed copy passes strict type checkers: realistic programs have no error, and mistakes do.

The copy lies in the site-packages of an environment of its own, as a wheel's would: checkers read
the sources of a package there only if it has its marker, py.typed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import clew

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "typed_programs"
GOOD = sorted(p.name for p in PROGRAMS.glob("*.py") if p.name != "wrong.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The interpreter of an environment that has clew and NumPy."""
    base = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base / "env"], check=True)
    (site,) = (base / "env" / "lib").glob("python*/site-packages")
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.so.*")
    shutil.copytree(ROOT / "src" / "clew", site / "clew", ignore=ignore)
    (site / "numpy").symlink_to(Path(numpy.__file__).parent)
    shutil.copytree(PROGRAMS, base / "programs")
    return base / "env" / "bin" / "python"


def run_mypy(python: Path, files: list[str]) -> str:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
        + [f"--python-executable={python}", f"--cache-dir={python.parents[2] / 'cache'}", *files],
        cwd=python.parents[2] / "programs",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout


def run_pyright(python: Path, files: list[str]) -> str:
    places = f"{Path(sys.executable).parent}"
    names = ("basedpyright", "pyright")
    found = [shutil.which(n, path=p) for p in (places, None) for n in names]
    checker = next(filter(None, found), None)
    if checker is None:
        pytest.skip("neither basedpyright nor pyright is installed")
    folder = python.parents[2] / "programs"
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    done = subprocess.run(
        [checker, "--pythonpath", str(python), *files],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "Failed to download" in done.stderr or "nodeenv" in done.stderr:
        pytest.skip("pyright cannot get its program here")
    return "\n".join(line for line in done.stdout.splitlines() if " - error:" in line)


@pytest.mark.parametrize("run", [run_mypy, run_pyright])
def test_strict_checkers_find_the_mistakes_and_nothing_else(installed, run):
    told = run(installed, [*GOOD, "wrong.py"])
    assert not [line for line in told.splitlines() if "wrong.py" not in line]
    wanted = {
        i
        for i, line in enumerate((PROGRAMS / "wrong.py").read_text().splitlines(), 1)
        if "# wrong:" in line
    }
    found = {int(n) for n in re.findall(r"wrong\.py:(\d+)", told)}
    assert found == wanted


def test_there_are_programs_of_every_kind():
    assert len(GOOD) >= 10


@pytest.mark.parametrize("name", GOOD)
def test_programs_run(name, tmp_path):
    done = subprocess.run(
        [sys.executable, PROGRAMS / name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(clew.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
