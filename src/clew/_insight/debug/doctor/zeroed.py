"""Gradients that are taken away, by the next loss's zero_grad() or in order to freeze, and those
that are left over for another's step."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Pass, Watched, call_key
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.doctor.training import is_zero
from clew._insight.debug.place import Place

_IN_A_ROW = 3  # times that something must happen to be no accident


class ZeroedNotFrozen(Rule):
    """Of gradients that are set to zero by hand so that a parameter stays as it is."""

    mistake = "a frozen parameter is changed by the optimizer"

    # All of a gradient, and rows of it by their numbers. Where a condition or a mask chooses, as
    # for gradients that are small or NaN, other rows may be 0 by themselves.
    WHOLE = re.compile(
        r"\.grad(\.data)?(\.zero_\(\)|\.(fill|mul)_\(0[.0]*\)|\s*\*=\s*0[.0]*\s*(#|$))"
    )
    ROWS = re.compile(
        r"\.grad(\.data)?\[(?P<first>-?\d*) ?(?P<colon>:?) ?(?P<end>-?\d*)\]"
        r"(\.zero_\(\)|\.fill_\(0[.0]*\)|\s*\*?=\s*0[.0]*\s*(#|$))"
    )

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: set[int] = set()  # parameters that a backward reached since the last step
        # By parameter: itself, its rows without gradient, the line that took it away.
        self.zeroed: dict[int, tuple[Tensor, Any, Place]] = {}
        # By optimizer: such parameters, their rows, these before the step, the line.
        self.before: dict[int, list[tuple[Tensor, Any, Any, Place]]] = {}
        self.times: dict[tuple[str, int], int] = {}
        self.lines: dict[Any, tuple[Any, ...]] = {}  # that write gradients, and what they say

    def backward(self, pass_: Pass) -> None:
        if pass_.how != "grad":
            self.fed |= {id(leaf) for leaf in pass_.leaves}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "clip":  # which writes gradients, too
            for p in subject if isinstance(subject, list) else ():
                self._look_at(p)

    def _look_at(self, p: Any) -> None:
        grad = p.grad
        if grad is None or not grad._version:  # nothing has written to it
            return
        if grad.is_sparse or grad.dim() == 0 or id(p) not in self.fed:
            return
        raw = _C._place_of_write(grad)
        if raw is None:
            return
        key = call_key(raw)
        if key not in self.lines:
            place = Place(raw)
            told = (r.search(place.source) for r in (self.WHOLE, self.ROWS))
            self.lines[key] = (place, *told)
        place, whole, part = self.lines[key]
        if not (whole or part):
            return
        v = values(grad)
        rows = ~v.reshape(len(v), -1).any(1)
        if part is not None:  # others may be 0 by themselves
            first, end = (int(part[k]) if part[k] else None for k in ("first", "end"))
            if not part["colon"]:
                end = None if first == -1 else (first or 0) + 1
            chosen = np.zeros_like(rows)
            chosen[first:end] = True
            rows &= chosen
        if rows.all() if whole else rows.any():
            self.zeroed[id(p)] = (p, rows, place)

    def stepping(self, watched: Watched) -> None:
        self._judge(watched)
        mine = self.before[id(watched)] = []
        for group in watched.optimizer.param_groups:
            if any(group.get(k) for k in ("weight_decay", "momentum", "betas")):
                for p in group["params"]:
                    self._look_at(p)
                    if id(p) in self.zeroed:
                        _, rows, place = self.zeroed.pop(id(p))
                        mine.append((p, rows, values(p)[rows].copy(), place))

    def stepped(self, watched: Watched) -> None:
        self.fed -= {id(p) for p in watched.params}

    def _judge(self, watched: Watched) -> None:
        """What the step before did, unless the values were written back since."""
        for p, rows, old, place in self.before.get(id(watched), ()):
            now = values(p)
            if len(now) != len(rows) or now[rows].shape != old.shape:
                continue
            change = float(np.abs(now[rows] - old).max()) if old.size else 0.0
            if not change > 0:
                continue
            key = (place.file, place.line)
            times = self.times[key] = self.times.get(key, 0) + 1
            if times < _IN_A_ROW:
                continue
            group: dict[str, Any] = next(
                (g for g in watched.optimizer.param_groups if any(q is p for q in g["params"])), {}
            )
            why = [f"{k}={group[k]}" for k in ("weight_decay", "momentum", "betas") if group.get(k)]
            all_rows = "" if rows.all() else f"{int(rows.sum())} of {len(rows)} rows of "
            self.find(
                place,
                f"the gradient of {all_rows}{self.run.name_of(p)} is set to 0 before step(), which "
                f"changed it all the same, by up to {change:.3g}: {', '.join(why)} acts without a "
                "gradient, too",
                "give the optimizer only what is trained, or set requires_grad=False and "
                "p.grad = None; of single rows, write their values back after step()",
            )


class ClearedByTheNext(Rule):
    """Of two losses whose gradients are meant to be added up."""

    mistake = "gradients are cleared before a step has used them"

    FEW = 4  # parameters of a backward that are looked at
    QUIET = re.compile(r"print|append|item|log|info|debug|update|write")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.last: tuple[Place | None, list[Tensor]] | None = None
        self.cleared_at: Place | None = None
        self.pattern: tuple[Place, Place, Place] | None = None
        self.times: dict[Any, int] = {}

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        known = self.run.optimized()
        mine = [leaf for leaf in pass_.leaves if id(leaf) in known]
        if self.last is not None and self.cleared_at is not None:
            before, fed = self.last
            again = {id(p) for p in mine} & {id(p) for p in fed}
            if again and before is not None and pass_.place is not None:
                self.pattern = (before, self.cleared_at, pass_.place)
        self.last = (pass_.place, mine)
        self.cleared_at = None

    def cleared(self, owner: Any, place: Place | None) -> None:
        if self.last is None:
            return
        some = self.last[1][-self.FEW :]  # the last layers', which a loss has for itself
        if any(p.grad is not None and not is_zero(p.grad) for p in some):
            self.cleared_at = place

    def stepped(self, watched: Watched) -> None:
        pattern, self.pattern, self.last, self.cleared_at = self.pattern, None, None, None
        if pattern is None:
            return
        before, clear, after = pattern
        key = (before.file, before.line, clear.line, after.line)
        times = self.times[key] = self.times.get(key, 0) + 1
        if times != _IN_A_ROW or before.line == after.line:
            return
        if before.file != clear.file or not self._follows(before, clear):
            return
        step = watched.step_place
        self.find(
            clear,
            f"zero_grad() takes away what backward at {before.short} gave, before any step has "
            f"used it, in {times} steps in a row: only the gradients of {after.short} are left"
            + (f" for step() at {step.short}" if step else ""),
            "clear once for each step, before the first backward; or add the losses and run "
            "backward once",
        )

    def _follows(self, before: Place, clear: Place) -> bool:
        """Whether nothing that might use gradients stands between two lines of one block."""
        for node in ast.walk(parsed(before.file)):
            for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
                if not isinstance(body, list):
                    continue
                spans = [(s.lineno, s.end_lineno or s.lineno) for s in body]
                first = [i for i, (a, b) in enumerate(spans) if a == before.line]
                last = [i for i, (a, b) in enumerate(spans) if a == clear.line]
                if first and last and first[0] < last[0]:
                    return all(self._is_quiet(s) for s in body[first[0] + 1 : last[0]])
        return False

    def _is_quiet(self, statement: ast.stmt) -> bool:
        text = ast.unparse(statement)
        if ".grad" in text:
            return False
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            called = ast.unparse(statement.value.func).rpartition(".")[2]
            return called == "zero_grad" or bool(self.QUIET.search(called))
        return isinstance(statement, ast.AugAssign)


class LeftForAnother(Rule):
    """Of two optimizers that step in turn: a loss for one goes through the other's parameters."""

    mistake = "gradients that another's loss left are used"

    FEW = 4  # parameters that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Backwards that reached parameters of optimizers. Of each: these optimizers, the line, and
        # the optimizers that have stepped since.
        self.last: dict[int, tuple[set[int], Place | None, set[int]]] = {}
        # By optimizer: where the gradients were left, and where others were added to them.
        self.mixed: dict[int, tuple[Place, Place]] = {}
        self.times: dict[Any, int] = {}

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or len(self.run.optimizers) < 2:
            return
        ids = {id(leaf) for leaf in pass_.leaves}
        reached = {
            key
            for key, watched in self.run.optimizers.items()
            if any(id(p) in ids for p in watched.params)
        }
        for key in reached:
            before, where, stepped = self.last.get(key, (set(), None, set()))
            alone = len(reached) == 1 and len(before) == 2 and bool(before - reached & stepped)
            if alone and where is not None and pass_.place is not None and self._is_left(key, ids):
                self.mixed[key] = (where, pass_.place)
            self.last[key] = (reached, pass_.place, set())

    def _is_left(self, key: int, ids: set[int]) -> bool:
        mine = [p for p in self.run.optimizers[key].params if id(p) in ids][: self.FEW]
        return all(p.grad is not None and not is_zero(p.grad) for p in mine)

    def stepped(self, watched: Watched) -> None:
        key = id(watched.optimizer)
        for _, _, stepped in self.last.values():
            stepped.add(key)
        self.last.pop(key, None)
        lines = self.mixed.pop(key, None)
        if lines is None or lines[0].line == lines[1].line:
            return
        left, used = lines
        at = (left.file, left.line, used.line)
        times = self.times[at] = self.times.get(at, 0) + 1
        if times == _IN_A_ROW:
            self.find(
                used,
                f"{times} times in a row backward here added to gradients that the loss at "
                f"{left.short} had left, whose own step was another optimizer's; this "
                f"{watched.kind} then stepped with the sum of both",
                "clear just before each backward: zero_grad() of this optimizer first, then "
                "backward() and step()",
            )
