"""Which values a program fills in by itself: what `ones()` gives is meant as it is, what is read
from data is not. Told from the text, where nothing speaks against it."""

from __future__ import annotations

import ast

from clew._insight.debug.doctor.source import parsed, within
from clew._insight.debug.place import Place

__all__ = ["gives_filled"]

_FILLERS = set(
    "ones zeros full ones_like zeros_like full_like new_ones new_zeros new_full fill_ zero_".split()
)
# What hands numbers on: methods of what is filled, and functions that are given it first.
_METHODS = set(
    "to long float double half int bool cuda cpu type type_as view view_as reshape expand "
    "expand_as squeeze unsqueeze flatten repeat clone detach contiguous astype".split()
)
_FUNCTIONS = set("tensor as_tensor from_numpy Variable cat stack concatenate".split())
# What writes other numbers into a tensor.
_WRITERS = set(
    "copy_ scatter_ index_fill_ index_copy_ masked_fill_ bernoulli_ random_ uniform_ put_".split()
)
_TARGETS = ("target", "targets", "labels", "y")  # what the argument of a loss is called
_DEPTH = 8  # of names that stand for others

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


def gives_filled(place: Place | None) -> bool:
    """Whether a call on a line is given, as its second argument, numbers that the program fills in
    by itself."""
    if place is None:
        return False
    text = _Text(parsed(place.file))
    scope = text.around(place.line)
    near = [s for s in ast.walk(scope) if isinstance(s, ast.stmt) and _spans(s, place.line)]
    if not near:
        return False
    statement = max(near, key=lambda s: (s.lineno, -(s.end_lineno or 0)))
    for call in ast.walk(statement):
        if isinstance(call, ast.Call) and _spans(call, place.line):
            named = [k.value for k in call.keywords if k.arg in _TARGETS]
            if any(text.is_filled(each, scope) for each in (*call.args[1:2], *named)):
                return True
    return False


def _spans(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


class _Text:
    """A file's tree, in which names are looked up."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.asked: set[int] = set()  # expressions that are being judged

    def around(self, line: int) -> _Scope:
        """The innermost function, or the module, that a line stands in."""
        found = [n for n in self._functions() if _spans(n, line)]
        return max(found, key=lambda n: n.lineno) if found else self.tree

    def _functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [n for n in ast.walk(self.tree) if isinstance(n, kinds)]

    def is_filled(self, node: ast.expr, scope: _Scope, depth: int = _DEPTH) -> bool:
        """Whether all of an expression's numbers stand in the text."""
        if depth < 0:
            return False
        depth -= 1
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (int, float))
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(self.is_filled(e, scope, depth) for e in node.elts)
        if isinstance(node, ast.UnaryOp):
            return self.is_filled(node.operand, scope, depth)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
                return self.is_filled(node.left, scope, depth)  # [1] * len(x)
            return all(self.is_filled(side, scope, depth) for side in (node.left, node.right))
        if isinstance(node, ast.IfExp):
            return all(self.is_filled(side, scope, depth) for side in (node.body, node.orelse))
        if isinstance(node, ast.Subscript):
            return self.is_filled(node.value, scope, depth)
        if isinstance(node, ast.Call):
            return self._call(node, scope, depth)
        if isinstance(node, ast.Name):
            return self._variable(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node.attr, depth)
        return False

    def _call(self, node: ast.Call, scope: _Scope, depth: int) -> bool:
        name = _name(node.func)
        if name in _FILLERS:
            value = self._fill_value(name, node)
            return value is None or self.is_filled(value, scope, depth)
        if name in _METHODS and isinstance(node.func, ast.Attribute):
            return self.is_filled(node.func.value, scope, depth)
        if (name in _FUNCTIONS or name.endswith("Tensor")) and node.args:
            return self.is_filled(node.args[0], scope, depth)
        made = [f for f in self._functions() if f.name == name]
        given = [(f, n) for f in made for n in within(f) if isinstance(n, ast.Return)]
        return bool(given) and all(
            n.value is not None and self.is_filled(n.value, f, depth) for f, n in given
        )

    @staticmethod
    def _fill_value(name: str, node: ast.Call) -> ast.expr | None:
        """The value that full() or fill_() is given; the other names say it themselves."""
        if "full" in name:
            named = [k.value for k in node.keywords if k.arg == "fill_value"]
            return next(iter((*node.args[1:2], *named)), None)
        return node.args[0] if name == "fill_" and node.args else None

    def _variable(self, name: str, scope: _Scope, depth: int) -> bool:
        found = self._bound(name, scope)
        if found is None:
            return False
        given: list[tuple[ast.expr, _Scope]] = [(value, scope) for value in found]
        if not isinstance(scope, ast.Module) and name in _parameters(scope):
            handed = self._handed(name, scope)
            if handed is None or not (handed or found):
                return False
            given += handed
        elif not found:
            if isinstance(scope, ast.Module):
                return False
            outer = [f for f in self._functions() if f is not scope and _spans(f, scope.lineno)]
            inner = max(outer, key=lambda f: f.lineno) if outer else self.tree
            return self._variable(name, inner, depth)
        return bool(given) and all(self.is_filled(value, at, depth) for value, at in given)

    def _bound(self, name: str, scope: _Scope) -> list[ast.expr] | None:
        """All values that a function's own body assigns to a variable. None where some are unknown,
        or where elements are written into it."""
        found: list[ast.expr] = []
        stored = 0
        for node in within(scope):
            if isinstance(node, ast.Name) and node.id == name:
                stored += isinstance(node.ctx, ast.Store)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript) and _name(target.value) == name:
                        return None
                    found += _matched(target, node.value, name)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                found += _matched(node.target, node.value, name)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in _WRITERS and _name(node.func.value) == name:
                    return None
        return found if stored == len(found) else None

    def _handed(
        self, name: str, scope: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> list[tuple[ast.expr, _Scope]] | None:
        """What a function's argument is given by all who call it in this file, and its default;
        None where that is not known."""
        own = _parameters(scope)
        # Of a module forward() is called by the module's own name.
        if scope.name in ("forward", "__call__"):
            return None
        at = own.index(name) - (own[0] in ("self", "cls"))
        found: list[tuple[ast.expr, _Scope]] = []
        default = _default(scope, name)
        for call in ast.walk(self.tree):
            if not isinstance(call, ast.Call) or _name(call.func) != scope.name:
                continue
            if any(isinstance(a, ast.Starred) for a in call.args):
                return None
            value = next((k.value for k in call.keywords if k.arg == name), default)
            value = call.args[at] if at < len(call.args) else value
            if value is None:
                return None
            found.append((value, self.around(call.lineno)))
        if not found and default is not None:
            found.append((default, scope))
        # None stands for what the body sets instead.
        return [(v, at) for v, at in found if not (isinstance(v, ast.Constant) and v.value is None)]

    def _attribute(self, name: str, depth: int) -> bool:
        """Whether all that this file assigns to attributes of this name is filled in."""
        found: list[tuple[ast.expr, int]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript) and _name(target.value) == name:
                        return False
                    found += [(v, node.lineno) for v in _matched(target, node.value, name)]
            elif isinstance(node, ast.Call) and _name(node.func) == "register_buffer":
                key = node.args[0] if len(node.args) > 1 else None
                if isinstance(key, ast.Constant) and key.value == name:
                    found.append((node.args[1], node.lineno))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in _WRITERS and _name(node.func.value) == name:
                    return False
        return bool(found) and all(self.is_filled(v, self.around(n), depth) for v, n in found)


def _matched(target: ast.expr, value: ast.expr, name: str) -> list[ast.expr]:
    """What an assignment gives to a variable or attribute of this name."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            pairs = zip(target.elts, value.elts)
            return [found for t, v in pairs for found in _matched(t, v, name)]
        return []
    return [value] if _name(target) == name else []


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _default(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.expr | None:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults),
        *zip(arguments.kwonlyargs, arguments.kw_defaults),
    ]
    return next((value for a, value in pairs if a.arg == name), None)
