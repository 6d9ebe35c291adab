"""Functions of the library that are replaced for a while."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Patches"]


class Patches:
    """What was put into the library, and how to take it out again, the last first."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Replaces a function by one that calls around(original, *args, **kwargs)."""
        original = owner.__dict__[name]

        @functools.wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        setattr(owner, name, patched)
        self.undo.append(lambda: setattr(owner, name, original))

    def remove(self) -> None:
        """Takes everything out."""
        while self.undo:
            self.undo.pop()()
