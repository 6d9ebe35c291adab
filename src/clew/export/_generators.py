"""Generator functions in which data decide, as functions that return a list of what they yield."""

from __future__ import annotations

import ast
import inspect
import types

from clew.export._errors import is_library, is_standard
from clew.export._syntax import assign, load, locate, store_name

__all__ = ["as_list", "deciding"]

_YIELDS = "_clew_yields"


def deciding(error: BaseException) -> types.CodeType | None:
    """The innermost function of the user's that an error came through, if it is a generator."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_library(code.co_filename) and not is_standard(code.co_filename):
            found = code
        trace = trace.tb_next
    generates = found is not None and found.co_flags & inspect.CO_GENERATOR
    return found if generates and found is not None and found.co_name[0] != "<" else None


def as_list(body: list[ast.stmt]) -> list[ast.stmt] | None:
    """The statements with `append` for `yield`; None where a `yield` has a value of its own."""
    changer = _Appends()
    made: list[ast.stmt] = [assign(_YIELDS, ast.List([], ast.Load()))]
    for s in body:
        found = changer.visit(s)
        made += found if isinstance(found, list) else [found]
    left = [n for s in made for n in ast.walk(s) if isinstance(n, (ast.Yield, ast.YieldFrom))]
    if left:
        return None
    made.append(ast.Return(load(_YIELDS)))
    for s in (made[0], made[-1]):
        locate(s, body[0])
    for s in made:
        for n in ast.walk(s):
            if isinstance(n, (ast.stmt, ast.expr)) and not hasattr(n, "lineno"):
                locate(n, s)
    return made


def _append(value: ast.expr) -> ast.Expr:
    append = ast.Attribute(load(_YIELDS), "append", ast.Load())
    return ast.Expr(ast.Call(append, [value], []))


class _Appends(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Return(load(_YIELDS)), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        made: ast.stmt = node
        if isinstance(node.value, ast.Yield):
            made = _append(node.value.value or ast.Constant(None))
        elif isinstance(node.value, ast.YieldFrom):
            item = "_clew_yielded"
            made = ast.For(store_name(item), node.value.value, [_append(load(item))], [])
        for n in ast.walk(made):
            if isinstance(n, (ast.stmt, ast.expr)) and not hasattr(n, "lineno"):
                locate(n, node)
        return made
