"""From the core's lists to records of nodes."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from clew._base import provenance as _provenance
from clew._insight.graph.data import GraphNode, Saved
from clew._ops import flops as _flops


def make_nodes(columns: dict[str, Any], labels: dict[int, str]) -> list[GraphNode]:
    """The records of all nodes, without Python's cycle collector looking at them on the way."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _fill_nodes(columns, labels)
    finally:
        if was_on:
            gc.enable()


def _fill_nodes(columns: dict[str, Any], labels: dict[int, str]) -> list[GraphNode]:
    outputs, parts = columns["outputs"], columns["parts"]
    # One more for the number -1.
    locations = [*map(_provenance.location, columns["places"]), None]
    modules = [*(place[2] for place in columns["places"]), None]
    types = [*(place[3] for place in columns["places"]), None]
    known: dict[tuple[Any, ...], int | None] = {}
    nodes: list[GraphNode] = []
    rows = zip(
        columns["name"],
        columns["op"],
        columns["sequence"],
        columns["inputs"],
        outputs,
        columns["saved"],
        columns["place"],
        columns["attributes"],
    )
    for index, (name, op, sequence, inputs, outs, kept, at, attributes) in enumerate(rows):
        ins = [None if e is None else outputs[e[0]][e[1]] for e in inputs]
        saved = []
        for role, number, meta, nbytes, storage in kept or ():
            if meta is None:
                saved.append(Saved(f"{role} (packed by a hook)", (), "", 0, -1))
                continue
            saved.append(Saved(role, meta[0], meta[1], nbytes, storage))
            if number >= 0 and ins[number] is None:
                ins[number] = meta
        results = outs
        if index in parts:  # a write into a view counts what is written
            results = [parts[index]]
            ins[0] = parts[index]
        values = tuple(attributes.values()) if attributes else ()
        key = (op, values, *map(id, ins), 0, *map(id, results))
        if key not in known:
            known[key] = (
                0 if op == "leaf" else _flops.flops(op, _shapes(ins), _shapes(results), attributes)
            )
        node = GraphNode(
            index,
            name,
            op.lstrip("_"),
            sequence,
            inputs,
            outs,
            saved,
            locations[at],
            modules[at],
            types[at],
            labels.get(index),
            known[key],
        )
        nodes.append(node)
    return nodes


def _shapes(metas: Sequence[Any]) -> list[Any]:
    return [None if meta is None else meta[0] for meta in metas]
