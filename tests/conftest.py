"""Paths for the suites, and the same random numbers for every test."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parent / part) for part in ("", "ops", "amp")]

# A shell's job in the background ignores Ctrl-C, and so would Python and what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--deferred", action="store_true", help="let the calls of every test wait, of any size"
    )


@pytest.fixture(autouse=True)
def _seed():
    import clew

    clew.manual_seed(0)


def _observing(leave: Callable[..., bool]) -> Callable[..., bool]:
    """How a `with pytest.raises(...)` ends: it asks for what waits, which may raise then."""

    def observe(self: Any, kind: Any, error: Any, traceback: Any) -> bool:
        from clew import _C

        if kind is None:
            try:
                _C._run_deferred()
            except Exception as found:
                kind, error, traceback = type(found), found, found.__traceback__
        return leave(self, kind, error, traceback)

    return observe


@pytest.fixture(autouse=True, scope="session")
def _raises_observes(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--deferred"):
        of = type(pytest.raises(ValueError))
        of.__exit__ = _observing(of.__exit__)  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def young_heap() -> Iterator[None]:
    """Hides what is there from the collector: to go over it a hundred times takes half a minute."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    from clew import _C

    # Those of programs say themselves what waits.
    own = "program" in item.path.parts or item.get_closest_marker("at_once") is not None
    if own or not item.config.getoption("--deferred"):
        yield
        return
    before = _C._defer(0)
    try:
        yield
    finally:
        _C._defer(before)
        _C._run_deferred()
