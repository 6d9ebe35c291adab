"""Lines of the user's program, as findings name them."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from clew import _C
from clew._base import provenance as _provenance
from clew._base.origins import in_package, program_line

__all__ = ["Place", "called_from_outside", "here", "placed"]


class Place:
    """A line of the user's program where something happened; its text is made when asked for.

    Args:
        raw: the place as the core hands it out; None where file and line are given.
        file: of the line.
        line: its number.
    """

    __slots__ = ("_at", "_raw", "_told")

    def __init__(self, raw: tuple[Any, ...] | None, file: str = "", line: int = 0) -> None:
        self._raw = raw
        self._at = None if raw is not None else (file, line)
        self._told: str | None = None

    def _found(self) -> tuple[str, int]:
        if self._at is None:
            assert self._raw is not None
            at = _provenance.Location(self._raw[0], self._raw[1])
            self._at = at.file, at.line
        return self._at

    @property
    def file(self) -> str:
        """The file as the interpreter knows it."""
        return self._found()[0]

    @property
    def line(self) -> int:
        """The line's number, from 1."""
        return self._found()[1]

    @property
    def short(self) -> str:
        """``train.py:12``"""
        return f"{_provenance.short_path(self.file)}:{self.line}"

    @property
    def source(self) -> str:
        """The statement that stands there."""
        from clew._base.statements import text_at

        return text_at(self.file, self.line)

    @property
    def text(self) -> str:
        """``train.py:12 in forward: `...` (module fc1: Linear)``"""
        if self._told is None:
            if self._raw is not None:
                code, offset, path, kind = self._raw
                self._told = _provenance.describe(code, offset, path or "", kind or "")
            else:
                from clew._base.statements import text_at

                source = text_at(self.file, self.line)
                self._told = f"{self.short}: `{source}`" if source else self.short
        return self._told


def placed(raw: tuple[Any, ...] | None) -> Place | None:
    """A place that the core hands out."""
    return None if raw is None else Place(raw)


def _in_library(code: CodeType) -> bool:
    return code.co_filename.startswith(_provenance._LIBRARY)


def called_from_outside() -> Place | None:
    """The user's line that called the outermost module that runs now; None in no module, and where
    its forward is not the user's."""
    frame: FrameType | None = sys._getframe(1)
    outermost = None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount and not _in_library(code):
            if isinstance(frame.f_locals.get(code.co_varnames[0]), _C.ModuleBase):
                outermost = frame
        frame = frame.f_back
    frame = outermost and outermost.f_back
    while frame is not None and (_in_library(frame.f_code) or in_package(frame.f_code.co_filename)):
        frame = frame.f_back
    return None if frame is None else placed((frame.f_code, frame.f_lasti, "", ""))


def here() -> Place | None:
    """The program's line that runs now."""
    return placed(program_line())
