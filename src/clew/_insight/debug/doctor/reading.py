"""What the recorded graph alone tells, without a look at any call: it is read a few times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass
from clew._insight.debug.place import Place, placed

__all__ = ["Reading", "Recorded"]


class Recorded:
    """The graph of a backward, by the numbers of its nodes."""

    def __init__(self, pass_: Pass) -> None:
        self.pass_ = pass_
        columns = pass_.columns
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
            pending = [t.grad_fn for t in self.pass_.roots if t.grad_fn is not None]
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
        if edge is None or self.ops[edge[0]] != "leaf":
            return None
        return next((t for at, t, *_ in self._columns["leaves"] if at == edge[0]), None)


class Reading(Rule):
    """A rule that reads the graphs of the first backwards of each line."""

    TIMES = 3

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.times: dict[Any, int] = {}  # by line of a backward

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        times = self.times.get(pass_.key, 0)
        if times < self.TIMES:
            self.times[pass_.key] = times + 1
            if times:  # the first is often a trial
                self.read(Recorded(pass_))

    def read(self, graph: Recorded) -> None:
        """Looks at a graph."""
