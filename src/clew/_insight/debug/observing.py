"""The core shows operations to one Python function of a thread; here several tools share it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

from clew import _C

__all__ = ["BACKWARD", "Observation"]

# What the core names a backward that is about to run; shown whatever names are asked for.
BACKWARD = frozenset({"backward", "retaining", "recorded", "grad"})

_Callback = Callable[[str, list[Any], list[Any]], object]


class _Open(threading.local):
    def __init__(self) -> None:
        self.all: list[Observation] = []


_open = _Open()


class Observation:
    """One tool's look at this thread's operations, until it is closed.

    Args:
        callback: gets the name of an operation that has run, what went in and what came out; of a
            backward that is about to run (`BACKWARD`), its roots and nothing.
        names: of the operations to show.
        few: those of them of which the first calls that are alike are enough: since the last
            backward, by one instruction in one module, of tensors of the same shapes and dtypes
            that require grad or not. Of single numbers and integers all are shown, and all where
            another tool looks, too.
        most: how many are enough.
    """

    def __init__(
        self,
        callback: _Callback,
        names: Collection[str],
        few: Collection[str] = (),
        most: int = 0,
    ) -> None:
        self._callback = callback
        self._names = frozenset(names)
        self._few = frozenset(few)
        self._most = most
        _open.all = [*_open.all, self]
        _install()

    def show(self, names: Collection[str]) -> None:
        """Shows other operations from now on; in another thread than its own it does nothing."""
        if self in _open.all and (len(names) != len(self._names) or names != self._names):
            self._names = frozenset(names)
            _install()

    @staticmethod
    def closely() -> None:
        """Has every call shown until the next backward."""
        _C._observe_closely()

    def close(self) -> None:
        """Ends it; others go on."""
        _open.all = [each for each in _open.all if each is not self]
        _install()


def _install() -> None:
    found = _open.all
    if not found:
        _C._observe(None, frozenset())
    elif len(found) == 1:
        only = found[0]
        _C._observe(only._callback, only._names, only._few, only._most)
    else:
        _C._observe(_tell_all, frozenset().union(*(each._names for each in found)))


def _tell_all(name: str, given: list[Any], got: list[Any]) -> None:
    for each in _open.all:
        if name in each._names or (name in BACKWARD and not got):
            each._callback(name, given, got)
