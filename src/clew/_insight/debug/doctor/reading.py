"""What the recorded graph alone tells, without a look at any call: it is read a few times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass
from clew._insight.debug.place import Place, placed

__all__ = ["Reading", "Recorded", "recorded"]


class Recorded:
    """The graph of a backward, by the numbers of its nodes."""

    def __init__(self, pass_: Pass) -> None:
        # Not the pass itself, which keeps this: a cycle would keep the graph alive.
        self.roots = pass_.roots
        self.leaves = pass_.leaves
        self.key = pass_.key
        columns = pass_.columns
        self._leaf_at = {at: leaf for at, leaf, *_ in columns["leaves"]}
        self.ops: list[str] = columns["op"]
        self.inputs: list[list[Any]] = columns["inputs"]
        self.outputs: list[list[Any]] = columns["outputs"]
        self._columns = columns
        self._consumers: dict[int, list[tuple[int, int]]] | None = None
        self._nodes: dict[int, Any] | None = None

    def all(self, *ops: str) -> Iterator[int]:
        """The nodes of these operations, as they ran."""
        return (i for i, op in enumerate(self.ops) if op in ops)

    def attributes(self, i: int) -> dict[str, Any]:
        """What an operation was told besides its tensors."""
        return self._columns["attributes"][i] or {}

    def shape(self, i: int, output: int = 0) -> tuple[int, ...]:
        """The shape of what a node gave."""
        return tuple(self.outputs[i][output][0])

    def dtype(self, i: int, output: int = 0) -> str:
        """Its dtype."""
        return str(self.outputs[i][output][1])

    def maker(self, i: int, argument: int = 0) -> tuple[int, int] | None:
        """The node and output that an argument came from; None where it has no history."""
        given = self.inputs[i]
        return given[argument] if argument < len(given) else None

    def raw_place(self, i: int) -> Any:
        """Where a node was made, as the core hands it out."""
        at = self._columns["place"][i]
        return self._columns["places"][at] if at >= 0 else None

    def place(self, i: int) -> Place | None:
        """The line that made a node."""
        return placed(self.raw_place(i))

    def consumers(self, i: int) -> list[tuple[int, int]]:
        """The nodes that use what a node gave, and as which argument."""
        if self._consumers is None:
            self._consumers = {}
            for j, given in enumerate(self.inputs):
                for argument, edge in enumerate(given):
                    if edge is not None:
                        self._consumers.setdefault(edge[0], []).append((j, argument))
        return self._consumers.get(i, [])

    def node(self, i: int) -> Any:
        """The node itself, with what it saved."""
        if self._nodes is None:
            self._nodes = {}
            pending = [t.grad_fn for t in self.roots if t.grad_fn is not None]
            while pending:
                node = pending.pop()
                number = node._sequence_nr()
                if number and number not in self._nodes:
                    self._nodes[number] = node
                    pending += [fn for fn, _ in node.next_functions if fn is not None]
        return self._nodes.get(self._columns["sequence"][i])

    def leaf(self, i: int, argument: int) -> Any:
        """The leaf that is an argument itself, such as a layer's weight; None for another."""
        edge = self.maker(i, argument)
        return None if edge is None else self._leaf_at.get(edge[0])

    @property
    def kinds(self) -> set[str]:
        """The kinds of modules that nodes were made in."""
        return {raw[3] for raw in self._columns["places"] if raw is not None and raw[3]}


def recorded(pass_: Pass) -> Recorded:
    """The graph of a backward, which all rules share."""
    shared = vars(pass_)
    if "recorded" not in shared:
        shared["recorded"] = Recorded(pass_)
    found: Recorded = shared["recorded"]
    return found


class Reading(Rule):
    """A rule that reads the graph of each line's second backward: the first is often a trial."""

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.times: dict[Any, int] = {}  # by line of a backward

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        times = self.times[pass_.key] = self.times.get(pass_.key, 0) + 1
        if times == 2:
            self.read(recorded(pass_))

    def read(self, graph: Recorded) -> None:
        """Looks at a graph."""
