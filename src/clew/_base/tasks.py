"""What is switched on for a task of autobatch.map, where the tasks of a thread take turns."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

__all__ = ["Turns", "of_tasks"]

_Local = TypeVar("_Local", bound=threading.local)
# What each registered object holds.
_State = list[dict[str, Any]]

_locals: list[threading.local] = []


def of_tasks(local: _Local) -> _Local:
    """Makes what a thread-local object holds belong to the task that runs.

    Args:
        local: it is replaced as a whole; lists in it may be changed.

    Returns:
        the object.
    """
    _locals.append(local)
    return local


class Turns:
    """The tasks of this thread, each of which begins with what is on as this is made."""

    def __init__(self) -> None:
        self._held: _State = [vars(local) for local in _locals]
        self._before = [dict(held) for held in self._held]
        self._of_hub = _copied(self._before)
        self._change(_copied(self._of_hub))

    def _change(self, state: _State) -> None:
        for held, own in zip(self._held, state):
            held.clear()
            held.update(own)

    def leave(self) -> _State | None:
        """What the task that is parked needs when it goes on; None where it switched nothing."""
        return None if self._held == self._of_hub else [dict(held) for held in self._held]

    def resume(self, state: _State | None) -> None:
        """Brings back what `leave` gave."""
        if state is not None:
            self._change(state)

    def to_hub(self) -> None:
        """Back to what was on at first."""
        if self._held != self._of_hub:
            self._change(_copied(self._of_hub))

    def end(self) -> None:
        """There are no tasks any more."""
        self._change(self._before)


def _copied(state: _State) -> _State:
    """A state with lists of its own."""
    return [{k: v[:] if type(v) is list else v for k, v in held.items()} for held in state]
