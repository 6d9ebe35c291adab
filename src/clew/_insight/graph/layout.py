"""Which layer each box of one content lies in, and in which order: all that needs no sizes.

Layers by longest path, where edges run from what happened earlier to what happened later; edges
the other way close a loop and take no part. Long edges of one source share a chain of points.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T")

SWEEPS = 12
# Swapping neighbours pays where there are few of them.
SWAP_LIMIT = 300


@dataclass(slots=True)
class Edge:
    """Flow from child `a` to child `b`; -1 is the outside, above as source and below as target."""

    a: int
    b: int
    count: int
    back: bool = False  # from something later to something earlier: closes a loop
    via: list[int] = field(default_factory=list)  # points, one in each layer between


@dataclass(slots=True)
class Content(Generic[T]):
    """Children of one cluster in layers; numbers from len(children) on are points of edges."""

    children: list[T]
    edges: list[Edge]
    loops: dict[int, int]  # child -> how often something flows from it to itself
    layers: list[list[int]]


def arrange(
    children: list[T], orders: Sequence[int], counts: Mapping[tuple[int, int], int]
) -> Content[T]:
    """Puts children into layers and edges through them.

    Args:
        children: What is laid out.
        orders: When each of them happened first.
        counts: Number of values that flow from one child to another; -1 is the outside.
    """
    n = len(children)
    loops = {a: count for (a, b), count in counts.items() if a == b and a >= 0}
    edges = []
    for (a, b), count in counts.items():
        if a != b:
            back = a >= 0 and b >= 0 and (orders[a], a) > (orders[b], b)
            edges.append(Edge(a, b, count, back))
    edges.sort(key=lambda e: (e.a, e.b))
    ranks = _ranks(n, orders, [e for e in edges if not e.back])
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    links = _chains(n, ranks, edges, layers)
    for child in sorted(range(n), key=lambda c: (orders[c], c)):
        layers[ranks[child]].append(child)
    return Content(children, edges, loops, _order(layers, links))


def _ranks(n: int, orders: Sequence[int], edges: list[Edge]) -> list[int]:
    above: list[list[int]] = [[] for _ in range(n)]
    below: list[list[int]] = [[] for _ in range(n)]
    for edge in edges:
        if edge.a >= 0 and edge.b >= 0:
            above[edge.b].append(edge.a)
            below[edge.a].append(edge.b)
    ranks = [0] * n
    by_time = sorted(range(n), key=lambda c: (orders[c], c))
    for child in by_time:
        ranks[child] = max((ranks[a] + 1 for a in above[child]), default=0)
    # What has more below than above moves down to where it is used. Parameters and what comes
    # from outside do not hold it: their edges are long anyway, and share one chain.
    for child in reversed(by_time):
        if len(below[child]) > sum(orders[a] >= 0 for a in above[child]):
            ranks[child] = min(ranks[b] for b in below[child]) - 1
    lowest = min(ranks, default=0)
    return [rank - lowest for rank in ranks]


def _chains(
    n: int, ranks: list[int], edges: list[Edge], layers: list[list[int]]
) -> list[tuple[int, int]]:
    """Adds points of long edges to the layers; returns the pairs that lie in adjacent layers."""
    chains: dict[int, list[int]] = {}
    links: dict[tuple[int, int], None] = {}
    total = n
    for edge in edges:
        if edge.back:
            continue
        start = ranks[edge.a] if edge.a >= 0 else -1
        end = ranks[edge.b] if edge.b >= 0 else len(layers)
        chain = chains.setdefault(edge.a, [])
        while len(chain) < end - start - 1:
            layers[start + len(chain) + 1].append(total)
            chain.append(total)
            total += 1
        edge.via = chain[: max(0, end - start - 1)]
        stops = [edge.a, *edge.via, edge.b]
        for a, b in pairwise(stops):
            if a >= 0 and b >= 0:
                links[a, b] = None
    return list(links)


def _order(layers: list[list[int]], links: list[tuple[int, int]]) -> list[list[int]]:
    """The order within layers with the fewest crossings that some sweeps find."""
    up: dict[int, list[int]] = {}
    down: dict[int, list[int]] = {}
    for a, b in links:
        down.setdefault(a, []).append(b)
        up.setdefault(b, []).append(a)
    layers = _first_order(layers, up, down)
    best, fewest = [list(layer) for layer in layers], _all_crossings(layers, down)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        downward = sweep % 2 == 0
        steps = range(1, len(layers)) if downward else range(len(layers) - 2, -1, -1)
        for at in steps:
            fixed = layers[at - 1 if downward else at + 1]
            place = {item: i for i, item in enumerate(fixed)}
            links_to = up if downward else down
            weight = {}
            for i, item in enumerate(layers[at]):
                near = [place[other] for other in links_to.get(item, ())]
                weight[item] = sum(near) / len(near) if near else float(i)
            layers[at].sort(key=lambda item: weight[item])
        crossings = _all_crossings(layers, down)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    if fewest and sum(map(len, best)) <= SWAP_LIMIT:
        _swap(best, up, down)
    return best


def _first_order(
    layers: list[list[int]], up: dict[int, list[int]], down: dict[int, list[int]]
) -> list[list[int]]:
    """Items as a walk along the links meets them, so that what hangs together lies together."""
    rank = {item: i for i, layer in enumerate(layers) for item in layer}
    seen: set[int] = set()
    found: list[list[int]] = [[] for _ in layers]
    for layer in layers:
        for start in layer:
            stack = [start]
            while stack:
                item = stack.pop()
                if item in seen:
                    continue
                seen.add(item)
                found[rank[item]].append(item)
                stack += reversed([*up.get(item, ()), *down.get(item, ())])
    return found


def _crossings(upper: list[int], lower: list[int], down: dict[int, list[int]]) -> int:
    place = {item: i for i, item in enumerate(lower)}
    seen: list[int] = []
    total = 0
    for item in upper:
        ends = sorted(place[b] for b in down.get(item, ()) if b in place)
        total += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return total


def _all_crossings(layers: list[list[int]], down: dict[int, list[int]]) -> int:
    return sum(_crossings(a, b, down) for a, b in pairwise(layers))


def _swap(layers: list[list[int]], up: dict[int, list[int]], down: dict[int, list[int]]) -> None:
    """Exchanges neighbours where that leaves fewer crossings, until nothing gets better."""
    for _ in range(8):
        better = False
        for at, layer in enumerate(layers):
            above = {item: i for i, item in enumerate(layers[at - 1])} if at else {}
            below = (
                {item: i for i, item in enumerate(layers[at + 1])} if at + 1 < len(layers) else {}
            )
            for i in range(len(layer) - 1):
                a, b = layer[i], layer[i + 1]
                gain = 0
                for links, place in ((up, above), (down, below)):
                    ends_a = [place[x] for x in links.get(a, ()) if x in place]
                    ends_b = [place[x] for x in links.get(b, ()) if x in place]
                    for x in ends_a:
                        for y in ends_b:
                            gain += (x > y) - (x < y)
                if gain > 0:
                    layer[i], layer[i + 1] = b, a
                    better = True
        if not better:
            return
