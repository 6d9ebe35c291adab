"""Lines that do nothing: methods that are named, attributes that nobody reads, empty loaders."""

from __future__ import annotations

import ast
import re

from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.source import SourceRule
from clew._insight.debug.holders import attribute_set
from clew._insight.debug.place import Place, placed

_METHODS = {"step", "zero_grad", "backward", "eval", "train", "update"}
_FLAGS = {"requires_grad", "training"}


class NamedNotCalled(SourceRule):
    mistake = "a method is named, not called"
    hint = re.compile(rf"\.({'|'.join(sorted(_METHODS))})\s*(#.*)?$", re.MULTILINE)

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        last = scope.body[-1] if isinstance(scope, ast.Module) and scope.body else None
        for statement in body:
            if not isinstance(statement, ast.Expr) or statement is last:
                continue  # a notebook shows what stands last
            named = statement.value
            if isinstance(named, ast.Attribute) and named.attr in _METHODS:
                text = ast.unparse(named)
                self.find(
                    Place(None, file, statement.lineno),
                    f"line {statement.lineno} names {text} and does not call it: nothing happens",
                    f"call it: {text}()",
                )


class ComparedNotSet(SourceRule):
    mistake = "an attribute is compared where it was to be set"
    hint = re.compile(rf"\.({'|'.join(sorted(_FLAGS))}) *== *")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        last = scope.body[-1] if isinstance(scope, ast.Module) and scope.body else None
        for statement in body:
            if not isinstance(statement, ast.Expr) or statement is last:
                continue
            compared = statement.value
            if not isinstance(compared, ast.Compare) or not isinstance(compared.ops[0], ast.Eq):
                continue
            left = compared.left
            if isinstance(left, ast.Attribute) and left.attr in _FLAGS:
                self.find(
                    Place(None, file, statement.lineno),
                    f"line {statement.lineno} compares {ast.unparse(left)} and does nothing with "
                    "the answer: it stays as it is",
                    f"set it: {ast.unparse(compared).replace('==', '=', 1)}",
                )


class RateAsAttribute(Rule):
    mistake = "an attribute of an optimizer is set, which does nothing"

    NAMES = ("lr", "learning_rate", "weight_decay", "momentum")

    def finish(self) -> None:
        for watched in self.run.optimizers.values():
            optimizer = watched.optimizer
            if not type(optimizer).__module__.startswith("clew."):
                continue  # one of the user's may well read it
            for name in self.NAMES:
                near = watched.step_place or watched.place
                if name not in vars(optimizer) or near is None:
                    continue
                own = "lr" if name == "learning_rate" else name
                used = ", ".join(f"{g[own]:g}" for g in optimizer.param_groups[:3] if own in g)
                self.find(
                    attribute_set(near.file, name, loops=True) or near,
                    f"{watched.kind}.{name} was set to {vars(optimizer)[name]}, which step() does "
                    f"not read: it uses {used or 'what'} of its param_groups",
                    f'for group in optimizer.param_groups: group["{own}"] = ...',
                    (id(watched), name),
                )


class NoWholeBatch(Rule):
    mistake = "a loader gives no batches"

    def finish(self) -> None:
        if not self.run.optimizers:
            return
        for loader, made in self.run.loaders.values():
            try:
                batches, samples = len(loader), len(loader.dataset)
            except TypeError:  # a stream
                continue
            if samples and not batches and loader.drop_last:
                self.find(
                    placed(made),
                    f"{samples} samples fill no batch of {loader.batch_size}, and drop_last=True "
                    "leaves the rest out: what goes through this loader does nothing",
                    "make batches smaller, or leave drop_last out",
                    id(loader),
                )
