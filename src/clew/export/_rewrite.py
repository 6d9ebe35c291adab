"""Rewrites functions so that their `if`, `while` and `for` ask clew when data decides.

Both branches and the body become functions of the variables that they assign; what follows an `if`
that may return or leave a loop moves into its branches, so that every branch ends in one place.
Files, lines and globals stay the user's.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Iterable, Sequence
from typing import Any

from clew.export._expressions import Expressions, as_condition
from clew.export._generators import as_list
from clew.export._patterns import without_match
from clew.export._scopes import Scope, declarations, scope_of, undeclared
from clew.export._syntax import (
    CF,
    appended,
    ask,
    assign,
    elements,
    holds,
    is_apart,
    jumps,
    jumps_in_blocks,
    jumps_in_ifs,
    leaves_loop,
    load,
    locate,
    only_returns,
    params,
    store_name,
    stored,
    thunk,
    tuple_of,
)

__all__ = ["convert", "convertible"]

_LIMIT = 60_000
_codes: dict[types.CodeType, types.CodeType | None] = {}
# A field of definitions from Python 3.12 on.
_NO_TYPES: Any = {"type_params": []} if sys.version_info >= (3, 12) else {}
_FLAGS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class _TooLarge(Exception):
    pass


def convertible(fn: Any) -> bool:
    """Whether a function can be rewritten: a plain one whose source can be read."""
    return isinstance(fn, types.FunctionType) and _code(fn) is not None


def convert(fn: Any, control: Any, listed: bool = False) -> Any:
    """The rewritten function, which asks ``control``; the function itself where it cannot be.

    Args:
        fn: a function.
        control: what it asks.
        listed: a generator function becomes one that returns a list; else it stays as it is.
    """
    code = _code(fn)
    if code is None or (inspect.isgeneratorfunction(fn) and not listed):
        return fn
    own = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    cells = tuple(types.CellType(control) if n == CF else own[n] for n in code.co_freevars)
    made = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, cells)
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    made.__dict__.update(fn.__dict__)
    return made


def _code(fn: types.FunctionType) -> types.CodeType | None:
    key = fn.__code__
    if key not in _codes:
        _codes[key] = None
        if not key.co_flags & _FLAGS or inspect.isgeneratorfunction(fn):
            try:
                _codes[key] = _rewritten(fn)
            except (OSError, TypeError, SyntaxError, IndentationError, _TooLarge, RecursionError):
                pass
    return _codes[key]


def _rewritten(fn: types.FunctionType) -> types.CodeType | None:
    definition = _lambda(fn.__code__) if fn.__name__ == "<lambda>" else _definition(fn.__code__)
    if definition is None:
        return None
    definition.name = "_clew_function"  # its own name is that of the function, which may recur
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    for a in every:
        a.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]
    first_name = every[0].arg if every else ""
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    names = [a.arg for a in every]
    if inspect.isgeneratorfunction(fn):
        yielding = as_list(definition.body)
        if yielding is None:
            return None
        definition.body = yielding
    definition.body = _Rewriter(first_name).function(definition.body, names)
    free = list(fn.__code__.co_freevars)
    factory = ast.FunctionDef(
        name="_clew_factory",
        args=params([CF, *free]),
        body=[definition, ast.Return(load(definition.name))],
        decorator_list=[],
        **_NO_TYPES,
    )
    module = ast.Module(body=[factory], type_ignores=[])
    ast.copy_location(factory, definition)
    ast.fix_missing_locations(module)
    whole = compile(module, fn.__code__.co_filename, "exec", dont_inherit=True)
    made = next(c for c in whole.co_consts if isinstance(c, types.CodeType))
    inner = [
        c for c in made.co_consts if isinstance(c, types.CodeType) and c.co_name == definition.name
    ]
    if not inner:
        return None
    named: dict[str, Any] = {"co_name": fn.__name__}
    if hasattr(inner[0], "co_qualname"):  # from Python 3.11 on
        named["co_qualname"] = fn.__qualname__
    return inner[0].replace(**named)


def _definition(code: types.CodeType) -> ast.FunctionDef | None:
    """The syntax tree of a function."""
    lines, first = inspect.getsourcelines(code)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        return None
    ast.increment_lineno(tree, first - 1)
    return tree.body[0]


def _lambda(code: types.CodeType) -> ast.FunctionDef | None:
    """A lambda as a function: the one of its file whose body stands where the code says."""
    positions = getattr(code, "co_positions", None)  # from Python 3.11 on
    if positions is None:
        return None
    places = [p for p in positions() if None not in p and p[3]]
    if not places:
        return None
    begin = min((line, column) for line, _, column, _ in places)
    end = max((line, column) for _, line, _, column in places)
    found: ast.Lambda | None = None
    for node in ast.walk(_tree_of("".join(linecache.getlines(code.co_filename)))):
        if not isinstance(node, ast.Lambda):
            continue
        first, last = _span(node.body)
        # What lies in parentheses may end before these do. The innermost that holds all is it.
        if first <= begin and end <= last and (found is None or _span(found.body)[0] <= first):
            found = node
    if found is None or _span(found.body)[0] != begin:
        return None
    node = copy.deepcopy(found)
    whole = ast.FunctionDef(
        name="_clew_lambda", args=node.args, body=[ast.Return(node.body)],
        decorator_list=[], **_NO_TYPES,
    )  # fmt: skip
    for new in (whole, whole.body[0]):
        ast.copy_location(new, node)
    return whole


def _span(node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where an expression begins and ends."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


@functools.lru_cache(maxsize=32)
def _tree_of(text: str) -> ast.Module:
    return ast.parse(text)


class _Loop:
    """Names of the variables that say how a loop ended."""

    def __init__(self, number: int) -> None:
        self.broke = f"_clew_broke_{number}"
        self.returned = f"_clew_returned_{number}"
        self.value = f"_clew_value_{number}"


class _Rewriter:
    def __init__(self, first: str) -> None:
        self._first = first
        self._count = 0
        self._size = 0
        self._own: set[str] = set()
        self._scope = Scope(set(), set(), {})

    def function(self, body: list[ast.stmt], parameters: Iterable[str]) -> list[ast.stmt]:
        """The statements of a function, rewritten."""
        body = without_match(body)
        self._own = {*parameters, *stored(body)}
        self._scope = scope = scope_of(body, self._own)
        end = self.at(ast.Return(ast.Constant(None)), body[-1])
        made = self.seq([*undeclared(body), end], None)
        mine = sorted(scope.shared - {*parameters} - {*scope.declared})
        first: list[ast.stmt] = declarations(scope.declared, scope)
        if mine:  # assigned in functions that are made of branches, but variables of this one
            nothing = ast.Assign([store_name(n) for n in mine], ast.Constant(None))
            first.append(ast.If(ast.Constant(False), [nothing], []))
        moved = sorted(scope.moved - {*scope.declared})
        if moved:
            first.append(ast.Expr(ask("owns", self.cells(moved))))
        return [*(self.at(s, body[0]) for s in first), *made]

    def seq(self, stmts: list[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(stmts):
            rest = stmts[i + 1 :]
            self._size += 1
            if self._size > _LIMIT:
                raise _TooLarge
            out += self.moves(s)
            if isinstance(s, ast.Return):
                value = self.expr(s.value) if s.value else ast.Constant(None)
                if loop is None:
                    return [*out, self.at(ast.Return(value), s)]
                return [
                    *out,
                    self.at(assign(loop.value, value), s),
                    self.at(assign(loop.returned, ast.Constant(True)), s),
                    self.at(assign(loop.broke, ast.Constant(True)), s),
                ]
            if isinstance(s, ast.Break) and loop is not None:
                return [*out, self.at(assign(loop.broke, ast.Constant(True)), s)]
            if isinstance(s, ast.Continue) and loop is not None:
                return out
            if isinstance(s, ast.If):
                if jumps([s]):
                    return [*out, *self.leaving_if(s, rest, loop)]
                out += self.plain_if(s, loop)
            elif isinstance(s, (ast.While, ast.For)) and not jumps_in_blocks(s.body):
                made, after = self.loop(s)
                out += made
                if after:
                    return [*out, *self.seq([*after, *rest], loop)]
            elif isinstance(s, ast.Assign) and is_apart(s) and set(elements(s)) & self._own:
                out += self.apart(s, loop)
            elif isinstance(s, ast.With) and jumps(s.body, False) and not leaves_loop(s.body):
                # A loop of one round keeps the returns of the block.
                once = ast.For(store_name("_clew_once"), tuple_of([ast.Constant(0)]), s.body, [])
                made, after = self.loop(self.at(once, s))
                for item in s.items:
                    item.context_expr = self.expr(item.context_expr)
                s.body = made
                return [*out, self.at(s, s), *self.seq([*after, *rest], loop)]
            else:
                out.append(self.other(s, loop))
        return out

    def at(self, node: Any, like: ast.AST) -> Any:
        for n in ast.walk(node):
            if isinstance(n, (ast.stmt, ast.expr)) and not hasattr(n, "lineno"):
                locate(n, like)
        return node

    def moves(self, s: ast.stmt) -> list[ast.stmt]:
        """What is asked before a statement assigns a variable of a function around this one."""
        if isinstance(s, (ast.If, ast.While, ast.For, ast.With, ast.Try)):
            return []
        names = [n for n in stored([s]) if n in self._scope.declared]
        return [self.at(ast.Expr(ask("moves", self.cells(names))), s)] if names else []

    def changed(
        self, stmts: Sequence[ast.AST], more: Iterable[str] = ()
    ) -> tuple[list[str], list[str]]:
        """The variables that statements change: of this function alone, and shared ones."""
        names = stored(stmts, self._own)
        loops = [n for s in stmts for n in ast.walk(s) if isinstance(n, (ast.For, ast.While))]
        names += [n for n in (*more, *appended(loops)) if n not in names]
        names = list(dict.fromkeys(names))
        shared = [n for n in names if n in self._scope.shared or n not in self._own]
        if holds(stmts, ast.Call):
            shared += sorted(self._scope.moved - {*shared})
        return [n for n in names if n not in shared], shared

    def cells(self, names: list[str]) -> ast.expr:
        """Where shared variables are."""
        return tuple_of([ask("cell", ast.Constant(n), thunk(load(n))) for n in names])

    def defined(self, name: str, names: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
        first = declarations(stored(body), self._scope)
        return ast.FunctionDef(
            name=name,
            args=params(names),
            body=[*first, *body] or [ast.Pass()],
            decorator_list=[],
            **_NO_TYPES,
        )

    def current(self, names: list[str]) -> ast.expr:
        """The values of variables, which may not be bound."""
        return tuple_of([ask("ld", thunk(load(n))) for n in names])

    def names(self, names: list[str]) -> ast.expr:
        return tuple_of([ast.Constant(n) for n in names])

    def plain_if(self, s: ast.If, loop: _Loop | None) -> list[ast.stmt]:
        return self._branches(s, *self.changed([*s.body, *s.orelse]), loop)

    def leaving_if(self, s: ast.If, rest: list[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        if loop is not None:
            whole = ast.If(s.test, [*s.body, *rest], [*s.orelse, *copy.deepcopy(rest)])
            ast.copy_location(whole, s)
            names, shared = self.changed([*whole.body, *whole.orelse])
            flags = [loop.broke]
            if holds([*whole.body, *whole.orelse], ast.Return):
                flags += [loop.returned, loop.value]
            names += [n for n in flags if n not in names]
            return self._branches(whole, names, shared, loop)
        whole = ast.If(s.test, [*s.body, *rest], [*s.orelse, *copy.deepcopy(rest)])
        ast.copy_location(whole, s)
        names, shared = self.changed([*whole.body, *whole.orelse])
        self._count += 1
        k = self._count
        test = self.test(s.test)
        then = self.defined(f"_clew_then_{k}", names, self.seq(whole.body, None))
        other = self.defined(f"_clew_else_{k}", names, self.seq(whole.orelse, None))
        call = ask(
            "if_return", test, load(then.name), load(other.name), self.current(names),
            ast.Constant(s.lineno), self.cells(shared),
        )  # fmt: skip
        return [self.at(x, s) for x in (then, other, ast.Return(call))]

    def _branches(
        self, s: ast.If, names: list[str], shared: list[str], loop: _Loop | None
    ) -> list[ast.stmt]:
        self._count += 1
        k = self._count
        test = self.test(s.test)
        ends = ast.Return(tuple_of([load(n) for n in names]))
        then = self.defined(f"_clew_then_{k}", names, [*self.seq(s.body, loop), ends])
        other = self.defined(f"_clew_else_{k}", names, [*self.seq(s.orelse, loop), ends])
        call = ask(
            "if_", test, load(then.name), load(other.name), self.current(names),
            self.names(names), ast.Constant(s.lineno), self.cells(shared),
        )  # fmt: skip
        done: ast.stmt = ast.Expr(call)
        if names:
            done = ast.Assign([tuple_of([store_name(n) for n in names], ast.Store())], call)
        return [self.at(x, s) for x in (then, other, done)]

    def loop(self, s: ast.While | ast.For) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The loop, and the statements that then say whether the function ends."""
        if isinstance(s, ast.While) and holds([s.test], ast.NamedExpr) and not s.orelse:
            # What the condition assigns is then a variable of the body.
            both = isinstance(s.test, ast.BoolOp) and isinstance(s.test.op, ast.And)
            tests = s.test.values if both else [s.test]  # type: ignore[attr-defined]
            leave = [ast.If(ast.UnaryOp(ast.Not(), t), [ast.Break()], []) for t in tests]
            s = self.at(ast.While(ast.Constant(True), [*leave, *s.body], []), s)
        self._count += 1
        k = self._count
        loop = _Loop(k)
        leaves = holds(s.body, ast.Break) or jumps(s.body, False)
        returns = jumps(s.body, False)
        assigned = [s.target, *s.body] if isinstance(s, ast.For) else [s.test, *s.body]
        growing = list(dict.fromkeys(appended(s.body)))
        names, shared = self.changed(assigned, growing)
        grows = self.names(growing)
        out: list[ast.stmt] = []
        if leaves:
            names.append(loop.broke)
            out.append(assign(loop.broke, ast.Constant(False)))
        if returns:
            names += [loop.returned, loop.value]
            out.append(assign(loop.returned, ast.Constant(False)))
            out.append(assign(loop.value, ask("unbound")))
        ends = ast.Return(tuple_of([load(n) for n in names]))
        broke = ast.Constant(names.index(loop.broke) if leaves else None)
        line = ast.Constant(s.lineno)
        if isinstance(s, ast.While):
            test: ast.expr = self.test(s.test)
            if leaves:
                test = ask("and_", thunk(ask("not_", load(loop.broke))), thunk(test))
            asked = self.defined(f"_clew_test_{k}", names, [ast.Return(test)])
            body = self.defined(f"_clew_body_{k}", names, [*self.seq(s.body, loop), ends])
            out += [asked, body]
            call = ask(
                "while_", load(asked.name), load(body.name), self.current(names),
                self.names(names), broke, line, grows,
                self.cells(shared),
            )  # fmt: skip
        else:
            item = f"_clew_item_{k}"
            first: ast.stmt = ast.Assign([self.store(s.target)], load(item))
            body = self.defined(
                f"_clew_body_{k}", [item, *names], [first, *self.seq(s.body, loop), ends]
            )
            out.append(body)
            call = ask(
                "for_", self.expr(s.iter), load(body.name), self.current(names),
                self.names(names), broke, line, grows,
                self.cells(shared),
            )  # fmt: skip
        if names:
            out.append(ast.Assign([tuple_of([store_name(n) for n in names], ast.Store())], call))
        else:
            out.append(ast.Expr(call))
        after: list[ast.stmt] = []
        if returns:
            ended: ast.stmt = ast.Return(load(loop.value))
            if not only_returns(s):
                ended = ast.If(load(loop.returned), [ended], [])
            after.append(self.at(ended, s))
        if s.orelse:
            if leaves:
                otherwise = ast.If(ast.UnaryOp(ast.Not(), load(loop.broke)), s.orelse, [])
                after.append(self.at(otherwise, s))
            else:
                after += s.orelse
        return [self.at(x, s) for x in out], after

    def other(self, s: ast.stmt, loop: _Loop | None) -> ast.stmt:
        """A statement of another kind: its expressions change, and the blocks in it."""
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if isinstance(s, ast.FunctionDef) and not holds(s.body, ast.Yield, ast.YieldFrom):
                inner = _Rewriter(s.args.args[0].arg if s.args.args else "")
                inner._size = self._size
                s.body = inner.function(s.body, [a.arg for a in ast.walk(s.args)
                                                 if isinstance(a, ast.arg)])  # fmt: skip
                self._size = inner._size
            return s
        if isinstance(s, ast.Raise):
            if s.exc is not None:
                s.exc = ask("raised", self.expr(s.exc))
            return self.at(s, s)
        if isinstance(s, ast.Assert):
            message = self.expr(s.msg) if s.msg else ast.Constant(None)
            asked = ask("assert_", self.test(s.test), thunk(message))
            return self.at(ast.Expr(asked), s)
        if isinstance(s, (ast.With, ast.Try)):
            return self.guarded(s, loop)
        if isinstance(s, (ast.While, ast.For)):
            return s  # kept as it is: a decision of data in it raises
        if isinstance(s, ast.Delete) and all(isinstance(t, ast.Name) for t in s.targets):
            names = [t.id for t in s.targets if isinstance(t, ast.Name)]
            gone = ast.Assign([store_name(n) for n in names], ask("unbound"))
            return self.at(gone, s)
        if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add):
            if isinstance(s.target, ast.Name) and s.target.id in self._own:
                made = ask("extended", load(s.target.id), self.expr(s.value))
                return self.at(assign(s.target.id, made), s)
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Attribute):
            made = ask(
                "augmented", self.expr(s.target.value), ast.Constant(s.target.attr),
                self.expr(s.value), ast.Constant(type(s.op).__name__),
            )  # fmt: skip
            return self.at(ast.Expr(made), s)
        if isinstance(s, (ast.Assign, ast.AugAssign)):
            name = next(iter(elements(s)), None)
            if name in self._own and not (isinstance(s, ast.Assign) and is_apart(s)):
                return self.put(s, str(name))
        targets = getattr(s, "targets", None) or [getattr(s, "target", None)]
        for t in targets:
            if t is not None and not isinstance(s, ast.Delete):
                self.store(t)
        for name in ("value", "msg", "test"):
            part = getattr(s, name, None)
            if isinstance(part, ast.expr):
                setattr(s, name, self.expr(part))
        if isinstance(s, (ast.AnnAssign,)):
            s.annotation = ast.Constant(None)
        return self.at(s, s)

    def guarded(self, s: ast.With | ast.Try, loop: _Loop | None) -> ast.stmt:
        """A `with` or a `try`: the blocks in it change, and what a `try` catches is told."""
        inside = (lambda b: b) if jumps_in_ifs(s) else (lambda b: self.seq(b, loop))
        if loop is not None and jumps([s]):
            return s
        s.body = inside(s.body) or [ast.Pass()]
        if isinstance(s, ast.With):
            for item in s.items:
                item.context_expr = ask("entered", self.expr(item.context_expr))
            return self.at(s, s)
        s.orelse, s.finalbody = inside(s.orelse), inside(s.finalbody)
        for h in s.handlers:
            h.body = inside(h.body) or [ast.Pass()]
        if s.handlers:
            kinds = [h.type or load("BaseException") for h in s.handlers]
            plain = [copy.deepcopy(k) for k in kinds]
            asked = ask("trying", thunk(tuple_of(plain)))
            s.body = [ast.With([ast.withitem(asked)], s.body)]
        return self.at(s, s)

    def apart(self, s: ast.Assign, loop: _Loop | None) -> list[ast.stmt]:
        """``a[0], a[1] = x, y``: the values first, then one target after the other."""
        if not is_apart(s):
            return [self.other(s, loop)]
        self._count += 1
        targets: list[ast.expr] = s.targets[0].elts  # type: ignore[attr-defined]
        parts = [f"_clew_part_{self._count}_{k}" for k in range(len(targets))]
        whole = ast.Assign([tuple_of([store_name(p) for p in parts], ast.Store())], s.value)
        out = [self.other(self.at(whole, s), loop)]
        for t, p in zip(targets, parts):
            out += self.apart(self.at(ast.Assign([t], load(p)), s), loop)
        return out

    def put(self, s: ast.Assign | ast.AugAssign, name: str) -> ast.stmt:
        """``h[i] = x``: of a list, the variable is then another list."""
        target: Any = s.target if isinstance(s, ast.AugAssign) else s.targets[0]
        how = type(s.op).__name__ if isinstance(s, ast.AugAssign) else None
        made = ask("put", load(name), self.expr(target.slice), self.expr(s.value),
                    ast.Constant(how))  # fmt: skip
        return self.at(assign(name, made), s)

    def store(self, target: ast.expr) -> ast.expr:
        """A target of an assignment: attributes and elements are checked when they are stored."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for t in target.elts:
                self.store(t)
        elif isinstance(target, ast.Starred):
            self.store(target.value)
        elif isinstance(target, ast.Attribute):
            target.value = ask("may_store", self.expr(target.value), ast.Constant(target.attr))
        elif isinstance(target, ast.Subscript):
            target.value = ask("may_store", self.expr(target.value), ast.Constant(None))
            target.slice = self.expr(target.slice)
        return self.at(target, target)

    def test(self, e: ast.expr) -> ast.expr:
        """An expression of which only counts whether it is true."""
        return self.expr(as_condition(e))

    def expr(self, e: ast.expr) -> ast.expr:
        return self.at(Expressions(self._first).visit(e), e)
