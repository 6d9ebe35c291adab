"""What must be so around a checkpointed function when backward runs it again, as it was at first.

What changes the state of modules for the time of a call, and puts it back after, runs functions
`within` a context that a second run enters, too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clew._base.tasks import of_tasks
from clew._C import Tensor

__all__ = ["entered", "present", "watched", "within"]

_Make = Callable[[], Any]


class _Around(threading.local):
    now: tuple[_Make, ...] = ()


_around = of_tasks(_Around())


class _Watched(threading.local):
    """Where what checkpointed functions save is noted too; None where nobody asks."""

    saved: list[Tensor] | None = None


watched = _Watched()


@contextlib.contextmanager
def within(make: _Make) -> Iterator[None]:
    """Second runs of what is checkpointed in the block happen in a context.

    Args:
        make: makes the context.
    """
    before = _around.now
    _around.now = (*before, make)
    try:
        yield
    finally:
        _around.now = before


def present() -> tuple[_Make, ...]:
    """What makes the contexts of what is checkpointed now; the outermost comes first."""
    return _around.now


@contextlib.contextmanager
def entered(makes: Sequence[_Make]) -> Iterator[None]:
    """The contexts of a second run, which are also those of what is checkpointed within it.

    Args:
        makes: what makes them.
    """
    with contextlib.ExitStack() as stack:
        for make in makes:
            stack.enter_context(make())
            stack.enter_context(within(make))
        yield
