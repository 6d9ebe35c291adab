"""Where long-lived objects were made, for tools that are switched on afterwards."""

from __future__ import annotations

import functools
import os
import sys
import weakref
from pathlib import PurePath
from types import FrameType
from typing import Any

from clew import _C
from clew._base import provenance

__all__ = ["in_package", "note_origin", "noted", "origin_of", "program_line"]

_PYTHON = os.path.join(os.path.dirname(os.__file__), "")
_PACKAGES = frozenset({"site-packages", "dist-packages"})

# By identity: what a user derives from our classes may compare as it likes.
_origins: dict[int, tuple[weakref.ref[Any], Any]] = {}


@functools.cache
def in_package(file: str) -> bool:
    """Whether a file belongs to a package that was installed."""
    return not _PACKAGES.isdisjoint(PurePath(file).parts)


def program_line() -> Any:
    """The line of the program that runs now, as the core hands places out: not that of an installed
    package that the program calls, unless there is nothing else."""
    at = _C._here()
    if at is None or not in_package(at[0].co_filename):
        return at
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((provenance._LIBRARY, _PYTHON, "<frozen")) and not in_package(file):
            return frame.f_code, frame.f_lasti, "", ""
        frame = frame.f_back
    return at


def note_origin(subject: Any) -> None:
    """Remembers the user's line that runs now as the one that makes an object."""
    key = id(subject)
    _origins[key] = (weakref.ref(subject, lambda _: _origins.pop(key, None)), program_line())


def origin_of(subject: Any) -> Any:
    """The place where an object was made, as the core hands it out; None where nobody knows."""
    known = _origins.get(id(subject))
    return known[1] if known is not None and known[0]() is subject else None


def noted(kind: type) -> list[Any]:
    """The objects of a class that are noted and live."""
    alive = [ref() for ref, _ in list(_origins.values())]
    return [subject for subject in alive if isinstance(subject, kind)]
