"""Functions of the library that are replaced for a while."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Patches"]

# Functions put in by tools that are over, and what each stands before. One stays while another
# tool's lies over it.
_gone: dict[Any, Any] = {}


class Patches:
    """What was put into the library, and how to take it out again, the last first."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Replaces a function by one that calls around(original, *args, **kwargs)."""
        original = owner.__dict__[name]

        @functools.wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            if patched in _gone:  # another tool came later and is still there: it calls this
                return original(*args, **kwargs)
            return around(original, *args, **kwargs)

        def undo() -> None:
            _gone[patched] = original
            now = owner.__dict__[name]
            while now in _gone:
                now = _gone.pop(now)
            if now is not owner.__dict__[name]:
                setattr(owner, name, now)

        setattr(owner, name, patched)
        self.undo.append(undo)

    def remove(self) -> None:
        """Takes everything out."""
        while self.undo:
            self.undo.pop()()
