"""The leaves that transforms and dual levels make in tasks of autobatch.map, whose samples share
a graph.
"""

from __future__ import annotations

import itertools
import threading
import weakref

from clew import _C
from clew._base.tasks import of_tasks
from clew._C import Tensor

__all__ = ["leaves_of_others", "note_leaf", "shares_graph"]


class _Task(threading.local):
    """The task that runs; it gets its number when it first makes a leaf."""

    number = 0


class _Made(threading.local):
    """The leaves of all tasks of a thread, as long as somebody holds them, and whose they are."""

    def __init__(self) -> None:
        self.by: weakref.WeakKeyDictionary[Tensor, int] = weakref.WeakKeyDictionary()


_task = of_tasks(_Task())
_made = _Made()
_numbers = itertools.count(1)


def shares_graph() -> bool:
    """Whether a task runs: other samples may need what its backward would free."""
    return bool(_C._parks())


def note_leaf(leaf: Tensor) -> None:
    """Notes a leaf as one of the task that runs."""
    if not shares_graph():
        return
    if not _task.number:
        _task.number = next(_numbers)
    _made.by[leaf] = _task.number


def leaves_of_others() -> tuple[Tensor, ...]:
    """The leaves that other tasks made. The graph of a batch reaches those of all its samples,
    but no sample depends on those of another one.
    """
    if not shares_graph():
        return ()
    return tuple(leaf for leaf, number in _made.by.items() if number != _task.number)
