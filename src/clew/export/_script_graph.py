"""A program as TorchScript's graphs are read: `graph.nodes()`, `node.kind()`, `value.type()`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clew.export._ir import Block, Node, Program, Value, values_in
from clew.export._program import Graph

__all__ = ["ScriptGraph"]

_BLOCKS = {"if": "prim::If", "loop": "prim::Loop", "guard": "prim::RaiseException"}


class ScriptValue:
    """A value of the graph."""

    def __init__(self, value: Value, node: ScriptNode | None) -> None:
        self._value, self._node = value, node

    def debugName(self) -> str:
        """Its name in the listing."""
        return self._value.name or str(self._value.id)

    def type(self) -> str:
        """Its type, with sizes as far as they are fixed."""
        return self._value.type

    def node(self) -> ScriptNode | None:
        """The call that makes it; None of an input."""
        return self._node

    def unique(self) -> int:
        """Its number."""
        return self._value.id

    def __repr__(self) -> str:
        return f"{self.debugName()} defined in ({self._node})"


class ScriptNode:
    """A call, a branch or a loop."""

    def __init__(self, graph: ScriptGraph, node: Node) -> None:
        self._graph, self._own = graph, node

    def kind(self) -> str:
        """`aten::relu`, `prim::If` and the like."""
        op = self._own.op
        if op in _BLOCKS:
            return _BLOCKS[op]
        return op if "::" in op else "aten::" + re.split(r"\.", op)[-1]

    def inputs(self) -> Iterator[ScriptValue]:
        """The values that it takes."""
        found = values_in((self._own.args, self._own.kwargs))
        return iter([self._graph.value(v) for v in found])

    def outputs(self) -> Iterator[ScriptValue]:
        """The values that it gives."""
        return iter([self._graph.value(v) for v in self._own.outputs])

    def output(self) -> ScriptValue:
        """The value that it gives."""
        (one,) = self.outputs()
        return one

    def blocks(self) -> Iterator[ScriptBlock]:
        """Both branches, or the body of a loop."""
        return iter([ScriptBlock(self._graph, b) for b in self._own.blocks])

    def sourceRange(self) -> str:
        """The line of the source that it comes from."""
        return str(self._own.place)

    def __repr__(self) -> str:
        made = ", ".join(v.debugName() for v in self.outputs())
        given = ", ".join(v.debugName() for v in self.inputs())
        return f"{made} = {self.kind()}({given})"


class ScriptBlock:
    """Calls in order."""

    def __init__(self, graph: ScriptGraph, block: Block) -> None:
        self._graph, self._block = graph, block

    def nodes(self) -> Iterator[ScriptNode]:
        """The calls."""
        return iter([self._graph.node(n) for n in self._block.nodes])


class ScriptGraph(Graph):
    """The calls of a program, with TorchScript's questions."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._made: dict[int, ScriptNode] = {}
        self._makers = {o.id: n for n in program.walk() for o in n.outputs}

    def node(self, node: Node) -> ScriptNode:
        """The one object for a call."""
        return self._made.setdefault(id(node), ScriptNode(self, node))

    def value(self, value: Value) -> ScriptValue:
        """A value with the call that makes it."""
        maker = self._makers.get(value.id)
        return ScriptValue(value, None if maker is None else self.node(maker))

    def nodes(self) -> Iterator[ScriptNode]:  # type: ignore[override]
        """The calls of the outermost block."""
        return ScriptBlock(self, self._program.body).nodes()

    def inputs(self) -> Iterator[ScriptValue]:
        """The arguments, and the tensors that the program keeps."""
        return iter([self.value(v) for v in (*self._program.inputs, *self._program.kept)])

    def outputs(self) -> Iterator[ScriptValue]:
        """The results."""
        return iter([self.value(v) for v in values_in(self._program.body.results)])

    def findNode(self, kind: str, recurse: bool = True) -> ScriptNode | None:
        """The first call of a kind; None where there is none."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str | None = None, recurse: bool = True) -> list[ScriptNode]:
        """The calls of a kind.

        Args:
            kind: such as `aten::relu`; None are all.
            recurse: whether to look into branches and loops.
        """
        every: Any = self._program.walk() if recurse else self._program.body.nodes
        return [n for n in map(self.node, every) if kind in (None, n.kind())]

    def __str__(self) -> str:
        given = ", ".join(f"%{v.debugName()} : {v.type()}" for v in self.inputs())
        lines = [f"graph({given}):"]
        self._write(lines, self._program.body.nodes, "  ")
        ends = ", ".join(f"%{v.debugName()}" for v in self.outputs())
        return "\n".join([*lines, f"  return ({ends})", ""])

    def _write(self, lines: list[str], nodes: list[Node], space: str) -> None:
        """The calls as TorchScript prints them, numbers and texts among the arguments."""
        for n in nodes:
            node = self.node(n)
            made = ", ".join(f"%{v.debugName()} : {v.type()}" for v in node.outputs())
            given = [_shown(x) for x in n.args if not isinstance(x, Block)]
            given += [f"{k}={_shown(x)}" for k, x in n.kwargs.items()]
            call = f"{node.kind()}({', '.join(given)})"
            place = f" # {n.place.file}:{n.place.line}" if n.place.file else ""
            lines.append(f"{space}{made}{' = ' if made else ''}{call}{place}")
            for k, b in enumerate(n.blocks):
                params = ", ".join(f"%{v.name or v.id} : {v.type}" for v in b.params)
                lines.append(f"{space}  block{k}({params}):")
                self._write(lines, b.nodes, space + "    ")
                ends = ", ".join(_shown(x) for x in b.results)
                lines.append(f"{space}    -> ({ends})")

    def copy(self) -> ScriptGraph:
        """The graph: none of its questions changes it."""
        return self


def _shown(x: Any) -> str:
    """An argument: values by name."""
    if isinstance(x, Value):
        return f"%{x.name or x.id}"
    if isinstance(x, (tuple, list)):
        return f"[{', '.join(map(_shown, x))}]"
    return repr(x)
