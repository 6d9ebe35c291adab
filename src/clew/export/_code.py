"""Runs a program: its calls become one Python function, made of numbered names alone.

No text of a file ever gets into that function. Names are v, f, c and a number; operations,
constants and parameters are bound to them from checked tables.
"""

from __future__ import annotations

import collections
import math
from typing import Any

import clew
from clew import Tensor
from clew.export._derived import with_rule
from clew.export._errors import ExportError, Place
from clew.export._ir import Block, Node, Program, Value, map_args, values_in
from clew.export._names import function_of
from clew.export._tree import named

__all__ = ["NOT_GIVEN", "compile_program", "interpret", "stack_scan"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "py.add": "+", "py.sub": "-",
    "py.mul": "*", "py.truediv": "/", "py.floordiv": "//", "py.mod": "%", "py.eq": "==",
    "py.ne": "!=", "py.lt": "<", "py.le": "<=", "py.gt": ">", "py.ge": ">=",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "pow": "**",
}  # fmt: skip
_INPLACE = {"add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/="}
_LOGIC = {"py.both": "and", "py.either": "or"}
_METHODS = {"item": "item", "numel": "numel"}


class GuardFailed(RuntimeError):
    """A call has sizes or values for which the exported program does not stand."""


class UnequalRows(RuntimeError):
    """A loop appends tensors of different sizes, and was recorded for such of one size."""


def _fail(place: Place, got: Any, expected: Any) -> None:
    raise GuardFailed(
        f"exported program: the line {place} was recorded for a case in which its condition is "
        f"{expected!r}; for these inputs it is {got!r}. Export with an example of this case, or "
        f"keep the decision with `if` in a function of your own."
    )


def stack_scan(rows: list[Tensor], dtype: Any, sizes: tuple[int | None, ...]) -> Tensor:
    """The tensors that a loop gathered, one behind the other."""
    if rows:
        try:
            return clew.stack(rows)
        except RuntimeError as e:
            raise UnequalRows(
                f"exported program: the tensors that a loop appends are of different sizes, which "
                f"they were in no example; export with an example in which they are: {e}"
            ) from None
    return clew.zeros(0, *(n or 0 for n in sizes), dtype=dtype)


class _Writer:
    def __init__(self, uses: collections.Counter[int]) -> None:
        self.lines: list[str] = []
        self.uses = uses
        self.bound: dict[str, Any] = {
            "fail": _fail, "scan": stack_scan, "no_grad": clew.no_grad
        }  # fmt: skip
        self.asked: dict[int, Value] = {}
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
            self.bound[found] = with_rule(op, called)
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
            if self.decides(block.nodes[i : i + 2]):
                continue
            if node.no_grad != quiet and not node.blocks:
                quiet = node.no_grad
                if quiet:
                    self.add(depth, "with no_grad():")
            self.node(node, depth + quiet)
            if frees and i in frees:
                self.add(depth + quiet, f"del {', '.join(frees[i])}")
        if len(self.lines) == start:
            self.add(depth, "pass")

    def decides(self, pair: list[Node]) -> bool:
        """Whether a call is the `item()` of what the `if` behind it, and nothing else, asks for."""
        if len(pair) < 2 or pair[0].op != "item" or pair[1].op != "if":
            return False
        asked = pair[1].args[0]
        if not isinstance(asked, Value) or self.uses[asked.id] != 1:
            return False
        if [o.id for o in pair[0].outputs] != [asked.id] or not isinstance(pair[0].args[0], Value):
            return False
        self.asked[asked.id] = pair[0].args[0]
        return True

    def short(self, node: Node, args: list[str]) -> str | None:
        """The text of a call that Python has an operator for."""
        op = node.op
        values = [a for a in node.args if isinstance(a, Value)]
        if node.kwargs or not values:
            return None
        if op in _INFIX and len(args) == 2:
            return f"{args[0]} {_INFIX[op]} {args[1]}"
        if op in _LOGIC and all(v.kind == "bool" for v in values) and len(args) == 2:
            others = [a for a in node.args if not isinstance(a, Value)]
            if all(type(a) is bool for a in others):
                return f"{args[0]} {_LOGIC[op]} {args[1]}"
        if op == "py.not" and len(args) == 1:
            return f"not {args[0]}"
        if op == "getitem" and len(args) == 2:
            return f"({args[0]})[{args[1]}]"
        if op == "size" and len(args) == 2:
            return f"({args[0]}).shape[{args[1]}]"
        if op in _METHODS and len(args) == 1:
            return f"({args[0]}).{_METHODS[op]}()"
        if op == "alias" and len(args) == 1:
            return args[0]
        return None

    def write(self, node: Node, args: list[str]) -> str | None:
        """The text of a write that Python has a statement for."""
        if node.kwargs or node.outputs or not args or not isinstance(node.args[0], Value):
            return None
        if node.op == "setitem" and len(args) == 3:
            return f"{args[0]}[{args[1]}] = {args[2]}"
        if node.op in _INPLACE and len(args) == 2:
            return f"{args[0]} {_INPLACE[node.op]} {args[1]}"
        return None

    def stand_in(self, node: Node) -> str | None:
        """A tensor that nothing reads, made once."""
        if node.op != "placeholder" or values_in((node.args, node.kwargs)):
            return None
        try:
            return self.constant(clew.zeros(*node.args, **node.kwargs))
        except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as e:
            raise ExportError(f"exported program: a placeholder cannot be made: {e}") from e

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
        statement = self.write(node, args)
        if statement is not None:
            self.add(depth, statement)
            return
        call = self.short(node, args) or self.stand_in(node)
        if call is None:
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
        asked = node.args[0]
        if isinstance(asked, Value):
            asked = self.asked.get(asked.id, asked)
        self.add(depth, f"if {self.text(asked)}:")
        for k, block in enumerate(node.blocks):
            ends = [(o, r) for o, r in zip(node.outputs, block.results) if self.uses[o.id]]
            if k and not block.nodes and not ends:
                continue
            if k:
                self.add(depth, "else:")
            if block.nodes or not ends:
                self.block(block, depth + 1)
            for o, r in ends:
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


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    """What operations import for their messages, through the builtins of who calls them: modules of
    this library alone."""
    if name.partition(".")[0] != "clew":
        raise ImportError(f"an exported program cannot import {name!r}")
    return __import__(name, *args, **kwargs)


def compile_program(
    program: Program, homes: dict[str, tuple[Any, str]], refuse: Any, ties: Any, general: Any
) -> Any:
    """A function of the program's inputs, as `_compiled` makes it.

    Raises:
        ExportError: the program is none that an export makes.
    """
    try:
        return _compiled(program, homes, refuse, ties, general)
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError) as e:
        raise ExportError(f"exported program: it is malformed: {type(e).__name__}: {e}") from e


def _compiled(
    program: Program, homes: dict[str, tuple[Any, str]], refuse: Any, ties: Any, general: Any
) -> Any:
    """A function of the program's inputs that returns its result, nested as it is.

    Args:
        program: what to run.
        homes: for the name of each kept tensor, the dict that holds it and its key there.
        refuse: called with an input's number and the input when its shape or dtype is not the
            program's.
        ties: None, or a function to compare the inputs' sizes and pairs of places (input, dim)
            whose sizes are equal in a call that it lets pass; None for the pairs: always call it.
        general: called with (arguments, named arguments) unless the call gives the inputs alone,
            in their order; None where the inputs are always given so.
    """
    writer = _Writer(_uses(program))
    names = [f"v{v.id}" for v in program.inputs]
    if general is not None:
        writer.bound |= {"general": general, "none": NOT_GIVEN}
        missing = f"{names[-1]} is none or " if names else ""
        given = "".join(f"{n}, " for n in names)
        writer.add(1, f"if {missing}more or named: return general(({given}*more,), named)")
    _check_inputs(writer, program, refuse)
    if ties is not None:
        tie, pairs = ties
        writer.bound["tie"] = tie
        apart = "True" if pairs is None else " or ".join(
            f"{names[i]}.shape[{d}] != {names[j]}.shape[{e}]" for (i, d), (j, e) in pairs
        )  # fmt: skip
        writer.add(1, f"if {apart}: tie([{', '.join(names)}])")
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
    inputs = ", ".join(names)
    if general is not None:
        inputs = ", ".join([*(f"{n}=none" for n in names), "*more", "**named"])
    text = "\n".join([f"def run({inputs}):", *writer.lines])
    scope = {**writer.bound, **_BUILTINS, "__builtins__": {"__import__": _import}}
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


NOT_GIVEN = object()  # an argument that a call does not give
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


def _uses(program: Program) -> collections.Counter[int]:
    """How often each value is read."""
    found: collections.Counter[int] = collections.Counter()
    found.update(v.id for v in values_in(program.body.results))
    for node in program.walk():
        found.update(v.id for v in values_in((node.args, node.kwargs)))
        for block in node.blocks:
            found.update(v.id for v in values_in(block.results))
    return found


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
