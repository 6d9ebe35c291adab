"""What an export says when it cannot keep a program."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["ExportError", "Place", "here", "user_line"]

_LIBRARY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_SPELLED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


class ExportError(RuntimeError):
    """A program, or a part of it, cannot be exported as it is written."""


class Place:
    """A line of the user's program: file, number, text and the module that was called."""

    __slots__ = ("file", "line", "module", "text")

    def __init__(self, file: str = "", line: int = 0, text: str = "", module: str = "") -> None:
        self.file, self.line, self.text, self.module = file, line, text, module

    def __str__(self) -> str:
        if not self.file:
            return "an unknown line"
        from clew._base.provenance import short_path

        where = f"{short_path(self.file)}:{self.line}"
        return f"{where}: `{self.text}`" if self.text else where


def is_library(file: str) -> bool:
    """Whether a source file is one of clew's own."""
    return file.startswith((_LIBRARY, _SPELLED))


def user_line(error: BaseException) -> Place:
    """The innermost line outside of this library at which an exception came up."""
    found = Place()
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not is_library(file):
            from clew._base.statements import text_at

            text = " ".join(text_at(file, trace.tb_lineno).split())[:200]
            found = Place(file, trace.tb_lineno, text)
        trace = trace.tb_next
    return found


_texts: dict[tuple[str, int], str] = {}


def here() -> Place:
    """The innermost line outside of this library."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = _texts.get((file, line))
    if text is None:
        from clew._base.statements import text_at

        text = _texts[file, line] = " ".join(text_at(file, line).split())[:200]
    return Place(file, line, text)


def in_library(depth: int) -> bool:
    """Whether the caller's caller (``depth`` frames up) is one of clew's own functions."""
    return is_library(sys._getframe(depth + 1).f_code.co_filename)
