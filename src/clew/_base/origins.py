"""Where long-lived objects were made, for tools that are switched on afterwards."""

from __future__ import annotations

import weakref
from typing import Any

from clew import _C

__all__ = ["note_origin", "noted", "origin_of"]

# By identity: what a user derives from our classes may compare as it likes.
_origins: dict[int, tuple[weakref.ref[Any], Any]] = {}


def note_origin(subject: Any) -> None:
    """Remembers the user's line that runs now as the one that makes an object."""
    key = id(subject)
    _origins[key] = (weakref.ref(subject, lambda _: _origins.pop(key, None)), _C._here())


def origin_of(subject: Any) -> Any:
    """The place where an object was made, as the core hands it out; None where nobody knows."""
    known = _origins.get(id(subject))
    return known[1] if known is not None and known[0]() is subject else None


def noted(kind: type) -> list[Any]:
    """The objects of a class that are noted and live."""
    alive = [ref() for ref, _ in list(_origins.values())]
    return [subject for subject in alive if isinstance(subject, kind)]
