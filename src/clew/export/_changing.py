"""What a model puts into a program that is another thing in each run: a clock, a counter.

A replay on the examples would not show it: the clock moves by less than its bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew import Tensor
from clew.export._errors import ExportError
from clew.export._ir import Program, Value

__all__ = ["refuse_changing"]


def refuse_changing(first: Program, second: Program) -> None:
    """Raises where two recordings of one model with the same inputs differ.

    Raises:
        ExportError: a number, a text or a constant differs; with the line.
    """
    tables = [first.tensors, second.tensors]
    for a, b in zip(first.walk(), second.walk()):
        if a.op != b.op:
            return  # what an earlier run left behind, a cache, can make other calls
        for x, y in zip(_leaves((a.args, a.kwargs)), _leaves((b.args, b.kwargs))):
            if not _equal(x, y, tables):
                raise ExportError(
                    f"export: a value of Python differs from run to run ({_shown(x)}, then "
                    f"{_shown(y)}), so the program cannot keep it; give it as an argument, or make "
                    f"it before the export; at {a.place}"
                )


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _leaves(part)
    elif isinstance(tree, dict):
        for key in tree:
            yield key
            yield from _leaves(tree[key])
    elif isinstance(tree, slice):
        yield from _leaves((tree.start, tree.stop, tree.step))
    else:
        yield tree


def _equal(x: Any, y: Any, tables: list[dict[str, Any]]) -> bool:
    if isinstance(x, Value) or isinstance(y, Value):
        if not (isinstance(x, Value) and isinstance(y, Value)):
            return False
        if x.source is None or x.source[0] != "constant" or y.source is None:
            return True
        a, b = tables[0].get(x.source[1]), tables[1].get(y.source[1])
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
            return True
        return a.shape == b.shape and a.dtype == b.dtype and bool(a.equal(b) or _nan_apart(a, b))
    return type(x) is type(y) and repr(x) == repr(y)


def _nan_apart(a: Tensor, b: Tensor) -> bool:
    """Whether the elements are equal where NaN is equal to NaN."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _shown(x: Any) -> str:
    return f"the constant {x.source[1]}" if isinstance(x, Value) and x.source else repr(x)[:40]
