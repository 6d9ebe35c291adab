"""The native walk over the running frames sees what Python shows, with this Python's layout.

The header takes the layout of the Python it is compiled for: a small module is built for the one
that runs here, so the suite of every supported Python checks its own.
"""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> Any:
    compiler = shutil.which("g++")
    include = sysconfig.get_paths()["include"]
    if compiler is None or not (Path(include) / "Python.h").exists():
        pytest.skip("needs g++ and Python's headers")
    built = tmp_path_factory.mktemp("frames") / "frames.so"
    subprocess.run(
        [compiler, "-O1", "-std=c++20", "-shared", "-fPIC", "-I", ROOT / "csrc", "-I", include]
        + [ROOT / "tests" / "native" / "frames.cpp", "-o", built],
        check=True,
    )
    spec = importlib.util.spec_from_file_location("frames", built)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.walk


def both(walk: Any) -> tuple[list[Any], list[Any]]:
    """What Python shows of the callers, and what the native walk sees of them."""
    shown = []
    frame = sys._getframe(1)
    while frame is not None:
        shown.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return shown, walk()[1:]


class Callee:
    def __init__(self, walk: Any) -> None:
        self.walk = walk

    def __call__(self, *args: object) -> tuple[list[Any], list[Any]]:
        return both(self.walk)

    def __lt__(self, other: object) -> bool:
        self.found = both(self.walk)
        return True


def generate(walk: Any) -> Any:
    yield both(walk)


# Python calls Python at once, or through C: then there is an entry between the frames.
WAYS = {
    "at once": lambda walk: [both(walk)],
    "an instance": lambda walk: [Callee(walk)()],
    "partial": lambda walk: [functools.partial(both, walk)()],
    "map": lambda walk: list(map(both, [walk])),
    "a generator": lambda walk: list(generate(walk)),
    "a generator in map": lambda walk: list(map(next, [generate(walk)])),
    "a comparison": lambda walk: [min(Callee(walk), Callee(walk)).found],
    "a key": lambda walk: [min([1], key=lambda _: found.append(both(walk)) or 0) and found.pop()],
}
found: list[Any] = []


@pytest.mark.parametrize("way", WAYS)
def test_the_walk_sees_what_python_shows(walk, way):
    results = WAYS[way](walk)
    assert results
    for shown, seen in results:
        assert len(shown) > 5
        assert seen == shown
