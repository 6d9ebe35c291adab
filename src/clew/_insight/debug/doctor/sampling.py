"""Samplers and shuffles that do not do what they are for."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Batch
from clew._insight.debug.doctor.source import SourceRule, names, statements
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
                found |= names(node.args[1]) - names(node.args[0])
    return found
