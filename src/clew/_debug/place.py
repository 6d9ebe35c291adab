"""Lines of the user's program, as findings name them."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew import _C, _provenance

__all__ = ["Place", "here", "placed"]


class Place(NamedTuple):
    """A line of the user's program: where something happened, as text and as numbers."""

    file: str
    line: int
    text: str

    @property
    def short(self) -> str:
        """``train.py:12``"""
        return f"{_provenance.short_path(self.file)}:{self.line}"


def placed(place: tuple[Any, ...] | None) -> Place | None:
    """A place of the core's as text."""
    if place is None:
        return None
    at = _provenance.Location(place[0], place[1])
    return Place(
        at.file, at.line, _provenance.describe(place[0], place[1], place[2] or "", place[3] or "")
    )


def here() -> Place | None:
    """The user's line that runs now."""
    return placed(_C._here())
