"""Tensors that are one in the model and several values in an ONNX file.

What an `if` or a loop gives may be a tensor from outside of it: a write into the one is then seen
through the other. In a file each is a value of its own, so such a program is refused.
"""

from __future__ import annotations

import math
from typing import Any

from clew.export._ir import Block, Node, Program, Value, values_in, writes
from clew.onnx._errors import OnnxExporterError
from clew.onnx._state import Roots

__all__ = ["check_aliases"]

Path = tuple[tuple[int, int], ...]  # the branches and loops around a call: (node, block)
# What a name may hold: the value that made the tensor, and whether it was made in an earlier round
# of the loop around it. A tensor of this round is never one of an earlier round.
Tensors = frozenset[tuple[int, bool]]


class _Reading:
    """Where values are made, read and written, in the order of the program."""

    def __init__(self, program: Program) -> None:
        self.home: dict[int, Path] = {}
        self.made: dict[int, float] = {}  # when a value got what it is
        self.uses: dict[int, list[tuple[float, Path]]] = {}
        self.writes: list[tuple[int, Path, int, Node]] = []
        self.passed: dict[int, Tensors] = {}  # of what branches and loops pass on: what it may be
        self.loops: set[int] = set()
        self.program = program
        self.root = Roots(program)
        self._changed = True
        while self._changed:  # what a round passes on to the next one comes round
            self._changed = False
            self.read()

    def read(self) -> None:
        """Goes through the program once."""
        self.uses, self.writes, self._count = {}, [], 0
        self.block(self.program.body, ())
        self.use(self.program.body.results, math.inf, ())
        for v in self.program.kept:  # is read by the next run
            self.uses.setdefault(v.id, []).append((math.inf, ()))

    def use(self, tree: Any, at: float, path: Path) -> None:
        """Notes that values are read."""
        for v in values_in(tree):
            self.uses.setdefault(self.root(v), []).append((at, path))

    def block(self, block: Block, path: Path) -> None:
        """Reads a block."""
        for p in block.params:
            self.home[p.id], self.made[p.id] = path, self._count
            if p.kind == "tensor":
                self.passed.setdefault(p.id, frozenset())
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
                self.home[o.id], self.made[o.id] = path, self._count
            if node.op == "if":
                for b in node.blocks:
                    for o, r in zip(node.outputs, b.results):
                        self.passes(o, self.kinds(r))
            elif node.op == "loop":
                self.loop(node, at)
            elif writes(node) and isinstance(node.args[0], Value):
                self.writes.append((at, path, self.root(node.args[0]), node))

    def kinds(self, v: Any) -> Tensors:
        """What a value may be, or look at."""
        if not isinstance(v, Value) or v.kind != "tensor":
            return frozenset()
        root = self.root(v)
        return self.passed.get(root, frozenset({(root, False)}))

    def passes(self, v: Value, kinds: Tensors) -> None:
        """A branch or a loop gives a value these."""
        before = self.passed.get(v.id, frozenset())
        if v.kind == "tensor" and not (v.id in self.passed and kinds <= before):
            self.passed[v.id], self._changed = before | kinds, True

    def loop(self, node: Node, at: int) -> None:
        """A variable is in the first round what it was before, and behind a loop of no round; in
        the others it is what the round before left."""
        body = node.blocks[0]
        ends = body.results[1]
        for p, x, e, o in zip(body.params[1:], node.args[2], ends, node.outputs):
            start, end = self.kinds(x), self.kinds(e)
            older = {(v, old or (at, 0) in self.home.get(v, ())) for v, old in end}
            self.passes(p, start | older)
            self.passes(o, start | end)

    def stale(self, root: int, at: int, path: Path) -> bool:
        """Whether a value that is made before a write at a place is read after it."""
        home = self.home.get(root, ())
        return any(self.sees(home, self.made.get(root, 0), at, path, u) for u in self.uses[root])

    def sees(self, home: Path, made: float, at: int, path: Path, use: tuple[float, Path]) -> bool:
        """Whether a use may come after a write that comes after what is used was made."""
        later, there = use
        for a, b in zip(path, there):
            if a != b:
                if a[0] == b[0] and a[0] not in self.loops:
                    return False  # the other branch
                break
            if a[0] in self.loops and a not in home:
                return True  # in the next round
        return made < at < later


def check_aliases(program: Program) -> None:
    """Refuses programs in which a write is seen through what an `if` or a loop gave.

    Raises:
        OnnxExporterError: with the line of the write.
    """
    reading = _Reading(program)
    sharing: dict[tuple[int, bool], set[int]] = {}
    for v, kinds in reading.passed.items():
        for kind in kinds:
            sharing.setdefault(kind, set()).add(v)
    for at, path, root, node in reading.writes:
        for kind in reading.passed.get(root, {(root, False)}):
            others = sharing.get(kind, set()) | ({kind[0]} - reading.passed.keys())
            for other in others - {root}:
                if other in reading.uses and reading.stale(other, at, path):
                    raise OnnxExporterError(
                        f"onnx.export: a tensor that an `if`, a choice or a loop may have passed "
                        f"on is written to, and read later under another name, at {node.place}\n"
                        f"  Write into a copy (x.clone()), or write `x = x + 1` instead of "
                        f"`x += 1`."
                    )
