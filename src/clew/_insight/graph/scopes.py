"""The program that a graph came from: modules as a tree of scopes, lines of source as boxes.

Nodes that one place of the program made in one module are one box, so that what is drawn grows with
the program and not with the run. Scopes of equal structure are put together into units.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

from clew import _C
from clew._insight.graph.data import GraphLike, GraphNode, Location

# A scope shows at most about this many boxes: what is more is grouped by function, then by line.
MANY = 40
CHUNK = 25
# The longest pattern of numbered modules ("Linear, ReLU, Linear, ReLU ...") that is looked for.
LONGEST_PERIOD = 8


class Box:
    """The nodes that one place of the program made in one scope."""

    __slots__ = ("first", "index", "key", "leaf", "nodes", "scope")

    def __init__(self, index: int, scope: Scope, key: int, leaf: bool) -> None:
        self.index = index
        self.scope = scope
        self.key = key
        self.leaf = leaf
        self.first = -1
        self.nodes: list[int] = []


class Scope:
    """A module, or a group of lines of one that is too long to be shown at once."""

    __slots__ = ("boxes", "children", "name", "parent", "path", "signature", "type", "units")

    def __init__(self, name: str, path: str | None, parent: Scope | None) -> None:
        self.name = name
        self.path = path
        self.parent = parent
        self.type: str | None = None
        self.children: dict[str, Scope] = {}
        self.boxes: dict[int, Box] = {}
        # Children of equal structure that stand beside each other; filled in by _fold().
        self.units: list[list[Scope]] = []
        self.signature = -1

    def child(self, name: str, path: str | None) -> Scope:
        found = self.children.get(name)
        if found is None:
            found = self.children[name] = Scope(name, path, self)
        return found

    def walk(self) -> Iterator[Scope]:
        stack = [self]
        while stack:
            scope = stack.pop()
            yield scope
            stack.extend(scope.children.values())


class Program:
    """Scopes and boxes of a graph, with the edges between boxes."""

    def __init__(self, graph: GraphLike) -> None:
        self.nodes = graph.nodes
        # Memory of parameters and inputs is there with or without the graph.
        self.own: frozenset[int] | set[int] = getattr(graph, "_leaf_storages", frozenset())
        self.top = Scope("", None, None)
        self.boxes: list[Box] = []
        self.keys: dict[Hashable, int] = {}
        self.places: list[tuple] = []  # of a key: (file, function, line, column), for grouping
        self.consumers = _consumers(self.nodes)
        self.box_of = self._make_boxes(graph)
        # What each box gives to others, counted; and who gives to it.
        self.gives: list[dict[int, int]] = [{} for _ in self.boxes]
        self.takes: list[set[int]] = [set() for _ in self.boxes]
        for node in self.nodes:
            to = self.box_of[node.index]
            for edge in node.inputs:
                if edge is not None:
                    of = self.box_of[edge[0]]
                    self.gives[of][to] = self.gives[of].get(to, 0) + 1
                    self.takes[to].add(of)
        self.roots = list(graph.roots)
        signatures: dict[Hashable, int] = {}
        self._fold(self.top, signatures)

    # Boxes ------------------------------------------------------------------------------------

    def _make_boxes(self, graph: GraphLike) -> list[int]:
        nodes = self.nodes
        scopes = _Scopes(graph, self.top)
        spans: dict[Hashable, tuple] = {}
        placeless = _structure_keys(nodes)
        found: dict[tuple[int, int], Box] = {}
        box_of = [-1] * len(nodes)
        keys: list[Hashable] = [None] * len(nodes)
        for node in nodes:
            if node.op != "leaf":
                keys[node.index] = _place_key(node, placeless, spans)
        for node in nodes:
            scope = scopes.of_leaf(node, self.consumers) if node.op == "leaf" else scopes.of(node)
            key = keys[node.index]
            if node.op == "leaf":
                key = self._leaf_key(node, scope, keys)
            number = self.keys.setdefault(key, len(self.keys))
            if number == len(self.places):
                at = node.location
                self.places.append(
                    (at.file, at.function, at.line, at.column or 0)
                    if at is not None and node.op != "leaf"
                    else ("", "", 0, 0)
                )
            box = found.get((id(scope), number))
            if box is None:
                box = Box(len(self.boxes), scope, number, node.op == "leaf")
                box.first = node.index
                found[id(scope), number] = box
                scope.boxes[number] = box
                self.boxes.append(box)
            box.nodes.append(node.index)
            box_of[node.index] = box.index
        return box_of

    def _leaf_key(self, node: GraphNode, scope: Scope, keys: list[Hashable]) -> Hashable:
        rank = len(node.outputs[0][0]) if node.outputs else 0
        if node.label is not None:
            label = node.label
            if scope.path and label.startswith(scope.path + "."):
                label = label[len(scope.path) + 1 :]
            return ("leaf", re.sub(r"(?<![^.])\d+(?![^.])", "*", label), rank)
        users = self.consumers[node.index]
        if not users:
            return ("leaf", None, rank)
        user = users[0]
        inputs = self.nodes[user].inputs
        position = next(i for i, e in enumerate(inputs) if e is not None and e[0] == node.index)
        return ("leaf", None, rank, keys[user], position)

    # Folding ----------------------------------------------------------------------------------

    def _fold(self, scope: Scope, signatures: dict[Hashable, int]) -> None:
        """Sorts the scope's children into units of equal structure, and gives it a signature."""
        for child in list(scope.children.values()):
            self._fold(child, signatures)
        if len(scope.boxes) > MANY:
            self._group_lines(scope, signatures)
        numbered = [c for name, c in scope.children.items() if name.isdigit()]
        named = [c for name, c in scope.children.items() if not name.isdigit()]
        numbered.sort(key=lambda c: int(c.name))
        named.sort(key=lambda c: c.name)
        scope.units = self._runs(scope, numbered, signatures) + [[c] for c in named]
        if len(scope.units) > MANY:
            self._group_units(scope, signatures)
        self._sign(scope, signatures)

    def _sign(self, scope: Scope, signatures: dict[Hashable, int]) -> None:
        units = tuple((u[0].name, len(u), u[0].signature) for u in scope.units)
        structure = (scope.type, tuple(sorted(scope.boxes)), units)
        scope.signature = signatures.setdefault(structure, len(signatures))

    def _runs(
        self, scope: Scope, numbered: list[Scope], signatures: dict[Hashable, int]
    ) -> list[list[Scope]]:
        """Numbered modules, with every run of equal ones, or of an equal pattern, as one unit."""
        units: list[list[Scope]] = []
        at = 0
        while at < len(numbered):
            period, times = _best_run([c.signature for c in numbered[at:]])
            run = numbered[at : at + period * times]
            at += period * times
            if times == 1 or period == 1:
                units.append(run)
                continue
            groups = []
            for start in range(0, len(run), period):
                part = run[start : start + period]
                name = f"{part[0].name}–{part[-1].name}"
                groups.append(self._group(scope, name, [[c] for c in part], signatures))
            units.append(groups)
        return units

    def _group(
        self, scope: Scope, name: str, units: list[list[Scope]], signatures: dict[Hashable, int]
    ) -> Scope:
        """Puts children of the scope into one of its own between it and them."""
        path = f"{scope.path}.{name}" if scope.path else name
        group = Scope(name, path, scope)
        moved = {child for unit in units for child in unit}
        group.children = {key: child for key, child in scope.children.items() if child in moved}
        scope.children = {key: c for key, c in scope.children.items() if c not in moved}
        scope.children[name] = group
        for child in moved:
            child.parent = group
        group.units = units
        self._sign(group, signatures)
        return group

    def _group_units(self, scope: Scope, signatures: dict[Hashable, int]) -> None:
        """Too many children: equal ones go together wherever they stand, then by the dozen."""
        equal: dict[int, list[Scope]] = {}
        for unit in scope.units:
            equal.setdefault(unit[0].signature, []).extend(unit)
        units = list(equal.values())
        while len(units) > MANY:
            grouped = []
            for start in range(0, len(units), CHUNK):
                part = units[start : start + CHUNK]
                name = f"{part[0][0].name} … {part[-1][-1].name}"
                grouped.append([self._group(scope, name, part, signatures)])
            units = grouped
        scope.units = units

    def _group_lines(self, scope: Scope, signatures: dict[Hashable, int]) -> None:
        """Too many lines: joins those of one function, then neighbours."""
        functions: dict[tuple, list[Box]] = {}
        for box in scope.boxes.values():
            functions.setdefault(self.places[box.key][:2], []).append(box)
        for (_, function), boxes in functions.items():
            if len(functions) > 1 and function and len(boxes) > 2:
                self._group_boxes(scope, f"{function}()", boxes, signatures)
        while len(scope.boxes) > MANY:
            rest = sorted(scope.boxes.values(), key=lambda b: (self.places[b.key], b.key))
            size = max(CHUNK, -(-len(rest) // CHUNK))
            for start in range(0, len(rest), size):
                part = rest[start : start + size]
                lines = [self.places[b.key][2] for b in part]
                name = f"lines {min(lines)}–{max(lines)}" if any(lines) else f"part {start // size}"
                self._group_boxes(scope, name, part, signatures)

    def _group_boxes(
        self, scope: Scope, name: str, boxes: list[Box], signatures: dict[Hashable, int]
    ) -> None:
        unique, number = name, 1
        while unique in scope.children:
            number += 1
            unique = f"{name} {number}"
        group = scope.child(unique, f"{scope.path}.{unique}" if scope.path else unique)
        for box in boxes:
            del scope.boxes[box.key]
            group.boxes[box.key] = box
            box.scope = group
        self._fold(group, signatures)


class _Scopes:
    """Finds the scope of each node in the tree of module paths, which it makes on the way."""

    def __init__(self, graph: GraphLike, top: Scope) -> None:
        self.top = top
        self.nodes = graph.nodes
        self.stacks = module_stacks(graph)
        self.found: dict[Hashable, Scope] = {}
        self.labelled = any(node.label is not None for node in self.nodes)
        self.owner = _owner_of_paths(self.nodes)
        # Roots that hold no others: of the library's, each line that calls one is one of its own.
        roots = {self._root(node) for node in self.nodes if node.module}
        alone = {node.module_type for node in self.nodes if node.module == ""}
        self.bare = (alone - roots) & _library_classes()
        for node in self.nodes:  # operations first: parameters go where operations left scopes
            if node.op != "leaf":
                self.of(node)

    def _root(self, node: GraphNode) -> str | None:
        """The class of the outermost module around a node."""
        if self.stacks is not None and self.stacks[node.index]:
            return self.stacks[node.index][0][1]
        return self.owner if node.module else node.module_type

    def of(self, node: GraphNode) -> Scope:
        if node.module is None:
            return self.top
        kind = self._root(node)
        if node.module == "" and kind in self.bare and node.location is not None:
            key: tuple = ("", kind, _span(node.location))
        else:
            key = (node.module, kind)
        scope = self.found.get(key)
        if scope is None:
            name = kind or "model"
            scope = self.top.child(name if len(key) == 2 else f"{name} at {key[2]}", "")
            scope.name = name
            if len(key) == 2:
                scope = self._walk(scope, node.module, kind)
            self.found[key] = scope
            if self.stacks is not None:
                for path, inner in self.stacks[node.index]:
                    outer = self.found.get((path, kind))
                    if outer is not None:
                        outer.type = inner
        if scope.type is None:
            scope.type = node.module_type
        return scope

    def _walk(self, scope: Scope, module: str, kind: str | None) -> Scope:
        self.found["", kind] = scope
        path = ""
        for name in module.split(".") if module else ():
            path = f"{path}.{name}" if path else name
            scope = self.found[path, kind] = scope.child(name, path)
        return scope

    def of_leaf(self, leaf: GraphNode, consumers: list[list[int]]) -> Scope:
        """A parameter lies in its module; where nothing has a name, with those who use it."""
        users = consumers[leaf.index]
        if leaf.label is not None:
            kinds = [self._root(self.nodes[user]) for user in users] + [self.owner]
            path = leaf.label
            while path:
                path = path.rpartition(".")[0]
                for kind in kinds:
                    if (path, kind) in self.found:
                        return self.found[path, kind]
            return self.of(self.nodes[users[0]]) if len(users) == 1 else self.top
        if self.labelled or not users:
            return self.of(leaf)
        common = self.of(self.nodes[users[0]])
        for user in users[1:]:
            above = set(_ancestors(self.of(self.nodes[user])))
            while common not in above:
                assert common.parent is not None
                common = common.parent
        return common


def module_stacks(graph: GraphLike) -> list[tuple[tuple[str, str], ...]] | None:
    """Of each node the modules that were being called, outermost first, as (path, class)."""
    scopes = getattr(graph, "_scopes", None)
    return None if scopes is None else [scopes[place] for place in graph._places]  # type: ignore


def _library_classes() -> set[str | None]:
    """Names of the library's own classes of modules, as far as they are loaded."""
    found: set[str | None] = set()
    pending: list[type] = [_C.ModuleBase]
    while pending:
        below: list[type] = pending.pop().__subclasses__()
        found.update(kind.__name__ for kind in below if kind.__module__.startswith("clew.nn."))
        pending += below
    return found


def _ancestors(scope: Scope | None) -> Iterator[Scope]:
    while scope is not None:
        yield scope
        scope = scope.parent


def _owner_of_paths(nodes: list[GraphNode]) -> str | None:
    """The type of the outermost module that the modules with a path belong to."""
    fed: dict[str | None, int] = {}
    types: set[str | None] = set()
    for node in nodes:
        if node.op == "leaf":
            continue
        if node.module == "":
            types.add(node.module_type)
        elif node.module:
            for edge in node.inputs:
                if edge is not None and nodes[edge[0]].module == "":
                    kind = nodes[edge[0]].module_type
                    fed[kind] = fed.get(kind, 0) + 1
    if fed:
        return max(fed, key=lambda kind: fed[kind])
    others = [kind for kind in types if kind is not None and not kind.endswith("Loss")]
    return others[0] if len(others) == 1 else None


def _consumers(nodes: list[GraphNode]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        for edge in node.inputs:
            if edge is not None:
                found[edge[0]].append(node.index)
    return found


def _ranks(node: GraphNode) -> tuple[int, ...]:
    return tuple(len(shape) for shape, _ in node.outputs)


def _place_key(
    node: GraphNode, placeless: dict[int, Hashable], spans: dict[Hashable, tuple]
) -> Hashable:
    at = node.location
    if at is None:
        return placeless[node.index]
    span = spans.get(at)
    if span is None:  # looking it up takes a walk over the function's code
        span = spans[at] = _span(at)
    return (node.op, span, _ranks(node))


def _span(at: Location) -> tuple:
    """Where an expression begins and ends: its end tells the two sums of a + b + c apart."""
    return (at.file, at.line, at.column, *getattr(at, "span", ()))


def _structure_keys(nodes: list[GraphNode]) -> dict[int, Hashable]:
    """Keys of nodes whose line is not known: the operation, and what its inputs come from."""
    keys: dict[int, Hashable] = {}
    for node in nodes:
        if node.location is None and node.op != "leaf":
            sources = tuple(None if e is None else nodes[e[0]].op for e in node.inputs)
            keys[node.index] = (node.op, _ranks(node), sources)
    if len(set(keys.values())) > 2 * MANY:
        return {index: (nodes[index].op, _ranks(nodes[index])) for index in keys}
    return keys


def _best_run(signatures: list[int]) -> tuple[int, int]:
    """Period and number of repetitions of the pattern that covers most of the list's beginning."""
    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, len(signatures)) + 1):
        pattern = signatures[:period]
        times = 1
        while signatures[times * period : (times + 1) * period] == pattern:
            times += 1
        # Two pairs (Linear, ReLU, Linear, ReLU) are as easily read as a folded pair.
        if times >= (2 if period == 1 else 3) and period * times > best[0] * best[1]:
            best = (period, times)
    return best
