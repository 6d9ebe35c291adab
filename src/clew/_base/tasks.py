"""What is switched on for a task of autobatch.map, where the tasks of a thread take turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from clew import _C

__all__ = ["Turns", "of_tasks", "staying", "stays"]

_Local = TypeVar("_Local", bound=threading.local)
# What each registered object holds.
_State = list[dict[str, Any]]

# Each with what it holds at first.
_locals: list[tuple[threading.local, dict[str, Any]]] = []


def of_tasks(local: _Local) -> _Local:
    """Makes what a thread-local object holds belong to the task that runs.

    Args:
        local: it is replaced as a whole; lists in it may be changed.

    Returns:
        the object.
    """
    _locals.append((local, _copied([vars(local)])[0]))
    return local


class _Staying(threading.local):
    """How many regions are open that no other task may see."""

    depth = 0


_staying = _Staying()


@contextmanager
def staying() -> Iterator[None]:
    """A region in which a task changes for a while what all tasks see: it goes on without parking,
    so that what waits runs at once where a value is asked for.
    """
    _staying.depth += 1
    try:
        yield
    finally:
        _staying.depth -= 1


def stays() -> int:
    """How many regions of `staying` are open in this thread."""
    return _staying.depth


class Turns:
    """The tasks of this thread, each of which begins with what is on as they start."""

    def __init__(self) -> None:
        self._held: _State = [vars(local) for local, _ in _locals]
        self._before = [dict(held) for held in self._held]
        self._of_hub = _copied(self._before)
        self._defaults = _defaults()

    def start(self) -> None:
        """Tasks begin."""
        self._change(_copied(self._of_hub))

    def _join(self) -> None:
        """Takes up what was registered since: files are loaded when something of them is used."""
        if len(self._held) == len(_locals):
            return
        for local, first in _locals[len(self._held) :]:
            self._held.append(vars(local))
            self._before.append(first)
            self._of_hub += _copied([first])

    def _change(self, state: _State) -> None:
        for held, own in zip(self._held, state):
            held.clear()
            held.update(own)

    def _is_of_hub(self) -> bool:
        """Whether nothing is on that was not on at first."""
        self._join()
        device, dtype = self._defaults
        if _C.get_default_dtype() is not dtype or _C.get_default_device() != device:
            return False
        return self._held == self._of_hub

    def leave(self) -> tuple[_State, Any] | None:
        """Back to what was on at first; what the task needs when it goes on, None for nothing."""
        if self._is_of_hub():
            return None
        own = [dict(held) for held in self._held], _defaults()
        self._restore()
        return own

    def resume(self, own: tuple[_State, Any] | None) -> None:
        """Brings back what `leave` gave."""
        if own is not None:
            self._change(own[0])
            _set_defaults(*own[1])

    def to_hub(self) -> None:
        """Back to what was on at first, after a task has ended."""
        if not self._is_of_hub():
            self._restore()

    def _restore(self) -> None:
        self._change(_copied(self._of_hub))
        _set_defaults(*self._defaults)

    def end(self) -> None:
        """There are no tasks any more."""
        self._change(self._before)


def _defaults() -> tuple[Any, Any]:
    """The device and the dtype of new tensors."""
    return _C.get_default_device(), _C.get_default_dtype()


def _set_defaults(device: Any, dtype: Any) -> None:
    if _C.get_default_device() != device:
        _C._set_default_device(device)
    if _C.get_default_dtype() is not dtype:
        _C._set_default_dtype(dtype)


def _copied(state: _State) -> _State:
    """A state with lists of its own."""
    return [{k: v[:] if type(v) is list else v for k, v in held.items()} for held in state]
