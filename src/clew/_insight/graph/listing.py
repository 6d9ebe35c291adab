"""Lists of nodes that print as a table."""

from __future__ import annotations

import os

from clew._insight.graph.data import GraphNode
from clew._insight.graph.tables import WIDTH, clip, fit, shape_text
from clew._tensor.html import as_printed

SHOWN = 40


class Nodes(list[GraphNode]):
    """Some nodes of a graph, a list; printed, a table of op, shape, line and module."""

    _repr_html_ = as_printed

    def __repr__(self) -> str:
        return table(self) if self else "no nodes"


def line_text(node: GraphNode) -> str:
    """``model.py:48 `y = x @ w```; what is known of where a node was made."""
    if node.location is None:
        return node.label or ""
    return f"{os.path.basename(node.location.file)}:{node.location.line} {node.location.source}"


def table(nodes: list[GraphNode], limit: int = SHOWN) -> str:
    """The nodes as text of at most 100 columns."""
    shown = nodes[:limit]
    names = ["op", *(node.op for node in shown)]
    shapes = ["shape", *(", ".join(shape_text(s) for s, _ in node.outputs) for node in shown)]
    modules = ["module", *(module_text(node) for node in shown)]
    if not any(modules[1:]):
        modules = [""] * len(modules)
    lines = ["line", *(line_text(node) for node in shown)]
    widths = [
        min(max(map(len, column)), most)
        for column, most in ((names, 20), (shapes, 24), (modules, 28))
    ]
    rest = WIDTH - sum(widths) - 6
    rows = [
        "  ".join((fit(n, widths[0]), fit(s, widths[1]), fit(m, widths[2]), clip(at, rest)))
        for n, s, m, at in zip(names, shapes, modules, lines)
    ]
    if len(nodes) > limit:
        rows.append(f"... {len(nodes) - limit:,} more")
    return "\n".join(row.rstrip() for row in rows)


def module_text(node: GraphNode) -> str:
    """The module's path and class."""
    if node.module is None:
        return ""
    return f"{node.module} {node.module_type}" if node.module else node.module_type or ""
