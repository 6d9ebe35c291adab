"""Runs a program: its calls become one Python function, made of numbered names alone.

No text of a file ever gets into that function. Names are v, f, c and a number; operations,
constants and parameters are bound to them from checked tables.
"""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.export._errors import ExportError, Place
from clew.export._ir import Block, Node, Program, Value, map_args, values_in
from clew.export._names import function_of
from clew.export._tree import named

__all__ = ["compile_program", "interpret", "stack_scan"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "py.add": "+", "py.sub": "-",
    "py.mul": "*", "py.truediv": "/", "py.floordiv": "//", "py.mod": "%", "py.eq": "==",
    "py.ne": "!=", "py.lt": "<", "py.le": "<=", "py.gt": ">", "py.ge": ">=",
}  # fmt: skip
_METHODS = {"item": "item", "numel": "numel"}


class GuardFailed(RuntimeError):
    """A call has sizes or values for which the exported program does not stand."""


def _fail(place: Place, got: Any, expected: Any) -> None:
    raise GuardFailed(
        f"exported program: the line {place} was recorded for a case in which its condition is "
        f"{expected!r}; for these inputs it is {got!r}. Export with an example of this case, or "
        f"keep the decision with `if` in a function of your own."
    )


def stack_scan(rows: list[Tensor], dtype: Any, sizes: tuple[int | None, ...]) -> Tensor:
    """The tensors that a loop gathered, one behind the other."""
    if rows:
        return clew.stack(rows)
    return clew.zeros(0, *(n or 0 for n in sizes), dtype=dtype)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.bound: dict[str, Any] = {
            "fail": _fail, "scan": stack_scan, "no_grad": clew.no_grad
        }  # fmt: skip
        self._functions: dict[str, str] = {}
        self._loops = 0

    def constant(self, value: Any) -> str:
        name = f"c{len(self.bound)}"
        self.bound[name] = value
        return name

    def function(self, op: str) -> str:
        found = self._functions.get(op)
        if found is None:
            called = function_of(op)
            if called is None:
                raise ValueError(f"a program calls {op!r}, which clew does not have")
            found = self._functions[op] = f"f{len(self.bound)}"
            self.bound[found] = called
        return found

    def text(self, tree: Any) -> str:
        if isinstance(tree, Value):
            return f"v{tree.id}"
        if tree is None or tree is True or tree is False or type(tree) is int:
            return f"({tree!r})" if type(tree) is int and tree < 0 else repr(tree)
        if type(tree) is float and math.isfinite(tree):
            return f"({tree!r})"
        if isinstance(tree, (tuple, list, slice)) and not values_in(tree):
            return self.constant(tree)
        if type(tree) is tuple:
            return f"({', '.join(map(self.text, tree))},)" if tree else "()"
        if type(tree) is list:
            return f"[{', '.join(map(self.text, tree))}]"
        if type(tree) is slice:
            return f"slice({', '.join(map(self.text, (tree.start, tree.stop, tree.step)))})"
        return self.constant(tree)

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def block(self, block: Block, depth: int, frees: dict[int, list[str]] | None = None) -> None:
        quiet = False
        start = len(self.lines)
        for i, node in enumerate(block.nodes):
            if node.no_grad != quiet and not node.blocks:
                quiet = node.no_grad
                if quiet:
                    self.add(depth, "with no_grad():")
            self.node(node, depth + quiet)
            if frees and i in frees:
                self.add(depth + quiet, f"del {', '.join(frees[i])}")
        if len(self.lines) == start:
            self.add(depth, "pass")

    def node(self, node: Node, depth: int) -> None:
        if node.op == "if":
            self.branch(node, depth)
            return
        if node.op == "loop":
            self.loop(node, depth)
            return
        args = list(map(self.text, node.args))
        if node.op == "guard":
            place = self.constant(node.place)
            self.add(depth, f"if {args[0]} != {args[1]}: fail({place}, {args[0]}, {args[1]})")
            return
        if node.op in _INFIX and len(args) == 2 and not node.kwargs:
            call = f"{args[0]} {_INFIX[node.op]} {args[1]}"
        elif node.op == "getitem" and len(args) == 2 and not node.kwargs:
            call = f"({args[0]})[{args[1]}]"
        elif node.op == "size" and len(args) == 2:
            call = f"({args[0]}).shape[{args[1]}]"
        elif node.op in _METHODS and len(args) == 1:
            call = f"({args[0]}).{_METHODS[node.op]}()"
        elif node.op == "alias":
            call = args[0]
        else:
            for name, value in node.kwargs.items():
                if not name.isidentifier():
                    raise ValueError(f"a program has an argument named {name!r}")
                args.append(f"{name}={self.text(value)}")
            call = f"{self.function(node.op)}({', '.join(args)})"
        outputs = [f"v{o.id}" for o in node.outputs]
        if node.several:
            self.add(depth, f"{', '.join(outputs)}, = {call}" if outputs else call)
        else:
            self.add(depth, f"{outputs[0]} = {call}" if outputs else call)

    def branch(self, node: Node, depth: int) -> None:
        self.add(depth, f"if {self.text(node.args[0])}:")
        for k, block in enumerate(node.blocks):
            if k:
                self.add(depth, "else:")
            self.block(block, depth + 1)
            for o, r in zip(node.outputs, block.results):
                self.add(depth + 1, f"v{o.id} = {self.text(r)}")

    def loop(self, node: Node, depth: int) -> None:
        trip, cond, inits = node.args
        body = node.blocks[0]
        k = self._loops
        self._loops += 1
        counter, *carried = body.params
        ends, scans = body.results[1], body.results[2]
        if carried:
            self.add(
                depth,
                f"{''.join(f'v{p.id}, ' for p in carried)}= {', '.join(map(self.text, inits))},",
            )
        for j in range(len(scans)):
            self.add(depth, f"l{k}_{j} = []")
        tests = []
        if cond is not None:
            self.add(depth, f"t{k} = {self.text(cond)}")
            tests.append(f"t{k}")
        if trip is not None:
            tests.append(f"i{k} < {self.text(trip)}")
        if cond is None:
            self.add(depth, f"for v{counter.id} in range({self.text(trip)}):")
        else:
            self.add(depth, f"i{k} = 0")
            self.add(depth, f"while {' and '.join(tests)}:")
            self.add(depth + 1, f"v{counter.id} = i{k}")
        self.block(body, depth + 1)
        if cond is not None:
            self.add(depth + 1, f"t{k} = {self.text(body.results[0])}")
        for j, s in enumerate(scans):
            self.add(depth + 1, f"l{k}_{j}.append({self.text(s)})")
        if carried:
            self.add(
                depth + 1,
                f"{''.join(f'v{p.id}, ' for p in carried)}= {', '.join(map(self.text, ends))},",
            )
        if cond is not None:
            self.add(depth + 1, f"i{k} += 1")
        for o, p in zip(node.outputs, carried):
            self.add(depth, f"v{o.id} = v{p.id}")
        for j, o in enumerate(node.outputs[len(carried) :]):
            about = self.constant(o.dtype), self.constant(tuple(o.sizes[1:]))
            self.add(depth, f"v{o.id} = scan(l{k}_{j}, {about[0]}, {about[1]})")


def compile_program(
    program: Program, homes: dict[str, tuple[Any, str]], refuse: Any, tie: Any
) -> Any:
    """A function of the program's inputs that returns its result, nested as it is.

    Args:
        program: what to run.
        homes: for the name of each kept tensor, the dict that holds it and its key there.
        refuse: called with an input's number and the input when its shape or dtype is not the
            program's.
        tie: None, or called with the inputs to compare their sizes.
    """
    writer = _Writer()
    _check_inputs(writer, program, refuse)
    if tie is not None:
        writer.bound["tie"] = tie
        writer.add(1, f"tie([{', '.join(f'v{v.id}' for v in program.inputs)}])")
    for v in program.kept:
        assert v.source is not None
        table, key = homes[v.source[1]]
        writer.add(1, f"v{v.id} = {writer.constant(table)}[{writer.constant(key)}]")
    last: dict[int, int] = {}
    for i, node in enumerate(program.body.nodes):
        for inner in _with_inner(node):
            for v in values_in((inner.args, inner.kwargs)):
                last[v.id] = i
            for b in inner.blocks:
                for v in values_in(b.results):
                    last[v.id] = i
    results = {v.id for v in values_in(program.body.results)}
    frees: dict[int, list[str]] = {}
    for node in program.body.nodes:
        for o in node.outputs:
            if o.kind == "tensor" and o.id not in results and o.id in last:
                frees.setdefault(last[o.id], []).append(f"v{o.id}")
    writer.block(program.body, 1, frees)
    ends = iter([writer.text(r) for r in program.body.results])
    writer.add(1, f"return {_nested(writer, program.out_tree, ends)}")
    inputs = ", ".join(f"v{v.id}" for v in program.inputs)
    text = "\n".join([f"def run({inputs}):", *writer.lines])
    scope = {**writer.bound, **_BUILTINS, "__builtins__": {}}
    try:
        code = compile(text, "<exported program>", "exec")
    except (SyntaxError, RecursionError, MemoryError, OverflowError) as e:
        raise ExportError(f"exported program: it is malformed or nested too deeply: {e}") from e
    exec(code, scope)
    return scope["run"]


def _nested(writer: _Writer, spec: Any, ends: Any) -> str:
    """The text of a tree of results."""
    kind = spec[0]
    if kind == "leaf":
        return str(next(ends))
    if kind == "constant":
        return writer.constant(spec[1])
    if kind == "dict":
        parts = [f"{writer.constant(k)}: {_nested(writer, s, ends)}" for k, s in zip(*spec[1:])]
        return f"{{{', '.join(parts)}}}"
    if kind == "named":
        made = writer.constant(named(spec[1], spec[2]))
        return f"{made}({', '.join(_nested(writer, s, ends) for s in spec[3])})"
    inner = "".join(f"{_nested(writer, s, ends)}, " for s in spec[1])
    return f"[{inner}]" if kind == "list" else f"({inner})"


_BUILTINS = {"slice": slice, "range": range, "len": len, "isinstance": isinstance, "T": Tensor}


def _check_inputs(writer: _Writer, program: Program, refuse: Any) -> None:
    writer.bound["refuse"] = refuse
    for k, v in enumerate(program.inputs):
        name = f"v{v.id}"
        writer.add(1, f"if not isinstance({name}, T): refuse({k}, {name})")
        writer.add(1, f"s = {name}.shape")
        tests = [f"{name}.dtype != {writer.constant(v.dtype)}", f"len(s) != {len(v.sizes)}"]
        tests += [f"s[{d}] != {int(n)}" for d, n in enumerate(v.sizes) if n is not None]
        writer.add(1, f"if {' or '.join(tests)}: refuse({k}, {name})")


def _with_inner(node: Node) -> list[Node]:
    found = [node]
    for b in node.blocks:
        for n in b.nodes:
            found += _with_inner(n)
    return found


# ---- call by call, for one of the runs of a recording ----


def interpret(block: Block, env: dict[int, Any], limit: int | None) -> None:
    """Runs a block's calls on an environment of values by number."""

    def get(v: Value) -> Any:
        return env[v.id]

    for node in block.nodes:
        if node.op == "guard":
            continue
        if node.op == "if":
            chosen = node.blocks[0 if bool(map_args(get, node.args[0])) else 1]
            interpret(chosen, env, limit)
            for o, r in zip(node.outputs, chosen.results):
                env[o.id] = map_args(get, r)
            continue
        if node.op == "loop":
            interpret_loop(node, env, limit)
            continue
        function = function_of(node.op)
        assert function is not None
        result = function(*map_args(get, tuple(node.args)), **map_args(get, node.kwargs))
        parts = result if node.several else [result]
        for o, r in zip(node.outputs, parts):
            env[o.id] = r


def interpret_loop(node: Node, env: dict[int, Any], limit: int | None) -> None:
    """Runs a loop, at most ``limit`` times; its outputs are then in the environment."""

    def get(v: Value) -> Any:
        return env[v.id]

    trip, cond, inits = (map_args(get, a) for a in node.args)
    body = node.blocks[0]
    state = list(inits)
    rows: list[list[Any]] = [[] for _ in body.results[2]]
    done = 0
    while (cond is None or bool(cond)) and (trip is None or done < trip):
        if limit is not None and done >= limit:
            break
        env[body.params[0].id] = done
        for p, s in zip(body.params[1:], state):
            env[p.id] = s
        interpret(body, env, limit)
        if cond is not None:
            cond = map_args(get, body.results[0])
        for r, s in zip(rows, body.results[2]):
            r.append(map_args(get, s))
        state = map_args(get, list(body.results[1]))
        done += 1
        if done > 10_000_000:
            raise ExportError(f"export: the loop at {node.place} does not end on the example")
    for o, s in zip(node.outputs, state):
        env[o.id] = s
    for o, r in zip(node.outputs[len(state) :], rows):
        env[o.id] = stack_scan(r, o.dtype, o.sizes[1:])
