"""Schedules that are told something else than they expect."""

from __future__ import annotations

import ast
import re
from typing import Any

from clew._base.statements import names_in
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Watched
from clew._insight.debug.doctor.source import SourceRule
from clew._insight.debug.place import Place


class LambdaGivesRate(Rule):
    mistake = "a schedule's function gives the rate, not a factor"

    ENOUGH = 3  # steps that are looked at
    LARGE = 0.05  # a base rate that may well be a factor, too

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By optimizer: the schedule, its line, the steps and the largest factor so far.
        self.made: dict[int, list[Any]] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scheduler" and hasattr(subject, "lr_lambdas"):
            self.made[id(subject.optimizer)] = [subject, place, 0, 0.0]

    def stepping(self, watched: Watched) -> None:
        entry = self.made.get(id(watched.optimizer))
        if entry is None or not entry[0].base_lrs or not entry[0].base_lrs[0]:
            return
        entry[2] += 1
        entry[3] = max(entry[3], watched.optimizer.param_groups[0]["lr"] / entry[0].base_lrs[0])

    def finish(self) -> None:
        for schedule, place, steps, factor in self.made.values():
            base = schedule.base_lrs[0] if schedule.base_lrs else 0.0
            if steps < self.ENOUGH or not 0 < base < self.LARGE:
                continue
            if abs(factor - base) < 1e-6 * base:
                self.find(
                    place,
                    f"the function's largest value in {steps} steps looked at is {factor:g}, the "
                    f"learning rate itself; {type(schedule).__name__} multiplies the two, which "
                    f"gives {base * factor:g}",
                    "have it give a factor: 1.0 where the rate is to be as it is",
                    id(schedule),
                )


_HIGHER = re.compile(r"acc(uracy)?|f1|auc|r2|precision|recall|m?iou|dice|bleu|hits?", re.IGNORECASE)
_LOWER = re.compile(r"loss|err(or)?|mse|mae|rmse|perplexity|ppl|nll", re.IGNORECASE)


class PlateauMode(Rule):
    mistake = "a schedule waits for the wrong direction"

    ENOUGH = 2  # calls

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.made: dict[int, Place | None] = {}
        self.times: dict[int, int] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scheduler" and hasattr(subject, "mode_worse"):
            self.made[id(subject)] = place
        elif what == "schedule" and hasattr(subject, "mode_worse") and place is not None:
            told = re.search(r"\.step\(([^()]*(\([^()]*\))?[^()]*)\)", place.source)
            if told is None or "-" in told[1]:
                return
            higher, lower = (self._says(words, told[1]) for words in (_HIGHER, _LOWER))
            if higher == lower or subject.mode != ("min" if higher else "max"):
                return
            times = self.times[id(subject)] = self.times.get(id(subject), 0) + 1
            if times >= self.ENOUGH:
                better, mode = ("higher", "max") if higher else ("lower", "min")
                self.find(
                    self.made.get(id(subject)) or place,
                    f"step({told[1]}) at {place.short} was called {times} times with what is "
                    f"better the {better} it is, and mode={subject.mode!r} takes it for worse: "
                    "the rate falls while all goes well",
                    f'make it with mode="{mode}"',
                    id(subject),
                )

    @staticmethod
    def _says(words: re.Pattern[str], text: str) -> bool:
        return any(words.fullmatch(part) for part in re.split(r"[^a-zA-Z0-9]+", text))


class ScheduleOfAnother(Rule):
    """Of an optimizer that was replaced: the schedule goes on with the old one."""

    mistake = "the schedule sets the rate of an optimizer that does not step"

    IN_A_ROW = 3

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By schedule: the steps of all optimizers when it stepped last, and times in a row that
        # another one had stepped since and its own had not.
        self.seen: dict[int, tuple[dict[int, int], int]] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        own = getattr(subject, "optimizer", None)
        if what != "schedule" or own is None:
            return
        mine = self.run.watched(own)
        now = {key: watched.steps for key, watched in self.run.optimizers.items()}
        before, times = self.seen.get(id(subject), ({}, 0))
        other = next((w for w in self.run.optimizers.values() if self._acts(w, mine, before)), None)
        idle = now[id(own)] == before.get(id(own), 0)
        times = times + 1 if other is not None and idle else 0
        self.seen[id(subject)] = (now, times)
        if times < self.IN_A_ROW or other is None:
            return
        rates = ", ".join(f"{g['lr']:g}" for g in other.optimizer.param_groups[:3] if "lr" in g)
        at = f", made at {other.place.short}," if other.place else ""
        self.find(
            place,
            f"{times} times in a row {type(subject).__name__}.step() ran and its {mine.kind} had "
            f"not stepped since the time before; another {other.kind}{at} steps with the same "
            f"parameters, and its learning rate stays {rates}",
            "make the schedule for the optimizer that steps, after it is made",
            id(subject),
        )

    @staticmethod
    def _acts(other: Watched, mine: Watched, before: dict[int, int]) -> bool:
        """Whether another optimizer has the same parameters in groups of its own, and stepped."""
        if other is mine or other.steps == before.get(id(other.optimizer), 0):
            return False
        groups = {id(g) for g in mine.optimizer.param_groups}
        if any(id(g) in groups for g in other.optimizer.param_groups):
            return False
        own = {id(p) for p in mine.params}
        return bool(own) and own <= {id(p) for p in other.params}


class AnnealedByWholeNumbers(SourceRule):
    """Of a weight that rises or falls with the steps, as min(1, step / many) does."""

    mistake = "integer division where a fraction was meant"
    hint = re.compile(r"\b(min|max)\(.*//")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        products = [n for n in body if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
        for node in body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name, divided = node.targets[0].id, self._bounded(node.value)
            factor = any(
                isinstance(side, ast.Name) and side.id == name
                for product in products
                for side in (product.left, product.right)
            )
            if divided is None or not factor or self._is_index(body, name):
                continue
            self.find(
                Place(None, file, node.lineno),
                f"{ast.unparse(divided)} divides whole numbers without the rest, and {name}, which "
                f"something is multiplied with, is bounded by 1: it is 0 or 1 and nothing between",
                f"divide with /: {ast.unparse(node).replace('//', '/')}",
            )

    @staticmethod
    def _bounded(value: ast.expr) -> ast.BinOp | None:
        """The division in min(1, a // b), or in max(0, 1 - a // b)."""
        if not isinstance(value, ast.Call) or len(value.args) != 2 or value.keywords:
            return None
        called = getattr(value.func, "id", "")
        bounds = [a.value for a in value.args if isinstance(a, ast.Constant)]
        others = [a for a in value.args if not isinstance(a, ast.Constant)]
        if bounds != [{"min": 1, "max": 0}.get(called, object())] or len(others) != 1:
            return None
        inner = others[0]
        if called == "max":
            if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub):
                return None
            if not isinstance(inner.left, ast.Constant) or inner.left.value != 1:
                return None
            inner = inner.right
        divides = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.FloorDiv)
        return inner if divides and isinstance(inner, ast.BinOp) else None

    @staticmethod
    def _is_index(body: list[ast.AST], name: str) -> bool:
        return any(name in names_in(n.slice) for n in body if isinstance(n, ast.Subscript))
