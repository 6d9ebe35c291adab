"""Training loops without an optimizer."""

from __future__ import annotations

import ast
import linecache
from typing import Any

from clew._base.statements import names_in
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass, Watched
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.place import Place


class UpdateBoundAnew(Rule):
    """Of p = p - rate * p.grad in a loop over parameters."""

    mistake = "an update never reaches its parameters"

    FEW = 3  # backwards of which the file is noted

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: set[str] = set()
        self.left = self.FEW

    def backward(self, pass_: Pass) -> None:
        if self.left and pass_.how != "grad":
            self.left -= 1
            if pass_.place is not None:
                self.seen.add(pass_.place.file)

    def finish(self) -> None:
        for file in sorted(self.seen):
            if ".grad" not in "".join(linecache.getlines(file)):
                continue
            for loop in ast.walk(parsed(file)):
                if isinstance(loop, ast.For):
                    self._look(file, loop)

    def _look(self, file: str, loop: ast.For) -> None:
        own = names_in(loop.target)
        for at, statement in enumerate(loop.body):
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            if not isinstance(target, ast.Name) or target.id not in own:
                continue
            text = ast.unparse(statement.value)
            if f"{target.id}.grad" not in text or not text.startswith(f"{target.id} - "):
                continue
            after = [n for s in loop.body[at + 1 :] for n in ast.walk(s)]
            if any(isinstance(n, ast.Name) and n.id == target.id for n in after):
                continue
            self.find(
                Place(None, file, statement.lineno),
                f"{target.id} is a name for a parameter in this loop, and line {statement.lineno} "
                "gives the name to a new tensor: the parameter stays as it was",
                f"write into it, under no_grad(): {target.id} -= ...",
            )


class NeedsNoGrad(Rule):
    mistake = "the optimizer has a tensor that requires no grad"

    ENOUGH = 3  # steps

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.times: dict[int, list[Any]] = {}  # by tensor: itself, steps, the optimizer

    def stepping(self, watched: Watched) -> None:
        from clew.nn import Parameter

        for p in watched.params:
            if isinstance(p, Parameter):
                continue  # frozen on purpose
            if p.requires_grad or p.grad is not None:
                self.times[id(p)] = [p, -(1 << 30), watched]
            else:
                self.times.setdefault(id(p), [p, 0, watched])[1] += 1

    def finish(self) -> None:
        for p, steps, watched in self.times.values():
            if steps >= self.ENOUGH:
                self.find(
                    watched.place or watched.step_place,
                    f"a tensor of shape {tuple(p.shape)} in this {watched.kind} had "
                    f"requires_grad=False and no gradient in {steps} steps looked at: it stays as "
                    "it is",
                    "make it with requires_grad=True, or call requires_grad_() before the "
                    "optimizer is made",
                    id(p),
                )
