"""Functions that run when the outermost backward of a thread is over.

`Tensor.backward` is the core's own until somebody asks; from then on it notes when it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import clew


class _Thread(threading.local):
    depth = 0

    def __init__(self) -> None:
        self.waiting: list[Callable[[], Any]] = []


_thread = _Thread()
_watched = False


def at_end(function: Callable[[], Any]) -> None:
    """Calls a function when the backward that is running is over."""
    if not _thread.depth:
        raise RuntimeError("autograd: no backward is running")
    _thread.waiting.append(function)


def running() -> bool:
    """Whether this thread runs a backward."""
    return _thread.depth > 0


def _noting(backward: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> None:
        _thread.depth += 1
        try:
            backward(*args, **kwargs)
            while _thread.depth == 1 and _thread.waiting:
                _thread.waiting.pop(0)()
        finally:
            _thread.depth -= 1
            if not _thread.depth:
                _thread.waiting.clear()

    run.__name__ = run.__qualname__ = "backward"
    run.__doc__ = backward.__doc__
    return run


def watch() -> None:
    """From now on the ends of backward are noted."""
    global _watched
    if _watched:
        return
    _watched = True
    clew.Tensor.backward = _noting(clew.Tensor.backward)  # type: ignore[method-assign]
    clew.autograd.backward = _noting(clew.autograd.backward)
