"""The steps that a page's slider goes through: what was measured in each, and of which picture.

Steps whose graphs are equal, as those of a training loop are, share one picture.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew._insight.graph.collapse import Child, Cluster, Picture
from clew._insight.graph.data import GraphLike
from clew._insight.graph.layout import Content

# A box of many modules lists the activations of this many.
MANY = 24


@dataclass
class Frame:
    """One step.

    Args:
        base: the number of its picture.
        graph: what was measured.
        drawn: the picture's edges.
    """

    base: int
    graph: Any
    drawn: Drawn

    def data(self) -> dict[str, Any]:
        """What the page's script is told: of each cluster's contents, the gradients on the edges in
        their order; of each cluster, activations."""
        found: dict[str, Any] = {"base": self.base, "title": getattr(self.graph, "title", "")}
        gradients = getattr(self.graph, "gradients", {})
        if gradients:
            found["edges"] = self.drawn.sizes(gradients, self.graph.root_gradients)
        activations = getattr(self.graph, "activations", {})
        if activations:
            found["modules"] = self.drawn.activations(activations)
        return found


def bases(graphs: list[GraphLike]) -> tuple[list[Picture], list[Frame]]:
    """The pictures that several graphs need, and the graphs as frames of them."""
    known: dict[Hashable, int] = {}
    pictures: list[Picture] = []
    drawn: list[Drawn] = []
    frames = []
    for graph in graphs:
        key = _structure(graph) if len(graphs) > 1 else None
        if key not in known:
            known[key] = len(pictures)
            pictures.append(Picture(graph))
            drawn.append(Drawn(pictures[-1]))
        frames.append(Frame(known[key], graph, drawn[known[key]]))
    return pictures, frames


def _structure(graph: GraphLike) -> Hashable:
    """Equal for graphs that are drawn alike."""
    return tuple(
        (
            node.op,
            tuple(node.inputs),
            tuple(node.outputs),
            node.location and (node.location.file, node.location.line, node.location.column),
            node.module,
            node.label,
        )
        for node in graph.nodes
    ), tuple(graph.roots)


class Drawn:
    """Which edges of the graph each drawn edge of a picture stands for."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self._lines: dict[tuple[int, str], list[list[tuple[int, int]]]] = {}

    def sizes(
        self, gradients: dict[tuple[int, int], float], roots: dict[tuple[int, int], float]
    ) -> dict[int, dict[str, list[Any]]]:
        """The norm of all gradients that each drawn edge stands for, by cluster and content."""
        found: dict[int, dict[str, list[Any]]] = {}
        for cluster, which, content in self._contents():
            key = (cluster.index, which)
            if key not in self._lines:
                self._lines[key] = self._edges(cluster, content, which)
            sizes = [_norm(line, gradients, roots) for line in self._lines[key]]
            found.setdefault(cluster.index, {})[which] = sizes
        return found

    def _contents(self) -> Iterator[tuple[Cluster, str, Content[Child]]]:
        """The contents that were laid out, and so are in the page."""
        for cluster in list(self.picture.clusters):
            for which in ("merged", "each"):
                content = cluster.__dict__.get(which)
                if content is not None:
                    yield cluster, which, content

    def _edges(
        self, cluster: Cluster, content: Content[Child], which: str
    ) -> list[list[tuple[int, int]]]:
        """Of each drawn edge, then of each loop, the inputs that it stands for: pairs of a node and
        the number of its input; -1 - output for what enters at a result."""
        place: dict[int, int] = {}
        for number, child in enumerate(content.children):
            if child.kind != "result":
                place |= dict.fromkeys(_nodes(child), number)
        # What flows from one of several equal modules to another leaves it and comes in again.
        part = _parts(cluster) if which == "merged" and cluster.copies > 1 else {}
        groups = [c.cluster for c in content.children if c.cluster is not None and c.cluster.fold]
        member = {node: number for group in groups for node, number in _parts(group).items()}
        inputs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for node in self.picture.program.nodes:
            for i, edge in enumerate(node.inputs):
                if edge is None:
                    continue
                a, b = place.get(edge[0], -1), place.get(node.index, -1)
                inside = a == b >= 0 and content.children[a].cluster is not None
                if inside and member.get(edge[0]) == member.get(node.index):
                    continue
                apart = part.get(edge[0]) != part.get(node.index)
                ways = [(a, -1), (-1, b)] if apart and a >= 0 and b >= 0 else [(a, b)]
                for way in ways:
                    if way != (-1, -1):
                        inputs.setdefault(way, []).append((node.index, i))
        for index, output in self.picture.program.roots:
            a = place.get(index, -1)
            ends = [i for i, c in enumerate(content.children) if c.kind == "result"]
            for b in [i for i in ends if index in content.children[i].nodes] or [-1]:
                inputs.setdefault((a, b), []).append((index, -1 - output))
        lines = [inputs.get((edge.a, edge.b), []) for edge in content.edges]
        return lines + [inputs.get((child, child), []) for child in content.loops]

    def activations(self, found: dict[tuple[str, str], Any]) -> dict[int, list[Any]]:
        """Of each cluster the modules that it stands for: path, calls, mean, deviation, smallest,
        largest, share of zeros, how many are no numbers."""
        told: dict[int, list[Any]] = {}
        for cluster in self.picture.clusters:
            rows = []
            for scope in cluster.instances:
                at = found.get((scope.path or "", scope.type or ""))
                if at is not None:
                    rows.append([scope.path or "", at.calls, *map(_short, at[1:6]), at.bad])
            if rows:
                told[cluster.index] = rows[:MANY]
        return told


def _parts(cluster: Cluster) -> dict[int, int]:
    """Of each node of a cluster the number of the instance that it is in."""
    return {
        node: number
        for number, instance in enumerate(cluster.instances)
        for scope in instance.walk()
        for box in scope.boxes.values()
        for node in box.nodes
    }


def _nodes(child: Child) -> Iterator[int]:
    if child.cluster is None:
        yield from child.nodes
    else:
        for box in child.cluster.boxes:
            yield from box.nodes


def _norm(
    line: list[tuple[int, int]],
    gradients: dict[tuple[int, int], float],
    roots: dict[tuple[int, int], float],
) -> Any:
    """The norm of several gradients taken as one vector; none where nothing was measured, a text
    where one is not finite."""
    sizes = [roots.get((n, -1 - i)) if i < 0 else gradients.get((n, i)) for n, i in line]
    known = [size for size in sizes if size is not None]
    return _short(float(np.sqrt(np.square(known).sum()))) if known else None


def _short(value: float) -> Any:
    """Three digits; JSON has no word for what is not finite."""
    return float(f"{value:.3g}") if math.isfinite(value) else str(value)
