"""The recorded graph of some tensors as an object to question."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from clew import _C
from clew._base import provenance as _provenance
from clew._C import Tensor
from clew._insight.graph.data import GraphNode, Saved
from clew._insight.graph.drawn import Drawn
from clew._insight.graph.export import make_nodes
from clew._insight.graph.listing import Nodes
from clew._insight.graph.names import Names
from clew._insight.graph.search import search
from clew._insight.graph.tables import WIDTH, Row, Table, amount, clip, counted, shape_text
from clew._ops.kinds import kinds
from clew.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from clew._insight.graph.measured import Activation
    from clew._insight.graph.why import Why
    from clew.nn import Module

__all__ = ["Edge", "Graph", "graph"]

OUTSIDE = "(outside of modules)"


class Edge(NamedTuple):
    """A value's way through the graph: made as an output of one node, used as input of another."""

    source: int
    output: int
    target: int
    input: int


class Graph(Drawn, Sequence[GraphNode]):
    """What was recorded for some tensors: plain data that keeps neither nodes nor tensors alive.

    `clew.graph` makes it. Its items are the nodes in order of creation, leaves first.

    Attributes:
        nodes: all nodes; `graph[3]` is `graph.nodes[3]`.
        roots: where gradient enters, as (number of the node, number of its output).
        parameters: the leaves whose names are known, by name.
        gradients: norms of the gradients along edges, by the number of the node that uses the value
            and that of its input; filled by `measure` and by `clew.debug.record(graphs=...)`.
        activations: what modules gave, by path and class; filled by the latter.
        title: of the step that it was recorded in; empty otherwise.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> g = clew.graph(model(clew.ones(2, 4)).sum())
    >>> len(g), [node.op for node in g if node.op != "leaf"]
    (8, ['linear', 'relu', 'linear', 'sum'])
    >>> sorted(g.parameters)
    ['0.bias', '0.weight', '2.bias', '2.weight']
    """

    def __init__(
        self,
        columns: dict[str, Any],
        names: Names,
        tensors: Sequence[Tensor],
        lost: Sequence[tuple[Any, ...]] = (),
    ) -> None:
        leaves = {index: tensor for index, tensor, _ in columns["leaves"]}
        labels = names.choose(leaves)
        self.roots: list[tuple[int, int]] = [r for r in columns["roots"] if r is not None]
        self.nodes: list[GraphNode] = make_nodes(columns, labels)
        unnamed = {index: tensor for index, tensor in leaves.items() if index not in labels}
        if unnamed and not names.given:
            scopes = [*columns["scopes"], ()]
            around = [scopes[place] for place in columns["place"]]
            roots = [scope[0][1] if scope else None for scope in around]
            found = names.add_called(self.nodes, unnamed, roots)
            for index, label in found.items():
                self.nodes[index].label = label
            labels = dict(sorted((labels | found).items()))
        self.parameters: dict[str, GraphNode] = {
            label: self.nodes[index] for index, label in labels.items()
        }
        # Of each node the number of its place; -1, the last of every list, where none is known.
        self._places: list[int] = columns["place"]
        self._locations = [*map(_provenance.location, columns["places"]), None]
        self._scopes: list[tuple[tuple[str, str], ...]] = [*columns["scopes"], ()]
        # Where values were cut off: values that nodes took, and results without history.
        self._cuts: list[tuple[Any, ...]] = [*columns["cuts"].values(), *lost]
        self._released: bytes = columns["released"]
        self._leaf_storages = {storage for _, _, storage in columns["leaves"]}
        self._tensors = {index: weakref.ref(tensor) for index, tensor in leaves.items()}
        self._root_tensors = [weakref.ref(tensor) for tensor in tensors]
        self._names = names
        self.gradients: dict[tuple[int, int], float] = {}
        self.root_gradients: dict[tuple[int, int], float] = {}  # of results, by node and output
        self.activations: dict[tuple[str, str], Activation] = {}
        self.title = ""

    # Parts ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    def __getitem__(self, which):
        found = self.nodes[which]
        return Nodes(found) if isinstance(which, slice) else found

    @property
    def edges(self) -> list[Edge]:
        """All edges, by the node that they lead to."""
        return [
            Edge(edge[0], edge[1], node.index, i)
            for node in self.nodes
            for i, edge in enumerate(node.inputs)
            if edge is not None
        ]

    @property
    def leaves(self) -> Nodes:
        """The tensors that gradients are gathered in."""
        return Nodes(self.nodes[: len(self._tensors)])

    @property
    def operations(self) -> Nodes:
        """The nodes that are no leaves."""
        return Nodes(self.nodes[len(self._tensors) :])

    @property
    def inputs(self) -> Nodes:
        """The leaves that are no parameters of a known model."""
        return Nodes(node for node in self.leaves if node.label is None)

    @property
    def outputs(self) -> Nodes:
        """The nodes that made the tensors whose graph this is."""
        return Nodes(self.nodes[index] for index, _ in self.roots)

    @property
    def saved(self) -> list[tuple[GraphNode, Saved]]:
        """Every tensor kept for backward, with the node that keeps it."""
        return [(node, saved) for node in self.nodes for saved in node.saved]

    @property
    def modules(self) -> dict[str, str | None]:
        """The modules that were called: path to class; None for one that only holds others."""
        return {row.name: row.kind or None for row in self.by_module() if row.name != OUTSIDE}

    @cached_property
    def released(self) -> bool:
        """Whether backward had run through a part of the graph, and let go of what it kept."""
        return any(self._released)

    @cached_property
    def consumers(self) -> list[list[int]]:
        """For each node, the numbers of those that use its results, once for each use."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for edge in node.inputs:
                if edge is not None:
                    found[edge[0]].append(node.index)
        return found

    # Searching --------------------------------------------------------------------------------

    def find(
        self,
        text: str | None = None,
        *,
        op: str | None = None,
        name: str | None = None,
        module: str | None = None,
        line: int | None = None,
        file: str | None = None,
        shape: Sequence[int | None] | None = None,
        dtype: str | _C.dtype | None = None,
    ) -> Nodes:
        """The nodes that fit every condition given.

        Args:
            text: stands in the op, the node's name, the label, or the module's path or class; case
                does not matter.
            op: the op, as a pattern: "softmax", "conv*".
            name: the node's name or the parameter's, as a pattern: "*.weight".
            module: the module's path, as a pattern: "blocks.*"; "blocks.3" also means those below.
            line: number of the line.
            file: end of the file's path: "model.py".
            shape: of an output; None stands for any size.
            dtype: of an output.

        Returns: the nodes in order of creation.

        >>> x = clew.ones(2, 3, requires_grad=True)
        >>> g = clew.graph(x.softmax(-1).sum())
        >>> g.find("softmax")[0].outputs
        [((2, 3), 'float32')]
        >>> len(g.find(shape=(None, 3))), len(g.find(op="s*"))
        (2, 2)
        """
        return search(self, text, op, name, module, line, file, shape, dtype)

    def at(self, line: int | str, file: str | None = None) -> Nodes:
        """The nodes that a line of the program made.

        Args:
            line: its number, or "model.py:48".
            file: end of the file's path.

        Returns: the nodes in order of creation.

        >>> x = clew.ones(2, requires_grad=True)
        >>> g = clew.graph(x.exp().sum())
        >>> [node.op for node in g.at(g[1].location.line)]
        ['exp', 'sum']
        """
        if isinstance(line, str):
            file, _, number = line.rpartition(":")
            if not number.isdigit():
                raise ValueError(f"at: expected a line's number or 'file.py:48'; got {line!r}")
            line = int(number)
        return self.find(line=line, file=file)

    # Questions --------------------------------------------------------------------------------

    def has_run(self) -> bool:
        """Whether backward has let go of something in this graph, as far as can be known: while
        the results are alive it is looked at now, later it stays as it was recorded.
        """
        roots = [ref() for ref in self._root_tensors]
        if self.released or any(root is None for root in roots):
            return self.released
        return any(_C._export_graph(tuple(roots))["released"])

    def why(self, parameter: Tensor | str) -> Why:
        """How a parameter reaches the results, or why it does not.

        Args:
            parameter: a parameter, another tensor of the graph, or a parameter's name. Of a
                parameter whose gradient is all zeros, one more backward pass measures where it
                became zero, if the graph is still whole.

        Returns: an answer that is true when a gradient can flow, with `.reason`, `.paths` and
        `.uses`; printed, it is a few lines of text.

        Raises:
            KeyError: no parameter of that name is known.

        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> loss = model(clew.ones(2, 4)).sum()
        >>> answer = clew.graph(loss, model=model).why("0.weight")
        >>> answer.reached, [node.op for node in answer.paths[0]]
        (True, ['leaf', 'linear', 'relu', 'linear', 'sum'])
        """
        from clew._insight.graph.why import explain

        return explain(self, parameter)

    def measure(self) -> Graph:
        """Notes in `gradients` how large the gradient is on every edge, by one more backward pass.

        It begins with ones at the results and touches no `.grad`. Pages that are written afterwards
        show the sizes.

        Returns: the graph itself.

        Raises:
            RuntimeError: the results are gone, or backward has let go of the graph.

        >>> x = clew.ones(4, requires_grad=True)
        >>> loss = (x * 3).sum()
        >>> clew.graph(loss).measure().gradients
        {(2, 0): 2.0, (1, 0): 6.0}
        """
        from clew._insight.graph.measured import measure

        measure(self)
        return self

    # Totals -----------------------------------------------------------------------------------

    @cached_property
    def _held(self) -> list[int]:
        """Bytes that each node was the first to keep; storages of leaves are held anyway."""
        seen = {-1, *self._leaf_storages}
        held = [0] * len(self.nodes)
        for node in self.nodes:
            for saved in node.saved:
                if saved.storage not in seen:
                    seen.add(saved.storage)
                    held[node.index] += saved.nbytes
        return held

    @cached_property
    def saved_bytes(self) -> int:
        """Memory of all that is kept for backward, every storage counted once."""
        return sum({s.storage: s.nbytes for node in self.nodes for s in node.saved}.values())

    @cached_property
    def activation_bytes(self) -> int:
        """The same without the leaves' own memory: what the graph keeps alive by itself."""
        return sum(self._held)

    @cached_property
    def flops(self) -> int:
        """Floating-point operations of the recorded calls, as far as formulas are known."""
        return sum(node.flops or 0 for node in self.nodes)

    @cached_property
    def _by_place(self) -> list[Row]:
        rows = [Row("") for _ in self._locations]
        for node, at in zip(self.nodes, self._places):
            if node.op != "leaf":
                self._count(rows[at], node)
        return rows

    def _count(self, row: Row, node: GraphNode) -> None:
        row.count += 1
        row.flops += node.flops or 0
        row.unknown += node.flops is None
        row.held += self._held[node.index]
        row.outputs += _result_bytes(node)

    def by_line(self) -> Table:
        """Counts, FLOPs and memory of each line of the program.

        >>> x = clew.ones(1000, requires_grad=True)
        >>> table = clew.graph((x.exp() + x).sum()).by_line()
        >>> table[0].count, table[0].held
        (3, 4000)
        """
        rows: dict[Any, Row] = {}
        for at, part in zip(self._locations, self._by_place):
            if part.count == 0:
                continue
            key = (at.file, at.line) if at else None
            if key not in rows:
                rows[key] = Row(at.short, at.source) if at else Row("(line not known)")
            rows[key].add(part)
        return Table("line", list(rows.values()))

    def by_module(self) -> Table:
        """Counts, FLOPs and memory of each module, those of the modules in it included.

        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        >>> table = clew.graph(net(clew.ones(2, 4)).sum()).by_module()
        >>> [(row.name, row.kind, row.count) for row in table][:3]
        [('(outside of modules)', '', 1), ('Sequential', 'Sequential', 2), ('0', 'Linear', 1)]
        """
        top: dict[str, Row] = {}
        known: dict[tuple[str, str], Row] = {}
        for scopes, part in zip(self._scopes, self._by_place):
            if part.count == 0:
                continue
            for row in _chain(scopes, top, known):
                row.add(part)
        outside = top.pop(OUTSIDE, None)
        return Table("module", [*([outside] if outside else []), *top.values()], nested=True)

    def by_op(self) -> Table:
        """Counts, FLOPs and memory of each kind of operation.

        >>> x = clew.ones(3, requires_grad=True)
        >>> table = clew.graph((x * 2 * 3).sum()).by_op()
        >>> table["mul"].count, table["mul"].flops
        (2, 6)
        """
        rows: dict[str, Row] = {}
        for node in self.nodes:
            if node.op != "leaf":
                self._count(rows.setdefault(node.op, Row(node.op)), node)
        return Table("operation", list(rows.values()))

    def summary(self, depth: int | None = 3, sort: str = "order", limit: int = 30) -> str:
        """What the graph holds, as text of at most 100 columns.

        Args:
            depth: levels of modules shown; None shows all.
            sort: "order" of the program, or "count", "flops", "held", "outputs": the largest first.
            limit: rows of each table at most.

        Returns: totals, and the tables by module, line and operation.

        Raises:
            ValueError: `sort` names no column.
        """
        modules, lines = self.by_module(), self.by_line()
        parts = ["\n".join(self._totals())]
        if any(row.name != OUTSIDE for row in modules):
            parts.append(modules.text(sort, limit, depth))
        largest = "held" if sort == "order" else sort
        parts.append(lines.text(largest, min(limit, 10)))
        parts.append(self.by_op().text(largest, min(limit, 10)))
        return "\n\n".join(parts)

    def _totals(self) -> list[str]:
        leaves, operations = len(self._tensors), len(self.nodes) - len(self._tensors)
        numbers = sum(prod(node.outputs[0][0]) for node in self.parameters.values())
        unknown = sum(node.flops is None for node in self.nodes)
        own = self.saved_bytes - self.activation_bytes
        without = f", without {counted(unknown, 'operation')} of which no formula is known"
        without = without if unknown else ""
        lines = [
            f"Graph of {counted(operations, 'operation')} and {counted(leaves, 'leaf')}"
            + (f", {len(self.parameters):,} of them parameters" if self.parameters else "")
            + (f" ({amount(numbers)} numbers)" if self.parameters else ""),
            f"kept for backward: {amount(self.activation_bytes, 'B')}, and {amount(own, 'B')} of "
            "leaves" + ("; backward has run, and let go of what it used" if self.released else ""),
            f"FLOPs: {amount(self.flops)}"
            + (
                f", without {counted(unknown, 'operation')} of which no formula is known"
                if unknown
                else ""
            ),
        ]
        for index, number in self.roots[:3]:
            node = self.nodes[index]
            shape, dtype = node.outputs[number]
            at = f" at {node.location}" if node.location else ""
            lines.append(clip(f"result: {node.op} {shape_text(shape)} {dtype}{at}", WIDTH))
        if len(self.roots) > 3:
            lines.append(f"... {len(self.roots) - 3} more results")
        return lines

    def __repr__(self) -> str:
        return self.summary()


# Making one -------------------------------------------------------------------------------------


def graph(
    *tensors: Any,
    params: Mapping[str, Tensor] | None = None,
    model: Module | None = None,
) -> Graph:
    """The recorded graph of tensors: an object to question, search, measure and draw.

    Args:
        tensors: a loss, or several tensors, or what a model returned: tuples, lists and dicts are
            looked into. Those without history are passed over.
        params: names of leaves; without it, those of the models that were called.
        model: a model whose parameters' names to use.

    Returns: a `Graph`, plain data: it keeps neither nodes nor saved tensors alive.

    Raises:
        RuntimeError: nothing was recorded for any of the tensors; the message says why.
        TypeError: there is no tensor among the arguments.

    >>> x = clew.ones(2, 3, requires_grad=True)
    >>> g = clew.graph((x * x).sum())
    >>> [node.name for node in g]
    ['AccumulateGrad', 'MulBackward0', 'SumBackward0']
    >>> g.saved_bytes
    24
    """
    return graph_for("graph", tensors, params, model)


def graph_for(
    caller: str,
    tensors: tuple[Any, ...],
    params: Mapping[str, Tensor] | None = None,
    model: Module | None = None,
) -> Graph:
    """`graph` for another function, whose name its errors are to begin with."""
    found = [t for t in tree_leaves(tensors) if isinstance(t, Tensor)]
    if not found:
        kinds = ", ".join(type(t).__name__ for t in tensors) or "nothing"
        raise TypeError(
            f"{caller}: expected Tensors, or a nest of them that a model returned; got {kinds}"
        )
    columns = _C._export_graph(tuple(found))
    if all(root is None for root in columns["roots"]):
        raise RuntimeError(
            f"{caller}: nothing was recorded: the tensor of shape {tuple(found[0].shape)} does not "
            f"require grad and does not have a grad_fn{_C._why_no_grad(found[0])}"
        )
    kept = [t for t, root in zip(found, columns["roots"]) if root is not None]
    cuts = [_C._cut_of(t) for t, root in zip(found, columns["roots"]) if root is None]
    return Graph(columns, Names(params, model), kept, [cut for cut in cuts if cut is not None])


def _chain(
    scopes: tuple[tuple[str, str], ...], top: dict[str, Row], known: dict[tuple[str, str], Row]
) -> list[Row]:
    """The rows of a place's module and of all that it lies in, made where they are missing."""
    if not scopes:
        return [top.setdefault(OUTSIDE, Row(OUTSIDE))]
    root = scopes[0][1]
    row = top.setdefault(root, Row(root, root))
    chain, above = [row], ""
    for path, kind in scopes[1:]:
        if path == above:
            continue  # a module that calls itself
        for name in path[len(above) + 1 if above else 0 :].split("."):
            above = f"{above}.{name}" if above else name
            below = known.get((root, above))
            if below is None:
                below = known[root, above] = Row(above)
                row.children.append(below)
            row = below
            chain.append(row)
        row.kind = kind
    return chain


_item_sizes: dict[str, int] = {}


def _result_bytes(node: GraphNode) -> int:
    known = kinds()
    if (known.get(node.op) or known.get("_" + node.op)) == "view":
        return 0
    total = 0
    for shape, dtype in node.outputs:
        if dtype not in _item_sizes:
            _item_sizes[dtype] = getattr(_C, dtype).itemsize
        total += prod(shape) * _item_sizes[dtype]
    return total
