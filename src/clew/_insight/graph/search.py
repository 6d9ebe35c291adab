"""The conditions that Graph.find looks for."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clew._insight.graph.data import GraphNode
from clew._insight.graph.listing import Nodes

if TYPE_CHECKING:
    from clew._insight.graph.graph import Graph


def search(
    graph: Graph,
    text: str | None,
    op: str | None,
    name: str | None,
    module: str | None,
    line: int | None,
    file: str | None,
    shape: Sequence[int | None] | None,
    dtype: Any,
) -> Nodes:
    """The nodes that fit every condition that is not None; see `Graph.find`."""
    kind = None if dtype is None else str(dtype).rpartition(".")[2]
    found = list(zip(graph.nodes, graph._places))
    if line is not None or file is not None:
        there = {i for i, at in enumerate(graph._locations[:-1]) if _is_at(at, line, file)}
        found = [pair for pair in found if pair[1] in there]
    if text is not None:
        low = text.lower()
        found = [pair for pair in found if _says(pair[0], low)]
    nodes = [node for node, _ in found]
    if op is not None:
        nodes = [node for node in nodes if fnmatch.fnmatchcase(node.op, op)]
    if name is not None:
        nodes = [node for node in nodes if _matches(name, node.name, node.label)]
    if module is not None:
        nodes = [node for node in nodes if _below(module, node)]
    if shape is not None:
        nodes = [node for node in nodes if any(_fits(shape, s) for s, _ in node.outputs)]
    if kind is not None:
        nodes = [node for node in nodes if any(kind == d for _, d in node.outputs)]
    return Nodes(nodes)


def _is_at(at: Any, line: int | None, file: str | None) -> bool:
    if line is not None and at.line != line:
        return False
    return file is None or at.file == file or at.file.endswith("/" + file.lstrip("/"))


def _says(node: GraphNode, low: str) -> bool:
    texts = (node.op, node.name, node.label, node.module, node.module_type)
    return any(text is not None and low in text.lower() for text in texts)


def _matches(pattern: str, *names: str | None) -> bool:
    return any(n is not None and fnmatch.fnmatchcase(n, pattern) for n in names)


def _below(pattern: str, node: GraphNode) -> bool:
    if node.module is None:
        path = (node.label or "").rpartition(".")[0] if node.op == "leaf" else ""
    else:
        path = node.module
    if not path:
        return node.module == "" and pattern in ("", "*")
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, pattern + ".*")


def _fits(wanted: Sequence[int | None], shape: tuple[int, ...]) -> bool:
    return len(wanted) == len(shape) and all(w is None or w == s for w, s in zip(wanted, shape))
