"""The picture of a graph before it is drawn: boxes within boxes, each with its edges in order.

A cluster (a module, or several of equal structure) has up to two contents: "merged", where every
box stands for all that one place of the program made, and "each", where nodes and modules stand one
by one. Every number of a box is a sum over everything that it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from clew._insight.graph.data import GraphLike
from clew._insight.graph.layout import Content, arrange
from clew._insight.graph.scopes import Box, Program, Scope

# Nothing is drawn one by one beyond this number.
EACH_LIMIT = 200
# A scope this small whose lines run in circles (a helper called in several places) is shown node
# by node at first.
SMALL = 24
# Results come after everything.
END = 1 << 62


@dataclass(slots=True)
class Totals:
    """Sums over the nodes that a box stands for."""

    nodes: int = 0
    saved: int = 0  # bytes; a storage that several nodes keep counts once
    flops: int | None = None
    parameters: int = 0  # elements of its leaves


@dataclass(slots=True)
class Child:
    """One box of a content."""

    kind: str  # "op", "leaf", "result", "cluster"
    totals: Totals
    nodes: list[int] = field(default_factory=list)  # none for a cluster
    cluster: Cluster | None = None
    label: str = ""


class Cluster:
    """A module, or modules of equal structure; the whole picture is one, too."""

    def __init__(self, builder: Picture, index: int, instances: tuple[Scope, ...], fold: bool):
        self.index = index
        self.instances = instances
        # Whether the instances stand beside each other ("blocks.*") and not inside such a group.
        self.fold = fold
        self.path = _pattern(instances)
        self.type = instances[0].type
        self._builder = builder

    @property
    def copies(self) -> int:
        return len(self.instances)

    @cached_property
    def totals(self) -> Totals:
        return self._builder.totals(self.boxes)

    @cached_property
    def boxes(self) -> list[Box]:
        return [b for i in self.instances for s in i.walk() for b in s.boxes.values()]

    @cached_property
    def order(self) -> int:
        """When it begins to run; its parameters, which were there before, do not count."""
        firsts = [box.first for box in self.boxes if not box.leaf]
        return min(firsts) if firsts else -1

    @cached_property
    def merged(self) -> Content[Child]:
        return self._builder.merged(self)

    @cached_property
    def each_count(self) -> int:
        """How many boxes "each" has; 0 where it would show nothing new."""
        if self.fold:
            return self.copies
        if self.copies > 1:
            return 0
        scope = self.instances[0]
        nodes = sum(len(box.nodes) for box in scope.boxes.values())
        modules = sum(len(unit) for unit in scope.units)
        same = nodes == len(scope.boxes) and modules == len(scope.units)
        return 0 if same else nodes + len(_single(scope))

    @cached_property
    def each(self) -> Content[Child] | None:
        return self._builder.each(self) if 0 < self.each_count <= EACH_LIMIT else None

    @property
    def starts_each(self) -> bool:
        """Whether it is first shown node by node."""
        circles = any(edge.back for edge in self.merged.edges)
        return bool(circles and not self.fold and 0 < self.each_count <= SMALL)


class Picture:
    """Makes clusters of a graph's scopes, each content when it is first asked for."""

    def __init__(self, graph: GraphLike) -> None:
        self.graph = graph
        self.program = Program(graph)
        self.clusters: list[Cluster] = []
        self._found: dict[tuple[int, ...], Cluster] = {}
        self._sums: dict[int, tuple[dict[int, int], int | None, int]] = {}
        self.top = self.cluster((self.program.top,), fold=False)

    def cluster(self, instances: tuple[Scope, ...], fold: bool) -> Cluster:
        key = tuple(id(scope) for scope in instances)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Cluster(self, len(self.clusters), instances, fold)
            self.clusters.append(found)
        return found

    # Numbers ----------------------------------------------------------------------------------

    def _box_sums(self, box: Box) -> tuple[dict[int, int], int | None, int]:
        found = self._sums.get(box.index)
        if found is None:
            found = self._sums[box.index] = self._node_sums(box.nodes)
        return found

    def _node_sums(self, indices: Iterable[int]) -> tuple[dict[int, int], int | None, int]:
        storages: dict[int, int] = {}
        flops, parameters = None, 0
        for index in indices:
            node = self.program.nodes[index]
            for saved in node.saved:
                if saved.storage in self.program.own:
                    continue
                storages[saved.storage] = max(saved.nbytes, storages.get(saved.storage, 0))
            if node.flops is not None:
                flops = (flops or 0) + node.flops
            if node.op == "leaf":
                parameters += sum(prod(shape) for shape, _ in node.outputs)
        return storages, flops, parameters

    def totals(self, boxes: list[Box]) -> Totals:
        total = Totals()
        storages: dict[int, int] = {}
        for box in boxes:
            kept, flops, parameters = self._box_sums(box)
            storages.update(kept)
            total.nodes += len(box.nodes)
            total.parameters += parameters
            if flops is not None:
                total.flops = (total.flops or 0) + flops
        total.saved = sum(storages.values())
        return total

    def _nodes_child(self, nodes: list[int]) -> Child:
        storages, flops, parameters = self._node_sums(nodes)
        totals = Totals(len(nodes), sum(storages.values()), flops, parameters)
        kind = "leaf" if self.program.nodes[nodes[0]].op == "leaf" else "op"
        return Child(kind, totals, nodes)

    def _cluster_child(self, instances: tuple[Scope, ...], fold: bool, label: str) -> Child:
        cluster = self.cluster(instances, fold)
        return Child("cluster", cluster.totals, cluster=cluster, label=label)

    # Contents ---------------------------------------------------------------------------------

    def merged(self, cluster: Cluster) -> Content[Child]:
        """One box a place of the program, one a unit of modules."""
        builder = _ContentBuilder(self.program, top=cluster is self.top)
        keys: dict[int, list[Box]] = {}
        for scope in cluster.instances:
            for key, box in scope.boxes.items():
                keys.setdefault(key, []).append(box)
        for boxes in keys.values():
            nodes = sorted(n for box in boxes for n in box.nodes)
            first = min(box.first for box in boxes)
            builder.add(self._nodes_child(nodes), -1 if boxes[0].leaf else first, boxes)
        for unit in range(len(cluster.instances[0].units)):
            groups = [scope.units[unit] for scope in cluster.instances]
            label = _unit_name(groups[0], cluster.instances[0])
            fold = len(groups[0]) > 1
            instances = [scope for group in groups for scope in group]
            # A list of modules, which is not called itself, is named with them ("blocks.*").
            while _is_list(instances[0]) and len(instances[0].units) == 1:
                inner = instances[0].units[0]
                fold = fold or len(inner) > 1
                name = _unit_name(inner, instances[0])
                label = f"{label}.{name}" if instances[0].path else name
                instances = [scope for outer in instances for scope in outer.units[0]]
            child = self._cluster_child(tuple(instances), fold, label)
            assert child.cluster is not None
            builder.add(child, child.cluster.order, child.cluster.boxes)
        return builder.by_boxes(_parts(cluster) if cluster.copies > 1 else {})

    def each(self, cluster: Cluster) -> Content[Child]:
        """Nodes and modules one by one."""
        builder = _ContentBuilder(self.program, top=cluster is self.top)
        if cluster.fold:
            singles = list(cluster.instances)
        else:
            scope = cluster.instances[0]
            singles = _single(scope)
            for box in scope.boxes.values():
                for index in box.nodes:
                    child = self._nodes_child([index])
                    builder.add(child, -1 if box.leaf else index, [], [index])
        for scope in singles:
            child = self._cluster_child((scope,), False, _instance_name(scope))
            assert child.cluster is not None
            builder.add(child, child.cluster.order, child.cluster.boxes)
        if cluster.fold:
            return builder.by_boxes({})
        return builder.by_nodes({box.index for box in cluster.instances[0].boxes.values()})


class _ContentBuilder:
    """Gathers a cluster's children and finds the edges between them."""

    def __init__(self, program: Program, top: bool) -> None:
        self.program = program
        self.top = top
        self.children: list[Child] = []
        self.orders: list[int] = []
        self.child_of_box: dict[int, int] = {}
        self.child_of_node: dict[int, int] = {}
        self.counts: Counter[tuple[int, int]] = Counter()
        # Which of its group's modules a box belongs to, by the group.
        self.parts: dict[int, int] = {}

    def add(self, child: Child, order: int, boxes: list[Box], nodes: Iterable[int] = ()) -> None:
        number = len(self.children)
        self.children.append(child)
        self.orders.append(order)
        for box in boxes:
            self.child_of_box[box.index] = number
        for node in nodes:
            self.child_of_node[node] = number
        if child.cluster is not None and child.cluster.fold:
            self.parts.update(_parts(child.cluster))

    def by_boxes(self, whole: dict[int, int]) -> Content[Child]:
        """The content with the edges between boxes.

        Args:
            whole: Of each box, which of the cluster's own instances it is in. What flows from one
                instance to another leaves the cluster and comes in again.
        """
        for box, a in self.child_of_box.items():
            for to, count in self.program.gives[box].items():
                b = self.child_of_box.get(to, -1)
                if b >= 0 and whole.get(box) != whole.get(to):
                    self.counts[a, -1] += count
                    self.counts[-1, b] += count
                elif a != b or self.loops(a, box, to):
                    self.counts[a, b] += count
            for source in self.program.takes[box]:
                if source not in self.child_of_box:
                    self.counts[-1, a] += self.program.gives[source][box]
        return self.finish()

    def loops(self, child: int, box: int, to: int) -> bool:
        """Whether an edge within one child is to be seen: from one step to the next."""
        cluster = self.children[child].cluster
        return cluster is None or (cluster.fold and self.parts[box] != self.parts[to])

    def by_nodes(self, own: set[int]) -> Content[Child]:
        """The content where boxes `own` stand as single nodes."""
        program, counts = self.program, self.counts
        for node, a in self.child_of_node.items():
            for edge in program.nodes[node].inputs:
                if edge is not None:
                    source = self.child_of_node.get(edge[0])
                    if source is None:
                        source = self.child_of_box.get(program.box_of[edge[0]], -1)
                    counts[source, a] += 1
            for user in program.consumers[node]:
                if user not in self.child_of_node:
                    counts[a, self.child_of_box.get(program.box_of[user], -1)] += 1
        for box, a in self.child_of_box.items():
            for to, count in program.gives[box].items():
                b = self.child_of_box.get(to, -1)
                if a != b and to not in own:
                    counts[a, b] += count
            for source in program.takes[box]:
                if source not in self.child_of_box and source not in own:
                    counts[-1, a] += program.gives[source][box]
        return self.finish()

    def finish(self) -> Content[Child]:
        results: dict[int, list[int]] = {}
        for index, _ in self.program.roots:
            child = self.child_of_node.get(index)
            if child is None:
                child = self.child_of_box.get(self.program.box_of[index])
            if child is not None:
                results.setdefault(child, []).append(index)
        for child, nodes in results.items():
            if self.top:
                self.counts[child, len(self.children)] += len(nodes)
                self.add(Child("result", Totals(len(nodes)), nodes), END, [])
            else:
                self.counts[child, -1] += len(nodes)
        return arrange(self.children, self.orders, self.counts)


def _parts(cluster: Cluster) -> dict[int, int]:
    return {
        box.index: number
        for number, instance in enumerate(cluster.instances)
        for scope in instance.walk()
        for box in scope.boxes.values()
    }


def _is_list(scope: Scope) -> bool:
    return scope.type is None and not scope.boxes


def _single(scope: Scope) -> list[Scope]:
    """The scope's modules one by one, those of a mere list of equal ones directly."""
    found = []
    for unit in scope.units:
        for child in unit:
            bare = _is_list(child) and len(child.units) == 1 and len(child.units[0]) > 1
            found += child.units[0] if bare else [child]
    return found


def _instance_name(scope: Scope) -> str:
    digits = scope.name[:1].isdigit() and scope.parent is not None and scope.parent.name
    return f"{scope.parent.name}.{scope.name}" if digits and scope.parent else scope.name


def _unit_name(unit: list[Scope], parent: Scope) -> str:
    names = [scope.name for scope in unit]
    if len(names) == 1:
        return names[0]
    if not names[0][0].isdigit():
        return f"{names[0]}, {names[1]}" + (", …" if len(names) > 2 else "")
    if len(parent.units) == 1 or sum(u[0].name[0].isdigit() for u in parent.units) == 1:
        return "*"
    numbers = [int(name.split("–")[0]) for name in names]
    if "–" not in names[0] and numbers != list(range(numbers[0], numbers[-1] + 1)):
        return f"{names[0]}, {names[1]}, …"
    return f"{numbers[0]}–{names[-1].split('–')[-1]}"


def _pattern(instances: tuple[Scope, ...]) -> str | None:
    """The instances' path, with "*" where they differ."""
    paths = [scope.path for scope in instances]
    if paths[0] is None:
        return None
    parts = [(path or "").split(".") for path in paths]
    return ".".join(names[0] if len(set(names)) == 1 else "*" for names in zip(*parts))
