"""Finds steps that look like a pattern and puts others in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clew.fx.graph import Graph
from clew.fx.graph_module import GraphModule
from clew.fx.node import Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A place where the pattern was found: its last step, and a step for each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _fits(pattern: Any, found: Any, places: dict[Node, Any], module: Any) -> bool:
    if isinstance(pattern, Node):
        if pattern in places:
            return places[pattern] is found
        if pattern.op == "placeholder":
            places[pattern] = found
            return True
        if not isinstance(found, Node) or pattern.op != found.op:
            return False
        if pattern.target != found.target:
            return False
        places[pattern] = found
        return _fits(pattern.args, found.args, places, module) and _fits(
            pattern.kwargs, found.kwargs, places, module
        )
    if isinstance(pattern, (tuple, list)):
        return (
            isinstance(found, (tuple, list))
            and len(pattern) == len(found)
            and all(_fits(p, f, places, module) for p, f in zip(pattern, found))
        )
    if isinstance(pattern, dict):
        return (
            isinstance(found, dict)
            and pattern.keys() == found.keys()
            and all(_fits(p, found[k], places, module) for k, p in pattern.items())
        )
    return not isinstance(found, Node) and pattern == found


def _graph_of(source: Any) -> Graph:
    if isinstance(source, Graph):
        return source
    if isinstance(source, GraphModule):
        return source.graph
    from clew.fx._symbolic_trace import symbolic_trace

    return symbolic_trace(source).graph


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | Any, replacement: Callable[..., Any] | Any
) -> list[Match]:
    """Replaces steps of a module's graph wherever they look like those of a pattern.

    Args:
        gm: the module, whose graph changes.
        pattern: a function, module or graph; its inputs stand for anything.
        replacement: what is put there; takes the same inputs.

    Returns:
        The places where the pattern was found.

    Example:
        >>> from clew.fx import replace_pattern
        >>> gm = clew.fx.symbolic_trace(lambda x: clew.relu(x) + 1)
        >>> len(replace_pattern(gm, lambda a: clew.relu(a), lambda a: clew.neg(a)))
        1
        >>> gm(clew.ones(1))
        tensor([0.])
    """
    wanted, instead = _graph_of(pattern), _graph_of(replacement)
    end = wanted.output_node().args[0]
    if not isinstance(end, Node):
        raise NotImplementedError("replace_pattern: a pattern returns one value")
    inputs = wanted.find_nodes(op="placeholder")
    taken: set[Node] = set()
    matches = []
    for node in list(gm.graph.nodes):
        places: dict[Node, Any] = {}
        if not _fits(end, node, places, gm):
            continue
        inner = [f for p, f in places.items() if p.op != "placeholder"]
        if any(f in taken for f in inner):
            continue
        # A result inside the pattern that something outside uses must stay.
        if any(u not in inner for f in inner if f is not node for u in f.users):
            continue
        taken.update(inner)
        matches.append(Match(node, places))
    for match in matches:
        steps: dict[Node, Any] = {}
        for own, theirs in zip(instead.find_nodes(op="placeholder"), inputs):
            steps[own] = match.nodes_map.get(theirs)
        with gm.graph.inserting_before(match.anchor):
            result = gm.graph.graph_copy(instead, steps)
        match.anchor.replace_all_uses_with(result)
        for p, found in reversed(list(match.nodes_map.items())):
            if p.op != "placeholder" and isinstance(found, Node) and not found.users:
                gm.graph.erase_node(found)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return matches
