"""Where a gradient that is all zeros became so: measured by one more backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from clew import _C
from clew._C import ones_like
from clew._insight.graph.listing import line_text, module_text

if TYPE_CHECKING:
    from clew._C import Tensor
    from clew._insight.graph.graph import Graph

# Beyond this many nodes on the way the measurement is left out.
LIMIT = 20_000


def zero_report(graph: Graph, index: int, below: list[int]) -> str:
    """The continuation of a message about a leaf with a zero gradient: the operations that got a
    gradient and gave back only zeros towards the leaf.
    """
    roots = [ref() for ref in graph._root_tensors]
    leaf = graph._tensors[index]()
    if leaf is None or any(root is None for root in roots):
        return "; the result is gone, so that the operation cannot be found any more"
    if graph.has_run():
        return (
            "; backward has let go of the graph, so that the operation cannot be found any more: "
            "ask after backward(retain_graph=True)"
        )
    if len(below) > LIMIT:
        return f"; more than {LIMIT:,} operations lie on the way, too many to look at each"
    stops = _measure(graph, [root for root in roots if root is not None], leaf, below)
    if not stops:
        return ", although a gradient of ones at the results does not give zeros"
    named = []
    for at in stops[:5]:
        node = graph.nodes[at]
        module = f" ({module_text(node)})" if module_text(node) else ""
        named.append(f"{node.op}{module} {line_text(node)}")
    more = f"; ... {len(stops) - 5} more" if len(stops) > 5 else ""
    return "; the gradient becomes zero in: " + "; ".join(named) + more


def nodes_behind(roots: list[Tensor], by_sequence: dict[int, int]) -> Iterator[tuple[Any, int]]:
    """The autograd nodes that results come from, each once, with their places in a drawn graph;
    `by_sequence` holds the places by the nodes' sequence numbers.
    """
    seen: set[int] = set()
    pending = [root.grad_fn for root in roots if root.grad_fn is not None]
    while pending:
        node = pending.pop()
        number = node._sequence_nr()
        if number in seen or number not in by_sequence:
            continue
        seen.add(number)
        yield node, by_sequence[number]
        pending += [fn for fn, _ in node.next_functions if fn is not None]


def _is_zero(grad: Tensor | None) -> bool:
    return grad is None or grad.count_nonzero().item() == 0


def _measure(graph: Graph, roots: list[Tensor], leaf: Tensor, below: list[int]) -> list[int]:
    """Nodes that got something and gave nothing towards the leaf, those near the leaf first."""
    on_the_way = set(below)
    by_sequence = {graph.nodes[i].sequence: i for i in below if graph.nodes[i].op != "leaf"}
    stops: list[int] = []
    handles = []

    def watch(node: Any, at: int) -> None:
        ways = [
            i
            for i, edge in enumerate(graph.nodes[at].inputs)
            if edge is not None and edge[0] in on_the_way
        ]

        def look(given: Any, got: Any) -> None:
            if not all(map(_is_zero, got)) and all(_is_zero(given[i]) for i in ways):
                stops.append(at)

        handles.append(node.register_hook(look))

    for node, at in nodes_behind(roots, by_sequence):
        watch(node, at)
    try:
        ones = tuple(ones_like(root) for root in roots)
        (found,) = _C._run_backward(tuple(roots), ones, True, False, (leaf,))
    finally:
        for handle in handles:
            handle.remove()
    return sorted(stops) if _is_zero(found) else []
