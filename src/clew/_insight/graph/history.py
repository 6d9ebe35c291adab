"""Tensor.history(): the operations that a tensor came from."""

from __future__ import annotations

from typing import Any

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._insight.graph.data import GraphNode
from clew._insight.graph.listing import Nodes, table
from clew._insight.graph.tables import shape_text

__all__ = ["History", "history"]


class History(Nodes):
    """The last operations of a tensor's history, latest first, as a list; printed, a table.

    Attributes:
        more: how many operations lie before those.
        reason: of a tensor without history, why it has none; else empty.
    """

    def __init__(self, nodes: list[GraphNode], more: int = 0, reason: str = "") -> None:
        super().__init__(nodes)
        self.more = more
        self.reason = reason

    def __repr__(self) -> str:
        parts = [self.reason, table(self, len(self)) if self else ""]
        parts.append(f"... {self.more:,} more" if self.more else "")
        return "\n".join(part for part in parts if part)


def history(self: Tensor, depth: int = 10) -> History:
    """The operations that led to the tensor, latest first, with their lines and modules.

    Args:
        depth: how many operations at most.

    Returns: a list of nodes that prints as a table; of a tensor without history it is empty and
    prints why there is none.

    Raises:
        ValueError: `depth` is negative.

    >>> x = clew.ones(2, 3, requires_grad=True)
    >>> y = (x * 2).exp().sum()
    >>> [node.op for node in y.history()]
    ['sum', 'exp', 'mul']
    >>> y.history(1).more
    2
    >>> print(clew.ones(2).history())
    no history: nothing that it was computed from requires grad...
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise ValueError(f"history: depth must be a number of operations, 0 or more; got {depth!r}")
    columns = _C._export_graph((self,))
    if columns["roots"][0] is None:
        return History([], reason=f"no history: {_C._why_no_grad(self).strip()}")
    count = len(columns["name"])
    operations = count - len(columns["leaves"])
    if operations == 0:
        return History([], reason=_leaf_text(self))
    first = count - min(depth, operations)
    nodes = [_node(columns, i) for i in range(count - 1, first - 1, -1)]
    return History(nodes, operations - len(nodes))


def _leaf_text(leaf: Tensor) -> str:
    found = _provenance.parameter_name(leaf)
    name = f", parameter {found[0]} of {found[1]}" if found else ""
    return f"no history: it is a leaf that requires grad{name}, of shape {shape_text(leaf.shape)}"


def _node(columns: dict[str, Any], index: int) -> GraphNode:
    at = columns["place"][index]
    place = None if at < 0 else columns["places"][at]
    return GraphNode(
        index,
        columns["name"][index],
        columns["op"][index].lstrip("_"),
        columns["sequence"][index],
        columns["inputs"][index],
        columns["outputs"][index],
        location=_provenance.location(place),
        module=place and place[2],
        module_type=place and place[3],
    )
