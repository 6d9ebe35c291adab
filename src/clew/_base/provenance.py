"""Places in the user's program: what a node, a write or a cut remembers, turned into text when
asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from clew import _C
from clew._C import Node, Tensor

__all__ = ["Location"]


class Location:
    """A place in a program: file, line, column, function and text of the line.

    Args:
        code: the code object.
        offset: of the instruction, in bytes.

    >>> x = clew.ones(2, requires_grad=True)
    >>> y = x * 2
    >>> y.grad_fn.location.source
    'y = x * 2'
    """

    __slots__ = ("_span", "code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset
        self._span: tuple[Any, ...] | None = None

    @property
    def span(self) -> tuple[int, int | None, int | None, int | None]:
        """First line, last line, first column, last column (from 0; None where not known)."""
        if self._span is None:
            self._span = _span(self.code, self.offset)
        return self._span

    @property
    def file(self) -> str:
        """The file as the interpreter knows it."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.span[0]

    @property
    def column(self) -> int | None:
        """The column where the expression begins, from 0; None before Python 3.11."""
        return self.span[2]

    @property
    def function(self) -> str:
        """The function's name, with its class where Python keeps it."""
        return getattr(self.code, "co_qualname", self.code.co_name)

    @property
    def source(self) -> str:
        """The line's text without indentation, or the whole statement's where it stands on several
        lines; empty when the file cannot be read."""
        from clew._base.statements import text_at  # only when something is shown

        return text_at(self.file, self.line)

    @property
    def short(self) -> str:
        """``model.py:48``, the file relative to the current folder when it lies below it."""
        return f"{short_path(self.file)}:{self.line}"

    def __str__(self) -> str:
        name = "" if self.function == "<module>" else f" in {self.function}"
        text = f"{self.short}{name}"
        return f"{text}: `{self.source}`" if self.source else text

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Location):
            return NotImplemented
        return self.code is other.code and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((id(self.code), self.offset))


def _span(code: CodeType, offset: int) -> tuple[Any, ...]:
    if not hasattr(code, "co_positions"):
        line = code.co_firstlineno
        for start, end, at in code.co_lines():
            if start <= offset < end and at is not None:
                line = at
        return (line, None, None, None)
    for i, span in enumerate(code.co_positions()):
        if 2 * i == offset:
            return span if span[0] is not None else (code.co_firstlineno, None, None, None)
    return (code.co_firstlineno, None, None, None)


def _cell(path: str) -> str | None:
    """The cell of a notebook or of IPython, as ``In[3]``, that a name of a file stands for."""
    if not path.startswith("<ipython-input-") and "ipykernel_" not in path:
        return None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = name_of(path) if name_of is not None else None
    return found[1] if found else None


def short_path(path: str) -> str:
    """Relative to the current folder when it lies below it; ``In[3]`` of a notebook's cell."""
    cell = _cell(path)
    if cell is not None:
        return cell
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else path


def user_level() -> int:
    """The stacklevel that a warning of the caller needs in order to point at the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        frame, level = frame.f_back, level + 1
    return level


# As code objects spell it: sys.path may lead here by "./src" or "..".
_LIBRARY = os.path.join(os.path.dirname(os.path.dirname(user_level.__code__.co_filename)), "")


def location(place: tuple[Any, ...] | None) -> Location | None:
    """The location of a place that the core hands out."""
    return None if place is None else Location(place[0], place[1])


def describe(code: CodeType, offset: int, path: str, kind: str) -> str:
    """What error messages say of a place; the core calls it."""
    text = str(Location(code, offset))
    if not kind:
        return text
    return f"{text} (module {path}: {kind})" if path else f"{text} (module {kind})"


# Code of `clew run`, which runs the user's program: left out of the program's tracebacks.
beneath: set[CodeType] = set()


def describe_calls(places: list[tuple[CodeType, int]]) -> str:
    """A traceback of the forward pass, from its places, innermost first; the core calls it.

    Empty where there is only the one line, which the message names anyway.
    """
    while places and places[-1][0] in beneath:
        places = places[:-1]
    if len(places) < 2:
        return ""
    lines = ["\n  Traceback of the forward call (most recent call last):"]
    for code, offset in reversed(places):
        at = Location(code, offset)
        lines.append(f'    File "{at.file}", line {at.line}, in {at.function}')
        if at.source:
            lines.append(f"      {at.source}")
    return "\n".join(lines)


def parameter_name(tensor: Tensor) -> tuple[str, str] | None:
    """Name and model class of a parameter or buffer of a model that was called."""
    for root in _C._called_roots():
        for table in (root.named_parameters(), root.named_buffers()):
            for name, member in table:
                if member is tensor:
                    return name, type(root).__name__
    return None


def _node_location(node: Node) -> Location | None:
    """The user's line that made the node; None for leaves' AccumulateGrad."""
    return location(node._place)


def _node_module(node: Node) -> str | None:
    """Path of the module that was being called, ``"blocks.3.attn"``: empty for the outermost one,
    None outside of modules."""
    place = node._place
    return None if place is None else place[2]


def _node_module_type(node: Node) -> str | None:
    """Class of the module that was being called."""
    place = node._place
    return None if place is None else place[3]


class _Shown:
    """A property that gives way to the instance: a custom Function's ctx is its node, and what
    forward() keeps there may have any name."""

    def __init__(self, get: Callable[[Node], Any]) -> None:
        self._get = get
        self.__doc__ = get.__doc__

    def __get__(self, node: Node | None, owner: type | None = None) -> Any:
        return self if node is None else self._get(node)


Node.location = _Shown(_node_location)
Node.module = _Shown(_node_module)
Node.module_type = _Shown(_node_module_type)
_C._set_library_folder(_LIBRARY)
