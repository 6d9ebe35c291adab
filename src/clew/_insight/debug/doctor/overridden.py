"""A train() of a class's own that does not hand the mode on."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from clew._base import provenance as _provenance
from clew._insight.debug.doctor.modes import BATCH_NORM, DROPOUT, part_at, trains
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Call
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.place import Place

# Calls by which a module's parts may get the mode.
_HANDS_ON = {"train", "eval", "apply", "children", "modules", "named_children", "named_modules"}


class ModeNotHandedOn(Rule):
    mistake = "the model is evaluated in training mode"
    operations = (BATCH_NORM, DROPOUT)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.own: dict[type, tuple[Place, str] | None] = {}  # by class, its method that does not

    def operation(self, call: Call) -> None:
        if call.name == BATCH_NORM and not trains(call):
            return
        path = call.instruction[2] if call.instruction else None
        for model in self.run.models:
            owner, names = model, (path or "").split(".")
            while names and owner is not None:
                told = None if owner.training else self._overridden(type(owner))
                part = part_at(owner, ".".join(names)) if told is not None else None
                if told is not None and part is not None and part.training:
                    place, method = told
                    self.find(
                        place,
                        f"{type(owner).__name__}.training is False, and {type(part).__name__} in "
                        f"it runs in training mode: this {method}() sets the mode of the module "
                        f"alone, and none of its {sum(1 for _ in owner.modules()) - 1} parts gets "
                        "it",
                        f"call super().{method}({'mode' if method == 'train' else ''}) in it",
                    )
                    return
                owner = getattr(owner, "_modules", {}).get(names.pop(0))

    def _overridden(self, kind: type) -> tuple[Place, str] | None:
        """The line of a train() or eval() of the user's that sets a module's own mode alone."""
        if kind not in self.own:
            self.own[kind] = next(
                (found for name in ("train", "eval") if (found := self._judged(kind, name))), None
            )
        return self.own[kind]

    @staticmethod
    def _judged(kind: type, name: str) -> tuple[Place, str] | None:
        method = inspect.unwrap(getattr(kind, name))
        code = getattr(method, "__code__", None)
        if code is None or code.co_filename.startswith(_provenance._LIBRARY):
            return None
        for node in ast.walk(parsed(code.co_filename)):
            if not isinstance(node, ast.FunctionDef) or node.name != name:
                continue
            if not node.lineno - 8 < code.co_firstlineno <= node.lineno:
                continue
            inner = list(ast.walk(node))
            called = {getattr(n.func, "attr", "") for n in inner if isinstance(n, ast.Call)}
            stored = {
                n.attr
                for n in inner
                if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
            }
            if "training" in stored and not called & _HANDS_ON:
                return Place(None, code.co_filename, node.lineno), name
        return None
