"""Samplers and shuffles that do not do what they are for."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from clew._base.statements import names_in
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Batch
from clew._insight.debug.doctor.source import SourceRule, statements
from clew._insight.debug.place import Place, placed


class WeightsOfClasses(Rule):
    mistake = "a sampler has weights of classes, not of samples"

    def batch(self, batch: Batch) -> None:
        from clew.utils.data import WeightedRandomSampler

        sampler = getattr(batch.loader, "sampler", None)
        if batch.number or not isinstance(sampler, WeightedRandomSampler):
            return
        count, whole = len(sampler.weights), len(batch.loader.dataset)
        if count >= whole:
            return
        _, made = self.run.made.get(id(sampler), (None, None))
        self.find(
            placed(made) or batch.place(self.run),
            f"WeightedRandomSampler has {count} weights, one for each sample that it may draw, and "
            f"the dataset has {whole} samples: only the first {count} are ever drawn"
            + batch.read(),
            "give each sample the weight of its class: weights[labels]",
            id(batch.loader),
        )


_DRAWN = ("randperm", "permutation")
_LOSS = re.compile(r"cross_entropy|_loss|criterion|loss_fn|loss_func|bce|nll|mse", re.IGNORECASE)


class ShuffledApart(SourceRule):
    mistake = "inputs and labels are shuffled apart"
    hint = re.compile(r"\b(randperm|permutation|shuffle)\(")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        targets: set[str] | None = None
        for node in [scope, *body]:
            inside = statements(node)
            for first, second in pairwise(inside):
                one, two = _shuffled(first), _shuffled(second)
                if one is None or two is None or one[1] == two[1]:
                    continue
                if targets is None:
                    targets = _targets(scope)
                if len({one[0], two[0]} & targets) == 1:
                    self.find(
                        Place(None, file, second.lineno),
                        f"lines {first.lineno} and {second.lineno} each draw an order of their "
                        f"own: after them {one[0]} and {two[0]} no longer belong together",
                        "draw one order for both: order = torch.randperm(n); x, y = x[order], "
                        "y[order]",
                    )


class InputsShuffledAlone(SourceRule):
    """Of two arrays that are cut into batches side by side, of which one has a new order."""

    mistake = "inputs and labels are shuffled apart"
    hint = re.compile(r"\[[\w.]*\b(randperm|permutation)\(")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        if not isinstance(scope, ast.Module):
            return
        targets = _targets(scope)
        within_class = [n for n in ast.walk(scope) if isinstance(n, ast.ClassDef)]
        functions = [n for n in ast.walk(scope) if isinstance(n, ast.FunctionDef)]
        for node in ast.walk(scope):
            subject = _reordered(node)
            if subject is None or not isinstance(node, ast.Assign):
                continue
            # An attribute belongs to a class, a variable to a function.
            around = within_class if subject.startswith("self.") else functions
            spans = [n for n in around if n.lineno <= node.lineno <= (n.end_lineno or 0)]
            space = max(spans, key=lambda n: n.lineno, default=scope)
            for other in _beside(space, subject, targets):
                if self._stays(space, other, node.lineno):
                    self.find(
                        Place(None, file, node.lineno),
                        f"line {node.lineno} gives {subject} a new order, drawn where it stands, "
                        f"and {other}, which is cut into batches beside it, keeps its own: they no "
                        "longer belong together",
                        f"draw one order for both: order = torch.randperm(n); {subject}, {other} "
                        f"= {subject}[order], {other}[order]",
                    )

    @staticmethod
    def _stays(space: ast.AST, other: str, line: int) -> bool:
        """Whether an array is set before a line and nothing changes it."""
        method = next(
            (
                n
                for n in ast.walk(space)
                if isinstance(n, ast.FunctionDef) and n is not space
                if n.lineno <= line <= (n.end_lineno or 0)
            ),
            None,
        )
        for node in ast.walk(space):
            if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == other:
                if not isinstance(node.ctx, ast.Load):
                    if node.lineno >= line or (method is not None and node.lineno > method.lineno):
                        return False
            elif isinstance(node, ast.Call) and any(ast.unparse(a) == other for a in node.args):
                if "shuffle" in ast.unparse(node.func):
                    return False
        return True


def _reordered(node: ast.AST) -> str | None:
    """What a statement gives its own values in an order that is drawn where it stands."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    value, text = node.value, ast.unparse(node.targets[0])
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Call):
        return None
    drawn = ast.unparse(value.slice.func).rpartition(".")[2] in _DRAWN
    return text if drawn and ast.unparse(value.value) == text else None


def _beside(space: ast.AST, subject: str, targets: set[str]) -> set[str]:
    """The targets of a loss that are cut in the same way right after an array."""
    found = set()
    for node in ast.walk(space):
        parts = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
        for first, second in pairwise(parts):
            if not isinstance(first, ast.Subscript) or not isinstance(second, ast.Subscript):
                continue
            other = ast.unparse(second.value)
            alike = ast.unparse(first.slice) == ast.unparse(second.slice)
            if alike and ast.unparse(first.value) == subject and other != subject:
                if other.rpartition(".")[2] in targets:
                    found.add(other)
    # Unpacked at once, the batch's own name is that of the target.
    for node in ast.walk(space):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            into = getattr(node.targets[0], "elts", [])
            for (_, name), (first, second) in zip(pairwise(into), pairwise(node.value.elts)):
                if not isinstance(first, ast.Subscript) or not isinstance(second, ast.Subscript):
                    continue
                if ast.unparse(first.value) == subject and names_in(name) & targets:
                    if ast.unparse(first.slice) == ast.unparse(second.slice):
                        found.add(ast.unparse(second.value))
    return found - {subject}


def _shuffled(statement: ast.stmt) -> tuple[str, str] | None:
    """The variable that a statement gives values in a new order, and what they are taken of."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        given = call.args[0] if call.args else None
        if ast.unparse(call.func).endswith("shuffle") and isinstance(given, ast.Name):
            return given.id, given.id
        return None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    value = statement.value
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Call):
        return None
    if ast.unparse(value.slice.func).rpartition(".")[2] not in _DRAWN:
        return None
    return statement.targets[0].id, ast.unparse(value.value)


def _targets(scope: ast.AST) -> set[str]:
    """The variables that are the target of a loss, and of no loss the input."""
    found: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and len(node.args) == 2:
            if _LOSS.search(ast.unparse(node.func)):
                found |= names_in(node.args[1]) - names_in(node.args[0])
    return found
