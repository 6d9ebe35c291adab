"""What an export says when it cannot keep a program."""

from __future__ import annotations

import os
import sys
from typing import Any

from clew._base import function_modes as _function_modes
from clew._base import overriding as _overriding

__all__ = ["ExportError", "Place", "here", "raised_at"]

_LIBRARY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_STANDARD = tuple({p + "/lib/python" for p in (sys.base_prefix, sys.prefix)})
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


def is_standard(file: str) -> bool:
    """Whether a source file is of Python's standard library, NumPy or SciPy."""
    if file.startswith("<frozen"):
        return True
    added = file.rpartition("-packages/")[2]
    return added.startswith(("numpy/", "scipy/")) or (added == file and file.startswith(_STANDARD))


def _of_user(file: str) -> bool:
    return not is_library(file) and not is_standard(file)


_texts: dict[tuple[str, int], str] = {}


def here() -> Place:
    """The innermost line outside of this library."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and not _of_user(frame.f_code.co_filename):
        frame = frame.f_back
    return _place(frame.f_code.co_filename, frame.f_lineno)


def raised_at(error: BaseException) -> Place:
    """The innermost line outside of this library at which an exception was raised."""
    found, trace = Place(), error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if _of_user(file):
            found = _place(file, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _place(file: str, line: int) -> Place:
    text = _texts.get((file, line))
    if text is None:
        from clew._base.statements import text_at

        text = _texts[file, line] = " ".join(text_at(file, line).split())[:200]
    return Place(file, line, text)


def library_asks() -> str:
    """The function of the library that made the call that is answered; empty where one of the
    user's did."""
    frame: Any = sys._getframe(1)
    own = (os.path.dirname(__file__), _overriding.__file__, _function_modes.__file__)
    while frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    return frame.f_code.co_name if is_library(frame.f_code.co_filename) else ""


def in_library(depth: int) -> bool:
    """Whether the caller's caller (``depth`` frames up) is one of clew's own functions."""
    return is_library(sys._getframe(depth + 1).f_code.co_filename)
