"""Steps and backwards that run once more than they should, on the same gradients."""

from __future__ import annotations

from typing import Any

from clew import Tensor
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass, Watched
from clew._insight.debug.doctor.training import is_zero
from clew._insight.debug.place import Place, here

_IN_A_ROW = 3  # times that something must happen to be no accident
_FEW = 4  # parameters that are looked at


class SteppedTwice(Rule):
    mistake = "an optimizer steps twice with the same gradients"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Of optimizers: their gradients after a step, by identity and version, and the latest node
        # that a backward had begun at, be it seen or not.
        self.left: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        self.times: dict[int, int] = {}
        self.pending: Place | None = None  # of a step that began with gradients used before

    @staticmethod
    def _grads(watched: Watched) -> list[tuple[int, int]]:
        grads = [p.grad for p in watched.params[-_FEW:] if p.grad is not None]
        return [(id(g), g._version) for g in grads if not g.is_sparse]

    def backward(self, pass_: Pass) -> None:
        self.left.clear()
        self.pending = None  # in a closure

    def stepping(self, watched: Watched) -> None:
        before, self.pending = self.left.get(id(watched)), None
        if before is None or not before[1]:
            return
        if before != (self.run.last_root, self._grads(watched)):
            return
        if all(is_zero(p.grad) for p in watched.params[-_FEW:] if p.grad is not None):
            return
        self.pending = here()

    def stepped(self, watched: Watched) -> None:
        place, self.pending = self.pending, None
        self.left[id(watched)] = self.run.last_root, self._grads(watched)
        if place is None:
            return
        times = self.times[id(watched)] = self.times.get(id(watched), 0) + 1
        if times >= _IN_A_ROW:
            first = watched.step_place
            self.find(
                place,
                f"{times} times this {watched.kind} stepped again when no backward had run since "
                "its last step"
                + (f", which is at {first.short}" if first else "")
                + ": the same gradients are used twice",
                "leave one step() out; scaler.step(optimizer) steps already",
                id(watched),
            )


class BackwardTwice(Rule):
    mistake = "backward runs twice for one loss"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.last: tuple[Tensor, Place | None] | None = None
        self.times = 0

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or len(pass_.roots) != 1:
            return
        root, last = pass_.roots[0], self.last
        self.last = (root, pass_.place)
        if last is None or last[0] is not root:
            return
        known = self.run.optimized()
        mine = [leaf for leaf in pass_.leaves if id(leaf) in known]
        some = [*mine[:_FEW], *mine[-_FEW:]]
        if not some or any(p.grad is None or is_zero(p.grad) for p in some):
            return  # cleared since, or for other parameters
        self.times += 1
        if self.times >= _IN_A_ROW:
            before = last[1]
            self.find(
                pass_.place,
                f"{self.times} times backward ran for a loss whose gradients were there already"
                + (f", from {before.short}" if before else "")
                + ": they are doubled",
                "run backward once for each loss",
            )

    def stepped(self, watched: Watched) -> None:
        self.last = None
