"""How tensors of libraries are shown."""

from __future__ import annotations

from typing import Any

from clew._tensor.text import _options, _str


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor."""
    return _str(inp, tensor_contents=tensor_contents)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A tensor's text with what is told behind its elements.

    Args:
        tensor_str: the text without its last parenthesis.
        suffixes: what is told.
        indent: of lines after the first.
        force_newline: begin a line in front of the first of them.
    """
    parts = [tensor_str]
    column = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or column + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
            force_newline = False
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(parts) + ")"
