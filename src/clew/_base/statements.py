"""The text of statements that stand on several lines, in one line for messages."""

from __future__ import annotations

import ast
import linecache

__all__ = ["names_in", "text_at"]

WIDTH = 160  # characters of a statement that are shown

# By file: the lines as linecache keeps them, and of each line of a statement that has several its
# first and last one.
_known: dict[str, tuple[list[str], dict[int, tuple[int, int]]]] = {}


def text_at(file: str, line: int) -> str:
    """The line's text without indentation; of a statement on several lines all of it. Empty when
    the file cannot be read."""
    own = linecache.getline(file, line).strip()
    lines = linecache.getlines(file)
    known = _known.get(file)
    if known is None or known[0] is not lines:
        if len(_known) > 16:
            _known.clear()
        known = _known[file] = (lines, _spans(lines))
    span = known[1].get(line)
    if span is None:
        return own
    return _joined([text.strip() for text in lines[span[0] - 1 : span[1]]])


def names_in(node: ast.AST) -> set[str]:
    """The variables that stand in an expression."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _spans(lines: list[str]) -> dict[int, tuple[int, int]]:
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):  # not Python as it stands, such as a notebook's magic
        return {}
    found: dict[int, tuple[int, int]] = {}
    for statement in ast.walk(tree):  # those inside of others come later
        if not isinstance(statement, ast.stmt):
            continue
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        body = getattr(statement, "body", None) or getattr(statement, "cases", None)
        if body:
            inner = body[0]
            above = [d.lineno for d in getattr(inner, "decorator_list", ())]
            begins = getattr(inner, "lineno", None) or getattr(inner.pattern, "lineno", first)
            last = min(last, max(first, min([begins, *above]) - 1))
        for line in range(first, last + 1):
            found.pop(line, None)
            if last > first:
                found[line] = (first, last)
    return found


def _joined(parts: list[str]) -> str:
    text = ""
    for part in parts:
        if "#" in part and not ("'" in part or '"' in part):
            part = part.partition("#")[0].rstrip()
        part = part.removesuffix("\\").rstrip()
        if not part:
            continue
        if text and part[0] in ")]}":
            text = text.removesuffix(",")
        apart = text and text[-1] not in "([{" and part[0] not in ")]}."
        text += (" " if apart else "") + part
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
