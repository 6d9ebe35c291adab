"""Schedules that are told something else than they expect."""

from __future__ import annotations

import re
from typing import Any

from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Watched
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
