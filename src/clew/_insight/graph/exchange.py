"""A graph as other libraries' objects."""

from __future__ import annotations

from typing import Any

from clew._insight.graph.data import GraphLike


def to_networkx(graph: GraphLike) -> Any:
    """The graph for networkx; see `Graph.to_networkx`."""
    try:
        import networkx
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(
            "to_networkx: networkx is not installed; install it, or clew with its extra viz "
            "(clew[viz])",
            name="networkx",
        ) from e
    out = networkx.MultiDiGraph()
    for node in graph.nodes:
        shape, dtype = node.outputs[0]
        at = node.location
        out.add_node(
            node.index,
            op=node.op,
            name=node.name,
            shape=shape,
            dtype=dtype,
            module=node.module,
            line=f"{at.file}:{at.line}" if at is not None else None,
            label=node.label,
            flops=node.flops,
            saved=sum(saved.nbytes for saved in node.saved),
        )
    for node in graph.nodes:
        for number, edge in enumerate(node.inputs):
            if edge is not None:
                out.add_edge(edge[0], node.index, output=edge[1], input=number)
    return out
