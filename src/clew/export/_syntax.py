"""Small pieces of syntax, and questions about statements."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from typing import Any

CF = "_clew_cf"


def locate(node: Any, like: Any) -> None:
    """The first line alone: calls of several lines would count for the last of them."""
    node.lineno = node.end_lineno = like.lineno
    node.col_offset = node.end_col_offset = like.col_offset


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store_name(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def params(names: Iterable[str]) -> ast.arguments:
    return ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )


def ask(what: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(load(CF), what, ast.Load()), list(args), [])


def thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(params([]), body)


def tuple_of(parts: list[ast.expr], ctx: Any = None) -> ast.Tuple:
    return ast.Tuple(parts, ctx or ast.Load())


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([store_name(name)], value)


def variable_of(target: ast.expr) -> str | None:
    """``h`` of a target ``h[i]``."""
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return target.value.id
    return None


def is_apart(s: ast.Assign) -> bool:
    """Whether several targets take one value apart, each a single part of it."""
    one = s.targets[0]
    return len(s.targets) == 1 and isinstance(one, (ast.Tuple, ast.List)) and not any(
        isinstance(t, ast.Starred) for t in one.elts
    )  # fmt: skip


def elements(node: ast.AST) -> list[str]:
    """The variables of which a statement assigns elements, as ``h[i] = x`` does."""
    if isinstance(node, ast.AugAssign):
        return elements_of(node.target)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return elements_of(node.targets[0])
    return []


def elements_of(target: ast.expr) -> list[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for t in target.elts for name in elements_of(t)]
    name = variable_of(target)
    return [] if name is None else [name]


def stored(stmts: Iterable[ast.AST], own: Collection[str] = ()) -> list[str]:
    """Names that statements assign, in order; not those of inner scopes.

    Args:
        own: local variables, of which elements that are assigned count, too.
    """
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        for changed in elements(node):
            if changed in own:
                found[changed] = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not node.name.startswith("_clew_"):
                found[node.name] = None
            return
        elif isinstance(node, ast.alias):
            found[(node.asname or node.name).split(".")[0]] = None
        elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
                               ast.GeneratorExp)):  # fmt: skip
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                    found[inner.target.id] = None
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for s in stmts:
        visit(s)
    return list(found)


def appended(stmts: Iterable[ast.AST]) -> list[str]:
    """Names of which a method append is called, or to which ``+= [x]`` adds."""
    found = []
    for s in stmts:
        for n in ast.walk(s):
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
                if isinstance(n.op, ast.Add) and isinstance(n.value, ast.List):
                    found.append(n.target.id)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
                if n.func.attr == "append" and isinstance(n.func.value, ast.Name):
                    found.append(n.func.value.id)
    return found


def jumps(stmts: Iterable[ast.AST], loops: bool = True) -> bool:
    """Whether statements return, or leave or continue the loop that they are in."""
    for s in stmts:
        if isinstance(s, ast.Return) or (loops and isinstance(s, (ast.Break, ast.Continue))):
            return True
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        inner = loops and not isinstance(s, (ast.For, ast.While))
        if isinstance(s, (ast.For, ast.While)):
            if jumps(s.body, False) or jumps(s.orelse, loops):
                return True
        elif jumps((c for c in ast.iter_child_nodes(s) if not isinstance(c, ast.expr)), inner):
            return True
    return False


def leaves_loop(
    stmts: Iterable[ast.AST], kinds: tuple[type, ...] = (ast.Break, ast.Continue)
) -> bool:
    """Whether statements leave or continue the loop that they are in."""
    for s in stmts:
        if isinstance(s, kinds):
            return True
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            continue
        inner = s.orelse if isinstance(s, (ast.For, ast.While)) else ast.iter_child_nodes(s)
        if leaves_loop(inner, kinds):
            return True
    return False


def only_returns(s: ast.AST) -> bool:
    """Whether nothing but a `return` ends a loop."""
    if not isinstance(s, ast.While) or not isinstance(s.test, ast.Constant):
        return False
    return bool(s.test.value) and not leaves_loop(s.body, (ast.Break,))


def holds(stmts: Iterable[ast.AST], *kinds: type) -> bool:
    return any(isinstance(n, kinds) for s in stmts for n in ast.walk(s))


def jumps_in_blocks(stmts: list[ast.stmt]) -> bool:
    """Whether a `with`, `try` or `match` among the statements holds such a jump."""
    for s in stmts:
        for n in ast.walk(s):
            if isinstance(n, ast.With) and not leaves_loop(n.body):
                continue  # its returns are kept
            if isinstance(n, (ast.With, ast.Try, ast.Match)) and jumps([n]):
                return True
    return False


def jumps_in_ifs(s: ast.AST) -> bool:
    return any(isinstance(n, (ast.If, ast.For, ast.While)) and jumps([n]) for n in ast.walk(s))
