"""What a model puts into a program that is another thing in each run: a clock, a counter.

A replay on the examples would not show it: the clock moves by less than its bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew import Tensor
from clew.export._errors import ExportError
from clew.export._ir import Node, Program, Value

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
        _compare(_parts(a), _parts(b), tables, f"at {a.place}")
    ends = [(p.out_tree, p.body.results) for p in (first, second)]
    _compare(ends[0], ends[1], tables, "in what the model returns")


def _parts(node: Node) -> tuple[Any, ...]:
    """What a call reads, and what its branches and loop bodies give."""
    return node.args, node.kwargs, [block.results for block in node.blocks]


def _compare(first: Any, second: Any, tables: list[dict[str, Any]], where: str) -> None:
    for x, y in zip(_leaves(first), _leaves(second)):
        if not _equal(x, y, tables):
            raise ExportError(
                f"export: a value of Python differs from run to run ({_shown(x)}, then "
                f"{_shown(y)}), so the program cannot keep it; give it as an argument, or make it "
                f"before the export; {where}"
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
        return a.shape == b.shape and a.dtype == b.dtype and _same_elements(a, b)
    return type(x) is type(y) and repr(x) == repr(y)


def _same_elements(a: Tensor, b: Tensor) -> bool:
    """Whether they are equal, NaN to NaN, too."""
    return a.equal(b) or bool(((a == b) | ((a != a) & (b != b))).all())


def _shown(x: Any) -> str:
    return f"the constant {x.source[1]}" if isinstance(x, Value) and x.source else repr(x)[:40]
