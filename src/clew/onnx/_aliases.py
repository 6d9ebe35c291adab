"""Tensors that are one in the model and several values in an ONNX file.

What an `if` or a loop gives may be a tensor from outside of it: a write into the one is then seen
through the other. In a file each is a value of its own, so such a program is refused.
"""

from __future__ import annotations

import math
from typing import Any

from clew.export._ir import Block, Node, Program, Value, values_in, writes
from clew.onnx._errors import OnnxExporterError

__all__ = ["check_aliases"]

Path = tuple[tuple[int, int], ...]  # the branches and loops around a call: (node, block)


class _Reading:
    """Where values are made, read and written, in the order of the program."""

    def __init__(self, program: Program) -> None:
        self.parent: dict[int, Value] = {}
        self.home: dict[int, Path] = {}
        self.uses: dict[int, list[tuple[float, Path]]] = {}
        self.writes: list[tuple[int, Path, int, Node]] = []
        self.ties: dict[int, list[tuple[int, int, Path]]] = {}
        self.loops: set[int] = set()
        self.given: dict[int, int] = {}  # by what is behind a loop: the loop
        self._count = 0
        for node in program.walk():
            if node.shares and node.args and isinstance(node.args[0], Value):
                self.parent |= {o.id: node.args[0] for o in node.outputs}
        self.block(program.body, ())
        self.use(program.body.results, math.inf, ())
        for v in program.kept:  # is read by the next run
            self.uses.setdefault(v.id, []).append((math.inf, ()))

    def root(self, v: Value) -> int:
        """The tensor that a view at last looks at."""
        while v.id in self.parent:
            v = self.parent[v.id]
        return v.id

    def use(self, tree: Any, at: float, path: Path) -> None:
        """Notes that values are read."""
        for v in values_in(tree):
            self.uses.setdefault(self.root(v), []).append((at, path))

    def block(self, block: Block, path: Path) -> None:
        """Reads a block."""
        for p in block.params:
            self.home[p.id] = path
        for node in block.nodes:
            self._count += 1
            at = self._count
            self.use((node.args, node.kwargs), at, path)
            for k, b in enumerate(node.blocks):
                if node.op == "loop":
                    self.loops.add(at)
                self.block(b, (*path, (at, k)))
                self._count += 1
                self.use(b.results, self._count, (*path, (at, k)))
            for o in node.outputs:
                self.home[o.id] = path
            if node.op == "if":
                self.tie_if(node, path, at)
            elif node.op == "loop":
                self.given |= {o.id: at for o in node.outputs}
                self.tie_loop(node, path, at)
            elif writes(node) and isinstance(node.args[0], Value):
                self.writes.append((at, path, self.root(node.args[0]), node))

    def tie(self, a: Any, b: Any, at: int, path: Path) -> None:
        """Two values may be one tensor, from a call on."""
        if isinstance(a, Value) and isinstance(b, Value) and a.kind == b.kind == "tensor":
            self.tie_roots(self.root(a), self.root(b), at, path)

    def tie_roots(self, x: int, y: int, at: int, path: Path) -> None:
        """Likewise, of what the values look at."""
        self.ties.setdefault(x, []).append((y, at, path))
        self.ties.setdefault(y, []).append((x, at, path))

    def passed(self, v: Any, inner: tuple[int, int]) -> tuple[set[int], set[int]]:
        """What a value of a block may be by way of the branches and loops in it: tensors from
        outside of the block, and others of its own."""
        around: set[int] = set()
        own: set[int] = set()
        pending = [self.root(v)] if isinstance(v, Value) and v.kind == "tensor" else []
        while pending:
            for other, _, _ in self.ties.get(pending.pop(), ()):
                if inner not in self.home.get(other, ()):
                    around.add(other)
                elif other not in own:
                    own.add(other)
                    pending.append(other)
        return around, own

    def outside(self, v: Any, inner: tuple[int, int]) -> bool:
        """Whether a block did not make a value."""
        return isinstance(v, Value) and inner not in self.home.get(self.root(v), ())

    def alike(self, results: list[Any], inner: tuple[int, int]) -> list[tuple[int, int]]:
        """Pairs of a block's results that may be one tensor of its own."""
        kinds = []
        for r in results:
            own = isinstance(r, Value) and r.kind == "tensor" and not self.outside(r, inner)
            kinds.append({self.root(r)} | self.passed(r, inner)[1] if own else set())
        count = range(len(kinds))
        return [(i, j) for i in count for j in count if i < j and kinds[i] & kinds[j]]

    def tie_if(self, node: Node, path: Path, at: int) -> None:
        """What a branch gives may be from outside of it."""
        for k, b in enumerate(node.blocks):
            for i, j in self.alike(b.results, (at, k)):
                self.tie(node.outputs[i], node.outputs[j], at, path)
            for o, r in zip(node.outputs, b.results):
                if self.outside(r, (at, k)):
                    self.tie(o, r, at, path)
                else:
                    for other in self.passed(r, (at, k))[0]:
                        self.tie_roots(o.id, other, at, path)

    def tie_loop(self, node: Node, path: Path, at: int) -> None:
        """A variable is in the first round what it was before, and behind a loop of no round."""
        body = node.blocks[0]
        params, ends = body.params[1:], body.results[1]
        starts = {p.id: x for p, x in zip(params, node.args[2])}
        for i, j in self.alike(ends, (at, 0)):
            self.tie(node.outputs[i], node.outputs[j], at, path)
            self.tie(params[i], params[j], at, path)
        for p, x, e, o in zip(params, node.args[2], ends, node.outputs):
            self.tie(p, x, at, path)
            self.tie(o, x, at, path)
            if self.outside(e, (at, 0)):
                self.tie(o, e, at, path)
                self.tie(p, e, at, path)
                continue
            around, own = self.passed(e, (at, 0))
            for other in around:
                self.tie_roots(o.id, other, at, path)
                self.tie_roots(p.id, other, at, path)
            if isinstance(e, Value):
                for q in ({self.root(e)} | own) & starts.keys() - {p.id}:
                    self.tie(o, starts[q], at, path)

    def tied(self, root: int, at: int, path: Path) -> set[int]:
        """All that may be the same tensor at a call, but itself."""
        found: set[int] = set()
        pending = [root]
        while pending:
            for other, since, there in self.ties.get(pending.pop(), ()):
                again = any(a in self.loops and (a, 0) in there for a, _ in path)
                if other not in found and (since < at or again):
                    found.add(other)
                    pending.append(other)
        return found - {root}

    def sees(self, at: int, path: Path, use: tuple[float, Path]) -> bool:
        """Whether a use may come after a write."""
        later, there = use
        for a, b in zip(path, there):
            if a != b:
                if a[0] == b[0] and a[0] not in self.loops:
                    return False  # the other branch
                break
            if a[0] in self.loops:
                return True  # in the next round
        return later > at


def check_aliases(program: Program) -> None:
    """Refuses programs in which a write is seen through what an `if` or a loop gave.

    Raises:
        OnnxExporterError: with the line of the write.
    """
    reading = _Reading(program)
    for at, path, root, node in reading.writes:
        around = {a for a, _ in path}
        for other in reading.tied(root, at, path):
            if reading.given.get(other) in around:
                continue  # it is what was before the loop only where no round wrote
            if any(reading.sees(at, path, use) for use in reading.uses.get(other, ())):
                raise OnnxExporterError(
                    f"onnx.export: a tensor that an `if`, a choice or a loop may have passed on is "
                    f"written to, and read later under another name, at {node.place}\n"
                    f"  Write into a copy (x.clone()), or write `x = x + 1` instead of `x += 1`."
                )
