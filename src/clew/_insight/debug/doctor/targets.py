"""Targets that are never renewed: read from the text of the program."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator

from clew._base.statements import names_in
from clew._insight.debug.doctor.source import SourceRule
from clew._insight.debug.place import Place

_CHOSEN = {"max", "amax", "gather", "maximum", "minimum", "min"}  # of the values of the next state
_HARMLESS = {"eval", "requires_grad_", "to", "cuda", "float", "train"}
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _name(node: ast.AST) -> str:
    """What a variable or an attribute of self is called; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"self.{node.attr}" if node.value.id == "self" else ""
    return ""


def _is_state(node: ast.AST) -> bool:
    """Whether it is model.state_dict()."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "state_dict"
        and bool(_name(node.func.value))
    )


class TargetNeverRenewed(SourceRule):
    """Of Q-learning: a copy of the network gives reward + discount * value, and stays as it was."""

    mistake = "the target network is never renewed"
    hint = re.compile(r"deepcopy\(|load_state_dict\(")

    ENOUGH = 32  # steps

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        if not isinstance(scope, ast.Module):
            return
        steps = max((w.steps for w in self.run.optimizers.values()), default=0)
        if steps < self.ENOUGH:
            return
        above = {child: node for node in ast.walk(scope) for child in ast.iter_child_nodes(node)}
        for target, (copy, line) in self._copies(scope).items():
            used = list(_uses(scope, target))
            calls = [n for n in used if _is_called(n, above)]
            if not calls or not self._stays(scope, target, used, above):
                continue
            if not any(_is_return(n, above, scope) for n in calls):
                continue
            if target.startswith("self.") and _is_elsewhere(target[5:], scope, file):
                continue
            self.find(
                Place(None, file, line),
                f"{target} is made a copy of {copy} once, and its values of next states are in "
                f"what {copy} is trained to give; in {steps} steps nothing has renewed it, and "
                "no line could: it stays the network of the beginning",
                f"renew it now and then: {target}.load_state_dict({copy}.state_dict())",
                target,
            )

    @staticmethod
    def _copies(scope: ast.AST) -> dict[str, tuple[str, int]]:
        """Names that are given a copy of another model: of which, and where."""
        found: dict[str, tuple[str, int]] = {}
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                made = node.value
                while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
                    if made.func.attr not in _HARMLESS:
                        break
                    made = made.func.value
                if isinstance(made, ast.Call) and ast.unparse(made.func).endswith("deepcopy"):
                    copy = _name(made.args[0]) if made.args else ""
                    if copy and _name(node.targets[0]):
                        found[_name(node.targets[0])] = (copy, node.lineno)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "load_state_dict" and node.args and _is_state(node.args[0]):
                    copy = ast.unparse(node.args[0]).removesuffix(".state_dict()")
                    if _name(node.func.value):
                        found.setdefault(_name(node.func.value), (copy, node.lineno))
        return found

    @staticmethod
    def _stays(
        scope: ast.AST, target: str, used: list[ast.AST], above: dict[ast.AST, ast.AST]
    ) -> bool:
        """Whether nothing but its beginning can change what a name stands for."""
        for node in used:
            parent = above[node]
            if _is_called(node, above):
                continue
            if isinstance(parent, ast.Tuple) and isinstance(parent.ctx, ast.Store):
                parent, node = above[parent], parent  # one, two = Net(), Net()
            if isinstance(parent, ast.Assign) and node in parent.targets:
                if _runs_again(node, above, scope):
                    return False
                continue
            if not isinstance(parent, ast.Attribute):
                return False
            if parent.attr == "load_state_dict" and not _runs_again(node, above, scope):
                continue
            if parent.attr == "parameters" and _only_freezes(parent, above):
                continue
            statement = above.get(above[parent])
            moved = isinstance(statement, ast.Assign) and _name(statement.targets[0]) == target
            if parent.attr not in _HARMLESS or not (moved or isinstance(statement, ast.Expr)):
                return False
        return True


class AverageNotLoaded(SourceRule):
    """Of what state_dict() gave: a new entry in the dict is no new value of the model."""

    mistake = "a moving average never reaches its parameters"
    hint = re.compile(r"\.state_dict\(\)")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        states: dict[str, str] = {}  # variables, and the models whose states they are
        for node in body:
            for target, value in _pairs(node) if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Name) and _is_state(value):
                    states[target.id] = ast.unparse(value).removesuffix(".state_dict()")
        above = {child: node for node in ast.walk(scope) for child in ast.iter_child_nodes(node)}
        for name, model in states.items():
            line = self._lost(name, scope, above)
            if line:
                self.find(
                    Place(None, file, line),
                    f"line {line} puts a new tensor into {name}, the dict that {model}.state_dict()"
                    f" gave, and nothing takes it from there: {model} stays as it was",
                    f"load it, {model}.load_state_dict({name}), or write into the tensor: "
                    f"{name}[key].copy_(...)",
                )

    @staticmethod
    def _lost(name: str, scope: ast.AST, above: dict[ast.AST, ast.AST]) -> int:
        """The line of a loop that sets entries which nothing reads; 0 where there is none."""
        line = 0
        for node in ast.walk(scope):
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            parent = above[node]
            if isinstance(node.ctx, ast.Store):
                given = above[parent] if isinstance(parent, ast.Tuple) else parent
                if not isinstance(given, ast.Assign):
                    return 0
            elif isinstance(parent, ast.Subscript) and parent.value is node:
                statement = next(o for o in _over(node, above) if isinstance(o, ast.stmt))
                if not isinstance(statement, ast.Assign):
                    return 0
                into = statement.targets[0]
                if not isinstance(into, ast.Subscript) or getattr(into.value, "id", "") != name:
                    return 0
                if name in names_in(statement.value):  # an average of it
                    line = statement.lineno
            elif not (isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node):
                if not isinstance(parent, ast.Attribute) or parent.attr not in ("items", "keys"):
                    return 0
        return line


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment sets, and to what."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _uses(scope: ast.AST, target: str) -> Iterator[ast.AST]:
    """Where a name stands, but as another function's parameter; of an attribute, whatever it is
    one of."""
    pending = [scope]
    while pending:
        node = pending.pop()
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            if any(isinstance(a, ast.arg) and a.arg == target for a in ast.walk(node.args)):
                continue
        if _name(node) == target or (
            isinstance(node, ast.Attribute) and f"self.{node.attr}" == target
        ):
            yield node
        pending += ast.iter_child_nodes(node)


def _is_called(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    parent = above[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _over(node: ast.AST, above: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """What a node stands in, from the inside."""
    while node in above:
        node = above[node]
        yield node


def _runs_again(node: ast.AST, above: dict[ast.AST, ast.AST], scope: ast.AST) -> bool:
    """Whether a line may run more than once: in a loop, or in a function that is called so."""
    for outer in _over(node, above):
        if isinstance(outer, (*_LOOPS, ast.Lambda)):
            return True
        if isinstance(outer, _FUNCTIONS):
            if outer.name == "__init__":
                return False
            calls = [
                n
                for n in ast.walk(scope)
                if isinstance(n, ast.Name) and n.id == outer.name and isinstance(n.ctx, ast.Load)
            ]
            inside = (*_LOOPS, *_FUNCTIONS, ast.Lambda, ast.ClassDef)
            if len(calls) != 1 or not _is_called(calls[0], above):
                return True  # it may be called by others
            if any(isinstance(o, inside) for o in _over(calls[0], above)):
                return True
    return False


def _only_freezes(parameters: ast.Attribute, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a loop over parameters does nothing but set requires_grad."""
    loop = above.get(above[parameters])
    return isinstance(loop, ast.For) and all(
        re.fullmatch(r"\w+\.requires_grad(_\(False\)| = False)", ast.unparse(line))
        for line in loop.body
    )


def _is_return(call: ast.AST, above: dict[ast.AST, ast.AST], scope: ast.AST) -> bool:
    """Whether a model's values end up in reward + discount * value, perhaps by way of a name."""
    statement = call
    chosen = False
    for outer in _over(call, above):
        method = outer.func if isinstance(outer, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr in _CHOSEN:
            chosen = True  # target(s).max(1), or torch.max(target(s), 1)
        if isinstance(outer, ast.stmt):
            statement = outer
            break
        if chosen and _is_sum(outer):
            return True
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    function = next((o for o in _over(statement, above) if isinstance(o, _FUNCTIONS)), scope)
    for node in ast.walk(function):
        if _is_sum(node) and name in names_in(node):
            methods = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            if chosen or methods & _CHOSEN:
                return True
    return False


def _is_sum(node: ast.AST) -> bool:
    """Whether it is a + b * c, where some of what is multiplied is 1 - something, or not so."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    for part in (node.left, node.right):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            factors = [n for n in ast.walk(part) if isinstance(n, (ast.BinOp, ast.UnaryOp))]
            if any(
                (isinstance(n, ast.UnaryOp) and isinstance(n.op, (ast.Invert, ast.Not)))
                or (
                    isinstance(n, ast.BinOp)
                    and isinstance(n.op, ast.Sub)
                    and isinstance(n.left, ast.Constant)
                )
                for n in factors
            ):
                return True
    return False


def _is_elsewhere(attribute: str, scope: ast.AST, file: str) -> bool:
    """Whether a text or another file of the program has this word."""
    texts = (n.value for n in ast.walk(scope) if isinstance(n, ast.Constant))
    if any(isinstance(text, str) and attribute in text for text in texts):
        return True
    folder = file.rpartition("/")[0]
    word = re.compile(rf"\b{re.escape(attribute)}\b")
    others = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    return any(
        word.search("".join(linecache.getlines(other)))
        for other in others - {file}
        if folder and other.startswith(folder + "/") and "site-packages" not in other
    )
