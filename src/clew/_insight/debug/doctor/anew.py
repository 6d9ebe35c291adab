"""Layers that are made where they are used, with other weights in each round."""

from __future__ import annotations

import ast
from typing import Any

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass, call_key
from clew._insight.debug.doctor.source import parsed, within
from clew._insight.debug.holders import owner_of
from clew._insight.debug.place import Place


class MadeInForward(Rule):
    mistake = "a layer is made anew in every round"

    ROUNDS = 3
    FEW = 16  # parameters of a round that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.before: dict[int, Tensor] = {}  # those of the round before: kept, as ids are reused
        self.times: dict[Any, list[Any]] = {}  # by the line that uses it: rounds, use, parameter

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or not self.run.optimizers:
            return
        from clew.nn import Parameter

        known = self.run.optimized()
        mine = [p for p in pass_.leaves if isinstance(p, Parameter) and id(p) not in known]
        fresh = [p for p in mine[: self.FEW] if id(p) not in self.before]
        self.before = {id(p): p for p in mine}
        seen = set()
        for p in fresh:
            use = _C._recorded_use(p)
            if use is None or use[0] is None:
                continue
            key = call_key(use[0])
            if key not in seen:
                seen.add(key)
                entry = self.times.setdefault(key, [0, use[0], p])
                entry[0] += 1
                entry[1:] = [use[0], p]

    def finish(self) -> None:
        for times, use, p in self.times.values():
            if times < self.ROUNDS or owner_of(self.run.models, p) is not None:
                continue
            place = self._made(use)
            if place is not None:
                self.find(
                    place,
                    f"in {times} of the backwards looked at, a parameter of shape "
                    f"{tuple(p.shape)} was a new one, with new random numbers, that no optimizer "
                    "has: what it learns is lost at once",
                    "make it once: in __init__, as an attribute of self, before the optimizer is "
                    "made",
                )

    @staticmethod
    def _made(use: Any) -> Place | None:
        """The one line of the function that uses a layer, or of a forward in this file, that makes
        one of its kind."""
        code, kind = use[0], use[3] or "Parameter"
        file = code.co_filename
        if file.startswith(_provenance._LIBRARY):
            return None
        tree = parsed(file)
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
        lines = set()
        for scope in ast.walk(tree):
            if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            used = (scope.name, scope.lineno) == (code.co_name, code.co_firstlineno)
            if not used and scope.name != "forward":
                continue
            for node in within(scope):
                if isinstance(node, ast.Call):
                    name = ast.unparse(node.func).rpartition(".")[2]
                    if name == kind or (not used and name in own):
                        lines.add(node.lineno)
        return Place(None, file, lines.pop()) if len(lines) == 1 else None
