"""Rewrites expressions: what data may decide in them asks clew."""

from __future__ import annotations

import ast
from typing import Any

from clew.export._syntax import ask, holds, load, locate, params, thunk

_AS_IT_IS = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}


def as_condition(e: ast.expr) -> ast.expr:
    """Marks the `and` and `or` of a condition."""
    if isinstance(e, ast.BoolOp):
        e._clew_asked = True  # type: ignore[attr-defined]
        for part in e.values:
            as_condition(part)
    elif isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
        as_condition(e.operand)
    elif isinstance(e, ast.IfExp):
        as_condition(e.test)
    return e


class Expressions(ast.NodeTransformer):
    def __init__(self, first: str) -> None:
        self._first = first

    def _like(self, new: ast.AST, old: ast.AST) -> ast.AST:
        for n in ast.walk(new):
            if isinstance(n, ast.expr) and not hasattr(n, "lineno"):
                locate(n, old)
        return new

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _AS_IT_IS:
            if node.func.id == "super" and not node.args:
                node.args = [load("__class__"), load(self._first)]
            return self._like(node, node)
        asked = ask("call", node.func, *node.args)
        asked.keywords = node.keywords
        return self._like(asked, node)

    def _made(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return self._like(ask("fresh", node), node)
        return node

    visit_Dict = _made

    def visit_List(self, node: ast.List) -> ast.AST:
        starred = any(isinstance(e, ast.Starred) for e in node.elts)
        if not starred or not isinstance(node.ctx, ast.Load):
            return self._made(node)
        self.generic_visit(node)
        parts = [e.value if isinstance(e, ast.Starred) else ast.Tuple([e], ast.Load())
                 for e in node.elts]  # fmt: skip
        return self._like(ask("spread", *parts), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
            return self._like(ask("item", node.value, node.slice), node)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._each(node, "listed") or node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._each(node, "generated") or self._like(ask("fresh", node), node)

    def _each(self, node: ast.ListComp | ast.GeneratorExp, what: str) -> ast.AST | None:
        """``[f(x) for x in items if g(x)]`` as a call with functions of an item."""
        if len(node.generators) > 1 and not any(map(_is_odd, node.generators)):
            inner = ast.copy_location(ast.ListComp(node.elt, node.generators[1:]), node)
            outer = ast.copy_location(ast.ListComp(inner, node.generators[:1]), node)
            if not holds([node], ast.NamedExpr, ast.Await, ast.Yield):
                return self._each(outer, "flattened")
        part = node.generators[0]
        target = part.target
        names = _names_of(target)
        tests = [as_condition(test) for test in part.ifs]
        self.generic_visit(node)
        odd = len(node.generators) > 1 or _is_odd(part)
        if odd or holds([node], ast.NamedExpr, ast.Await, ast.Yield):
            return None
        functions = [node.elt]
        if len(tests) == 1:
            functions += part.ifs
        elif tests:
            functions.append(ask("and_", *map(thunk, part.ifs)))
        given: list[ast.expr] = []
        for body in functions:
            each: ast.expr = ast.Lambda(params(names), body)
            if isinstance(target, ast.Tuple):
                item = ast.Starred(load("_clew_item"), ast.Load())
                each = ast.Lambda(params(["_clew_item"]), ast.Call(each, [item], []))
            given.append(each)
        return self._like(ask(what, part.iter, *given), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if holds(node.values[1:], ast.NamedExpr) or holds([node], ast.Await, ast.Yield):
            return node
        named = holds(node.values[:1], ast.NamedExpr)
        self.generic_visit(node)
        what = "and_" if isinstance(node.op, ast.And) else "or_"
        if not hasattr(node, "_clew_asked"):
            what += "value"
        first, *rest = node.values
        given = ask("given", first) if named else thunk(first)
        return self._like(ask(what, given, *map(thunk, rest)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        as_condition(node)
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return self._like(ask("not_", node.operand), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        as_condition(node.test)
        # The test stays in its place, where it may assign; the branches become functions.
        named = holds([node.body, node.orelse], ast.NamedExpr)
        if named or holds([node], ast.Await, ast.Yield):
            return node
        self.generic_visit(node)
        return self._like(
            ask("ifexp", node.test, thunk(node.body), thunk(node.orelse),
                 ast.Constant(node.lineno)),
            node,
        )  # fmt: skip

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        plain = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self.generic_visit(node)
            asked = ask("contains", node.left, node.comparators[0])
            if isinstance(node.ops[0], ast.NotIn):
                asked = ask("not_", asked)
            return self._like(asked, node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            self.generic_visit(node)
            asked = ask("same", node.left, node.comparators[0])
            if isinstance(node.ops[0], ast.IsNot):
                asked = ask("not_", asked)
            return self._like(asked, node)
        if len(node.ops) == 1 or any(isinstance(o, plain) for o in node.ops):
            self.generic_visit(node)
            return node
        if holds([node], ast.NamedExpr, ast.Await, ast.Yield):
            return node
        self.generic_visit(node)
        names = ast.Constant(" ".join(type(o).__name__ for o in node.ops))
        thunks = [thunk(v) for v in (node.left, *node.comparators)]
        return self._like(ask("chain", names, *thunks), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        inner = Expressions(node.args.args[0].arg if node.args.args else "")
        node.body = inner.visit(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node


def _names_of(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [p.id for p in parts if isinstance(p, ast.Name)]


def _is_odd(part: ast.comprehension) -> bool:
    """Whether a `for` of a comprehension is no plain one of names."""
    count = len(part.target.elts) if isinstance(part.target, ast.Tuple) else 1
    return bool(part.is_async) or len(_names_of(part.target)) < count
