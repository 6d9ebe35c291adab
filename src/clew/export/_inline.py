"""A program that is called while another is recorded: its calls are recorded, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import clew
from clew.export import _tree
from clew.export._errors import ExportError, here
from clew.export._ir import Block, Node, Value, map_args
from clew.export._lists import ScanList
from clew.export._names import function_of
from clew.export._symbols import SYMS, compute

if TYPE_CHECKING:
    from clew.export._control import Control
    from clew.export._module import ProgramModule

__all__ = ["inlined", "program_of"]


def program_of(module: Any) -> ProgramModule | None:
    """The program that a module runs; None where it is another module."""
    from clew.export._module import ProgramModule

    if isinstance(module, ProgramModule):
        return module
    inner = getattr(module, "__dict__", {}).get("_inner")
    return inner if isinstance(inner, ProgramModule) else None


def inlined(control: Control, module: ProgramModule, args: Any, kwargs: Any) -> Any:
    """What the module gives, with its calls recorded."""
    program = module._program
    env: dict[int, Any] = {}
    for v, x in zip(program.inputs, module._leaves(args, kwargs)):
        sizes = [None] * len(v.sizes) if not isinstance(x, clew.Tensor) else list(x.shape)
        fits = isinstance(x, clew.Tensor) and x.dtype == v.dtype and len(sizes) == len(v.sizes)
        fixed = all(n is None or type(m) in SYMS or n == m for n, m in zip(v.sizes, sizes))
        if not fits or not fixed:
            raise ExportError(
                f"export: the program that is called at {here()} takes {v.type} as {v.name}"
            )
        for n, m in zip(v.sizes, sizes):
            if n is not None and type(m) in SYMS:
                raise ExportError(
                    f"export: a size that varies is {n} in the program that is called at {here()}"
                )
        env[v.id] = x
    for v in program.kept:
        assert v.source is not None
        table, key = module._homes[v.source[1]]
        env[v.id] = table[key]
    _run(control, program.body, env)
    ends = iter([map_args(lambda v: env[v.id], r) for r in program.body.results])
    return _tree.build(program.out_tree, ends)


def _run(control: Control, block: Block, env: dict[int, Any]) -> None:
    def get(v: Value) -> Any:
        return env[v.id]

    for node in block.nodes:
        args = map_args(get, tuple(node.args))
        if node.op == "guard":
            _check(control, node, *args)
        elif node.op == "if":
            _branch(control, node, args[0], env)
        elif node.op == "loop":
            _loop(control, node, args, env)
        else:
            result = _called(control, node, args, map_args(get, node.kwargs))
            for o, r in zip(node.outputs, result if node.several else [result]):
                env[o.id] = r


def _called(control: Control, node: Node, args: Any, kwargs: Any) -> Any:
    function = function_of(node.op)
    assert function is not None
    # The recorder sees methods through the class, and creation through what stands in for it.
    if node.op.startswith("Tensor."):
        function = getattr(clew.Tensor, node.op[len("Tensor.") :])
    function = control.rec.stand_ins.get(id(function), function)
    if node.op.startswith("py.") and any(type(a) in SYMS for a in args):
        return compute(node.op[3:], function, args)
    if node.op == "placeholder":
        return control.rec.record(node.op, clew.zeros, args, kwargs)
    if node.no_grad:
        with clew.no_grad():
            return function(*args, **kwargs)
    return function(*args, **kwargs)


def _check(control: Control, node: Node, value: Any, expected: Any) -> None:
    rec = control.rec
    varies = type(value) in SYMS
    vals = [v for v, a in zip(value.vals, rec.active) if a] if varies else [value]
    if any(v != expected for v in vals):
        raise ExportError(
            f"export: the program that is called at {here()} was recorded for another case: its "
            f"line {node.place} relies on {expected!r}"
        )
    if varies:
        rec.guard(value, expected, node.decides)


def _results(control: Control, block: Block, env: dict[int, Any]) -> tuple[Any, ...]:
    inner = dict(env)
    _run(control, block, inner)
    return tuple(map_args(lambda v: inner[v.id], r) for r in block.results)


def _branch(control: Control, node: Node, asked: Any, env: dict[int, Any]) -> None:
    c = control.condition(asked)
    then, other = node.blocks
    if type(c) not in SYMS:
        found = _results(control, then if c else other, env)
    else:
        names = tuple(o.name or f"value {o.id}" for o in node.outputs)
        found = control._branch(
            c, lambda: _results(control, then, env), lambda: _results(control, other, env), names, 0
        )
    env.update(zip((o.id for o in node.outputs), found))


def _loop(control: Control, node: Node, args: Any, env: dict[int, Any]) -> None:
    trip, cond, inits = args
    block = node.blocks[0]
    counter, *carried = block.params
    goes_on, ends, scans = block.results
    count = len(carried)

    def body(i: Any, vals: Any) -> list[Any]:
        inner = env | {counter.id: i} | dict(zip((p.id for p in carried), vals))
        _run(control, block, inner)

        def get(v: Value) -> Any:
            return inner[v.id]

        grown = vals[count : count + len(scans)]
        for rows, s in zip(grown, scans):
            rows.append(map_args(get, s))
        last = [] if cond is None else [map_args(get, goes_on)]
        return [*map_args(get, list(ends)), *grown, *last]

    lists = tuple(f"rows {k}" for k in range(len(scans)))
    names = (*(p.name or f"value {p.id}" for p in carried), *lists)
    start = (*inits, *([] for _ in scans))
    asked = test = None
    if cond is not None:
        names, start = (*names, "whether it goes on"), (*start, cond)
        asked = control.condition(cond)
        test = lambda vals: control.condition(vals[-1])  # noqa: E731
    if asked is not None and type(asked) not in SYMS:
        asked = control.rec.constant_sym(asked)
    found = control._staged(trip, asked, body, test, start, names, lists)
    for o, x in zip(node.outputs, found):
        env[o.id] = x.joined("stack") if isinstance(x, ScanList) else x
