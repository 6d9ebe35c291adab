"""What parameters begin with: all units alike, or what was left in memory."""

from __future__ import annotations

import ast
import linecache
import re
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Pass, Watched
from clew._insight.debug.doctor.source import SourceRule, files, parsed
from clew._insight.debug.place import Place


class UnitsAlike(Rule):
    mistake = "all units of a layer are alike"

    AT = 4  # the step after which is looked
    FEW = 4  # units

    def stepped(self, watched: Watched) -> None:
        if watched.steps != self.AT:
            return
        layers = self._layers()
        for p in watched.params:
            if p.dim() < 2 or p.shape[0] < self.FEW or p.shape[1] < 2 or p.grad is None:
                continue
            if id(p) not in layers:
                continue
            if p.is_sparse or p.grad.is_sparse:
                continue
            v, g = (values(t).reshape(t.shape[0], -1) for t in (p, p.grad))
            if not np.allclose(v[0], v[-1], atol=1e-6):
                continue  # as nearly all are
            # Where nothing arrives, such as behind weights of 0, it may come yet.
            if not g.any() or not (np.isfinite(v).all() and np.isfinite(g).all()):
                continue
            if (np.abs(v - v[0]).max() > 1e-6 * np.abs(v).max()) or not v.any():
                continue
            if np.abs(g - g[0]).max() > 1e-5 * np.abs(g).max():
                continue  # they part with this step
            self.find(
                self._constant() or watched.place or watched.step_place,
                f"after {watched.steps} steps the {p.shape[0]} rows of {self.run.name_of(p)} are "
                "still equal, and so are their gradients: all units compute the same, as one",
                "start weights at random: kaiming_uniform_() or xavier_uniform_(); constants are "
                "for biases",
                id(watched),
            )

    def _layers(self) -> set[int]:
        """The weights of linear and convolutional layers, whose rows are units."""
        from clew import nn
        from clew.nn.modules.conv import _ConvNd

        return {
            id(module.weight)
            for model in self.run.models
            for module in model.modules()
            if isinstance(module, (nn.Linear, _ConvNd))
        }

    def _constant(self) -> Place | None:
        """The one line that makes weights constant."""
        from clew._base.statements import names_in

        files = {w.place.file for w in self.run.optimizers.values() if w.place is not None}
        lines = set()
        for file in files:
            for node in ast.walk(parsed(file)):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                if node.func.attr not in ("constant_", "ones_", "zeros_", "fill_", "zero_"):
                    continue
                text = ast.unparse(node)
                if "weight" in text or {"p", "param", "w"} & names_in(node):
                    lines.add((file, node.lineno))
        return Place(None, *lines.pop()) if len(lines) == 1 else None


class Uninitialised(SourceRule):
    """Of parameters made of empty memory, to which nothing is written before they are used."""

    mistake = "a parameter is never initialised"
    hint = re.compile(r"Parameter\(\s*[\w.]*\b(empty|Tensor|FloatTensor)\(")

    # What writes where a parameter's count of changes does not tell.
    WRITES = re.compile(r"(?<!utils)\.data\b|\bset_\(|vector_to_parameters")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fresh: dict[int, Tensor] | None = None  # what nothing had written to at first

    def backward(self, pass_: Pass) -> None:
        super().backward(pass_)
        if self.fresh is None:
            self.fresh = {id(p): p for p in pass_.leaves if p._version == 0}

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        if not isinstance(scope, ast.Module) or not self.fresh:
            return
        texts = ("".join(linecache.getlines(f)) for f in files(self.run, self.seen))
        if any(self.WRITES.search(text) for text in texts):
            return
        for kind in [n for n in ast.walk(scope) if isinstance(n, ast.ClassDef)]:
            for node in [n for n in ast.walk(kind) if isinstance(n, ast.Assign)]:
                name = self._made_empty(node)
                p = self._parameter(kind.name, name) if name else None
                if p is not None:
                    self.find(
                        Place(None, file, node.lineno),
                        f"self.{name} of {kind.name}, of shape {tuple(p.shape)}, is made of memory "
                        "as it was left by others, and nothing was written to it before the first "
                        "backward: zeros, or any numbers, in each run others",
                        f"start it at random: nn.init.xavier_uniform_(self.{name}), or make it of "
                        "randn() times a small number",
                    )

    @staticmethod
    def _made_empty(node: ast.Assign) -> str:
        """The attribute of self that a statement makes a parameter of empty memory."""
        if not isinstance(node.targets[0], ast.Attribute):
            return ""
        made = node.value
        if not isinstance(made, ast.Call) or not ast.unparse(made.func).endswith("Parameter"):
            return ""
        given = made.args[0] if made.args else None
        if not isinstance(given, ast.Call) or not given.args:
            return ""
        called = ast.unparse(given.func).rpartition(".")[2]
        if called not in ("empty", "Tensor", "FloatTensor") or isinstance(given.args[0], ast.List):
            return ""
        return node.targets[0].attr

    def _parameter(self, kind: str, name: str) -> Tensor | None:
        for model in self.run.models:
            for module in model.modules():
                p = module._parameters.get(name)
                if type(module).__name__ == kind and p is not None and id(p) in (self.fresh or ()):
                    found: Tensor = p
                    return found
        return None
