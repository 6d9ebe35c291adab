"""Training loops without an optimizer."""

from __future__ import annotations

import ast
import linecache
from typing import Any

from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass
from clew._insight.debug.doctor.source import names, parsed
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
        own = names(loop.target)
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
