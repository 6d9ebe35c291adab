"""Numbers of single steps that were broadcast to all pairs of steps before a loss met them."""

from __future__ import annotations

import weakref
from typing import Any

from clew import _C, Tensor
from clew._insight.debug.doctor.losses import pairs
from clew._insight.debug.doctor.nodes import DISTANCES
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Call, Pass
from clew._insight.debug.place import Place

_COMBINED = ("add", "sub", "mul", "div")


class AdvantageOfPairs(Rule):
    """Of what a model has said without its graph, as an advantage or the target of a value."""

    mistake = "values of single steps are broadcast to all pairs"
    operations = few = (*_COMBINED, *DISTANCES)

    LEAST = 3  # steps

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Results of all pairs: the number of steps, the line and the shapes of what they are of.
        self.paired: dict[int, tuple[weakref.ref[Tensor], int, Place | None, str]] = {}

    def backward(self, pass_: Pass) -> None:
        self.paired = {k: e for k, e in self.paired.items() if e[0]() is not None}

    def operation(self, call: Call) -> None:
        a, b = call.inputs[:2] if len(call.inputs) > 1 else (None, None)
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return
        if a.requires_grad or b.requires_grad:
            if self.paired and a.requires_grad != b.requires_grad:
                self._used(*((a, b) if a.requires_grad else (b, a)))
            return
        if call.name not in _COMBINED:
            return
        out = call.outputs[0]
        for one, other in ((a, b), (b, a)) if self.paired else ():
            known = self._known(one)
            if known is not None and other.numel() == 1:  # normalised
                self.paired[id(out)] = (weakref.ref(out), *known[1:])
                return
        if call.name in ("add", "sub"):
            self._note(call, a, b, out)

    def _known(self, t: Tensor) -> tuple[weakref.ref[Tensor], int, Place | None, str] | None:
        known = self.paired.get(id(t))
        return known if known is not None and known[0]() is t else None

    def _note(self, call: Call, a: Tensor, b: Tensor, out: Tensor) -> None:
        column, row = (a, b) if a.dim() == 2 else (b, a)
        n = row.numel()
        if n < self.LEAST or tuple(row.shape) != (n,) or tuple(column.shape) != (n, 1):
            return
        cut = _C._cut_of(column) or _C._cut_of(row)
        if cut is None or cut[0] == "made":
            return  # positions, distances: no model gave them
        if call.place is None or pairs(call.place.source, call.name):
            return  # each with each, as the line itself says
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        self.paired[id(out)] = (weakref.ref(out), n, call.place, shapes)

    def _used(self, trained: Tensor, other: Tensor) -> None:
        known = self._known(other)
        if known is None or tuple(trained.shape) not in ((known[1],), (known[1], 1)):
            return
        _, n, place, shapes = known
        self.find(
            place,
            f"shapes {shapes} are broadcast to {(n, n)}, and that meets {n} numbers that are "
            f"trained: each of the {n} steps gets the values of all {n}",
            "bring both to one shape first: returns - values.squeeze(-1)",
        )
