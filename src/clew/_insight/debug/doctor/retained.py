"""Tensors in lists and queues that keep the graphs of steps long past."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import deque
from itertools import islice
from types import FrameType
from typing import Any

from clew import Tensor
from clew._base import provenance as _provenance
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass, Watched
from clew._insight.debug.holders import put_into

_DEPTH = 3  # functions of the user's that are looked into


class KeptInLists(Rule):
    mistake = "losses or outputs are kept with their graphs"

    FIRST = 5  # the round that is looked at first: the last one that is so for sure
    TIMES = 4  # rounds that are looked at
    ROUNDS = 5  # of which something must be kept
    MANY = 32  # entries that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.roots: list[int] = []  # the latest nodes of the rounds
        self.looked: set[int] = set()
        self.retains = False  # a graph may be needed later

    def stepped(self, watched: Watched) -> None:
        if not self.roots or self.run.last_root > self.roots[-1]:
            self.roots.append(self.run.last_root)

    def backward(self, pass_: Pass) -> None:
        self.retains |= pass_.how == "retaining"
        now = self.run.round
        if now < self.FIRST or len(self.looked) >= self.TIMES or now in self.looked:
            return
        self.looked.add(now)
        if self.retains or self.findings:
            return
        for kept in _lists():
            made = sorted(
                t.grad_fn._sequence_nr()
                for entry in islice(reversed(kept), self.MANY)
                for t in (entry if isinstance(entry, (tuple, list)) else (entry,))
                if isinstance(t, Tensor) and t.grad_fn is not None
            )
            rounds = {bisect_left(self.roots, number) for number in made}
            rounds.discard(len(self.roots))  # those of this round
            if len(rounds) < self.ROUNDS:
                continue
            place = pass_.place and put_into(kept, pass_.place.file)
            if place is not None:
                self.find(
                    place,
                    f"of the last {min(len(kept), self.MANY)} entries, {len(made)} tensors of "
                    f"{len(rounds)} earlier rounds are still alive with their graphs, which no "
                    "backward will go through",
                    "keep numbers, or x.detach()",
                )


def _lists() -> list[Any]:
    """The lists and queues that variables of the running functions hold, and attributes of what
    they hold."""
    found: dict[int, Any] = {}
    inside: Any
    frame: FrameType | None = sys._getframe(1)
    left = _DEPTH
    while frame is not None and left:
        if not frame.f_code.co_filename.startswith(_provenance._LIBRARY):
            left -= 1
            for value in list(frame.f_locals.values()):
                inside = getattr(value, "__dict__", None)
                mine = isinstance(value, type) or not isinstance(inside, dict)
                for each in [value] if mine else list(inside.values()):
                    if type(each) in (list, deque) and len(each) >= KeptInLists.ROUNDS:
                        found[id(each)] = each
        frame = frame.f_back
    return list(found.values())
