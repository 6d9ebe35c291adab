"""Tensors of a model that its forward() writes, and whether results depend on what they were."""

from __future__ import annotations

from collections.abc import Iterable

from clew.export._ir import Block, Node, Program, Value, values_in, written

__all__ = ["carried_state"]


def carried_state(program: Program) -> list[Value]:
    """The kept values that one run writes and that change what the next one gives."""
    reach = _Reach(program)
    changed = [v for v in program.kept if v.id in reach.written]
    results = {v.id for v in values_in(program.body.results)}
    marks = {v.id: reach.marks(v) for v in changed}
    ends = {v.id: bool(marks[v.id] & results) for v in changed}
    while True:  # what reaches a result by way of another tensor that is kept
        more = [
            v for v in changed
            if not ends[v.id] and any(ends[o.id] and o.id in marks[v.id] for o in changed)
        ]  # fmt: skip
        if not more:
            return [v for v in changed if ends[v.id]]
        ends.update((v.id, True) for v in more)


class Roots:
    """The tensors that a program's views at last look at, by the numbers of their values."""

    def __init__(self, program: Program) -> None:
        self.parent: dict[int, Value] = {}
        for node in program.walk():
            if node.shares and node.args and isinstance(node.args[0], Value):
                self.parent |= {o.id: node.args[0] for o in node.outputs}

    def __call__(self, v: Value) -> int:
        while v.id in self.parent:
            v = self.parent[v.id]
        return v.id


class _Reach:
    """What the first value of a tensor reaches."""

    def __init__(self, program: Program) -> None:
        self.body = program.body
        self.root = Roots(program)
        self.written: set[int] = set()
        for node in program.walk():
            self.written |= {self.root(v) for v in values_in(written(node))}

    def marks(self, start: Value) -> set[int]:
        """Values that depend on what this one was when the run began."""
        found = {start.id}
        for node in self.body.nodes:
            self._step(node, found)
        return found

    def _marked(self, values: Iterable[Value], found: set[int]) -> bool:
        return any(v.id in found or self.root(v) in found for v in values)

    def _step(self, node: Node, found: set[int]) -> None:
        if node.op in _WHOLE and node.args[0].id not in self.root.parent:
            target = node.args[0].id
            value = self._marked(values_in((node.args[1:], node.kwargs)), found)
            found.add(target) if value else found.discard(target)
            return
        if not self._marked(self._reads(node), found):
            return
        found |= {o.id for o in node.outputs}
        found |= {self.root(v) for v in values_in(written(node))}
        for b in node.blocks:
            found |= self._changes(b)

    def _reads(self, node: Node) -> list[Value]:
        read = values_in((node.args, node.kwargs))
        for b in node.blocks:
            read += values_in(b.results)
            for inner in b.nodes:
                read += self._reads(inner)
        return read

    def _changes(self, block: Block) -> set[int]:
        found: set[int] = set()
        for node in block.nodes:
            found |= {o.id for o in node.outputs}
            found |= {self.root(v) for v in values_in(written(node))}
            for b in node.blocks:
                found |= self._changes(b)
        return found


# Writes of every element of a tensor.
_WHOLE = frozenset({"Tensor.copy_", "Tensor.fill_", "Tensor.zero_"})
