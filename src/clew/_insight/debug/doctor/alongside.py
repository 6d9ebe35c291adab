"""One number for each sample that is broadcast along another dimension."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call, Pass

_PICKED = ("_index", "gather")
_JOINED = ("mul", "add", "sub", "div")


class NumberForEachSample(Rule):
    """Of numbers picked from a table by one index for each sample, as a noise schedule's are."""

    mistake = "one number for each sample is broadcast along another dimension"
    operations = few = (*_PICKED, *_JOINED, "sqrt", "rsqrt", "pow")

    ROUNDS = 2

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.picked: dict[int, weakref.ref[Tensor]] = {}  # since the last backward
        self.met: dict[Any, tuple[int, Any]] = {}  # by line: rounds with other numbers, these

    def backward(self, pass_: Pass) -> None:
        self.picked.clear()

    def _is_picked(self, t: Any) -> bool:
        known = self.picked.get(id(t))
        return known is not None and known() is t

    def operation(self, call: Call) -> None:
        out = call.outputs[0]
        if call.name in _PICKED:
            index = call.inputs[1] if len(call.inputs) > 1 else None
            if out.dim() == 1 and len(out) > 1 and isinstance(index, Tensor) and index.dim() == 1:
                # A mask takes some of the samples.
                if not index.is_floating_point() and index.dtype.name != "bool":
                    self.picked[id(out)] = weakref.ref(out)
            return
        if not self.picked:
            return
        mine = [t for t in call.inputs[:2] if self._is_picked(t)]
        if not mine:
            return
        if out.shape == mine[0].shape:
            self.picked[id(out)] = weakref.ref(out)
        elif len(mine) == 1 and call.name in _JOINED and len(call.inputs) > 1:
            self._judge(call, mine[0])

    def _judge(self, call: Call, mine: Tensor) -> None:
        other = call.inputs[1] if call.inputs[0] is mine else call.inputs[0]
        if not isinstance(other, Tensor) or other.dim() < 2:
            return
        if other.shape[0] != len(mine) or other.shape[-1] != len(mine):
            return
        v = values(mine)
        rounds, before = self.met.get(call.key, (0, None))
        if before is not None and before.shape == v.shape and not np.array_equal(before, v):
            rounds += 1  # what belongs to the columns stays the same
        self.met[call.key] = (rounds, v.copy())
        if rounds >= self.ROUNDS:
            ones = ", ".join(["1"] * (other.dim() - 1))
            self.find(
                call.place,
                f"{len(mine)} numbers, picked from a table by one index for each sample, meet "
                f"shape {tuple(other.shape)}: they are laid along its last dimension, so that "
                "each sample gets all of them",
                f"give each sample its own: a.view(-1, {ones})",
            )
