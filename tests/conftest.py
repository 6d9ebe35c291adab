"""Paths for the suites, and the same random numbers for every test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent / part) for part in ("", "ops", "amp")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--deferred", action="store_true", help="let the calls of every test wait, of any size"
    )


@pytest.fixture(autouse=True)
def _seed():
    import clew

    clew.manual_seed(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    from clew import _C

    if not item.config.getoption("--deferred"):
        yield
        return
    before = _C._defer(0)
    try:
        yield
    finally:
        _C._defer(before)
        _C._run_deferred()
