"""An exported program as text, with the user's names and lines."""

from __future__ import annotations

import re
from typing import Any

from clew.export import _tree
from clew.export._ir import Block, Node, Program, Value

__all__ = ["listing", "name_values"]

_TARGET = re.compile(r"^([A-Za-z_]\w*)\s*=[^=]")


def name_values(program: Program) -> None:
    """Gives every value a name: of an argument, a parameter, the variable that the line assigns,
    or the operation."""
    taken: dict[str, int] = {}

    def free(name: str) -> str:
        k = taken.get(name, -1) + 1
        taken[name] = k
        return f"{name}_{k}" if k else name

    for v in program.inputs:
        v.name = free(v.name or "x")
    for v in program.kept:
        assert v.source is not None
        v.name = v.source[1]
        taken.setdefault(v.name, 0)

    def block(b: Block) -> None:
        for k, p in enumerate(b.params):
            p.name = free("i" if k == 0 else "carried")
        for i, node in enumerate(b.nodes):
            for inner in node.blocks:
                block(inner)
            following = b.nodes[i + 1] if i + 1 < len(b.nodes) else None
            last = following is None or following.place.line != node.place.line
            found = _TARGET.match(node.place.text) if last else None
            short = re.split(r"\.|::", node.op)[-1]
            base = found.group(1) if found else re.sub(r"\W+", "_", short)
            for o in node.outputs:
                o.name = free(base.strip("_") or "value")

    block(program.body)


def listing(program: Program) -> str:
    """The program, one call a line, under the lines of the source that made them."""
    lines = []
    args = ", ".join(f"{v.name}: {_typed(v, d)}" for v, d in zip(program.inputs, _dims(program)))
    lines.append(f"def forward({args}):")
    place: Any = None
    place = _block(program.body, 1, lines, place)
    names = (text(r) for r in program.body.results)
    lines.append(f"    return {_tree.describe(program.out_tree, names)}")
    return "\n".join(lines)


def _dims(program: Program) -> list[dict[int, str]]:
    return program.dims or [{} for _ in program.inputs]


def _typed(v: Value, dims: dict[int, str]) -> str:
    if v.kind != "tensor":
        return v.kind
    sizes = [dims.get(d, "?" if n is None else str(n)) for d, n in enumerate(v.sizes)]
    return f"{v.dtype.name}[{', '.join(sizes)}]"


def text(tree: Any) -> str:
    """An argument as Python writes it."""
    if isinstance(tree, Value):
        return tree.name or f"v{tree.id}"
    if isinstance(tree, tuple):
        return f"({', '.join(map(text, tree))}{',' if len(tree) == 1 else ''})"
    if isinstance(tree, list):
        return f"[{', '.join(map(text, tree))}]"
    if isinstance(tree, slice):
        parts = ["" if p is None else text(p) for p in (tree.start, tree.stop, tree.step)]
        return ":".join(parts if parts[2] else parts[:2])
    return "..." if tree is Ellipsis else repr(tree)


def _block(block: Block, depth: int, lines: list[str], place: Any) -> Any:
    pad = "    " * depth
    for node in block.nodes:
        at = (node.place.file, node.place.line)
        if node.place.file and at != place:
            module = f"  ({node.place.module})" if node.place.module else ""
            lines.append(f"{pad}# {node.place}{module}")
            place = at
        place = _node(node, depth, lines, place)
    return place


def _node(node: Node, depth: int, lines: list[str], place: Any) -> Any:
    pad = "    " * depth
    left = "".join(f"{o.name}: {o.type}, " for o in node.outputs)[:-2]
    if node.op == "if":
        lines.append(f"{pad}if {text(node.args[0])}:")
        for k, block in enumerate(node.blocks):
            if k:
                if not block.nodes and not node.outputs:
                    break
                lines.append(f"{pad}else:")
            _block(block, depth + 1, lines, None)
            for o, r in zip(node.outputs, block.results):
                lines.append(f"{pad}    {o.name}: {o.type} = {text(r)}")
            if not block.nodes and not node.outputs:
                lines.append(f"{pad}    pass")
        return None
    if node.op == "loop":
        trip, cond, inits = node.args
        body = node.blocks[0]
        for p, x in zip(body.params[1:], inits):
            lines.append(f"{pad}{p.name}: {p.type} = {text(x)}")
        bound = "" if trip is None else f" in range({text(trip)})"
        start = "" if cond is None else f" while {text(cond)}"
        lines.append(f"{pad}for {body.params[0].name}{bound}{start}:")
        _block(body, depth + 1, lines, None)
        for p, e in zip(body.params[1:], body.results[1]):
            lines.append(f"{pad}    {p.name} = {text(e)}")
        for o, s in zip(node.outputs[len(body.params) - 1 :], body.results[2]):
            lines.append(f"{pad}    {o.name}.append({text(s)})")
        if cond is not None:
            lines.append(f"{pad}    while {text(body.results[0])}")
        for o, p in zip(node.outputs, body.params[1:]):
            lines.append(f"{pad}{o.name}: {o.type} = {p.name}")
        return None
    if node.op == "guard":
        lines.append(f"{pad}check {text(node.args[0])} == {text(node.args[1])}")
        return place
    args = [text(a) for a in node.args] + [f"{k}={text(v)}" for k, v in node.kwargs.items()]
    if node.op == "getitem":
        index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
        call = f"{args[0]}[{', '.join(map(text, index))}]"
    elif node.op == "setitem":
        index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
        lines.append(f"{pad}{args[0]}[{', '.join(map(text, index))}] = {args[2]}")
        return place
    else:
        call = f"{node.op}({', '.join(args)})"
    lines.append(f"{pad}{left} = {call}" if left else f"{pad}{call}")
    return place
