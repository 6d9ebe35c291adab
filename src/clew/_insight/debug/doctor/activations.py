"""Activations that let no gradient through: dead and saturated ones."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.nodes import behind, maker, name_of
from clew._insight.debug.doctor.rule import CALLS, Rule, values
from clew._insight.debug.doctor.run import Call
from clew._insight.debug.place import Place

_ROUNDS = 3  # rounds in which something must be seen
_EARLY = 8  # later on, a model may be sure of itself


class Rationed(Rule):
    """A rule that looks at a line's first calls between two backwards."""

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.calls: dict[Any, tuple[int, int]] = {}  # by line: backwards so far, calls since

    def is_enough(self, call: Call) -> bool:
        """Whether a line's calls since the last backward need no more looking at."""
        at, times = self.calls.get(call.key, (-1, 0))
        now = self.run.backwards
        self.calls[call.key] = (now, times + 1 if at == now else 1)
        return at == now and times >= CALLS


class DeadReLU(Rationed):
    mistake = "dead ReLU"
    LAYERS = ("nn.functional.linear", "conv1d", "conv2d", "conv3d")
    operations = few = ("nn.functional.relu", "relu", "clamp", "_clamp", *LAYERS)

    SHARE = 0.9
    # Nodes that pass zeros on as zeros.
    BETWEEN = ("MaskedDropout", "MaxPool2d", "AvgPool2d", "MaxPool1d", "AvgPool1d")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, tuple[Place | None, list[tuple[float, int]]]] = {}
        # Of differences since the last backward: by the number of the node, the call and what
        # was seen. A hinge is 0 where all is well, and goes into a loss, not into a layer.
        self.hinges: dict[int, tuple[Call, tuple[float, int]]] = {}
        self.at = -1  # the backwards before

    def operation(self, call: Call) -> None:
        if call.name in self.LAYERS:
            self._goes_on(call.inputs[0])
            return
        out = call.outputs[0]
        if out.grad_fn is None or out.dim() < 2 or out.shape[0] < 4 or self.is_enough(call):
            return
        v = values(out)
        units = 1 if out.dim() != 3 else 2
        if v.shape[units] < 4:
            return
        others = tuple(d for d in range(v.ndim) if d != units)
        if "clamp" in call.name and v.min() < 0:
            return  # the bound is another one
        dead = float((v.max(axis=others) <= 0).mean())
        if not self._of_a_layer(call.inputs[0]):
            if self.at != self.run.backwards:
                self.at = self.run.backwards
                self.hinges.clear()
            self.hinges[out.grad_fn._sequence_nr()] = (call, (dead, v.shape[units]))
            return
        _, shares = self.seen.setdefault(call.key, (call.place, []))
        shares.append((dead, v.shape[units]))

    def _goes_on(self, x: Tensor) -> None:
        """Notes a difference without its negative values that a layer is given."""
        if not self.hinges or self.at != self.run.backwards:
            return
        node = behind(x.grad_fn)
        while node is not None and name_of(node) in self.BETWEEN:
            node = behind(node.next_functions[0][0])
        if node is not None and (found := self.hinges.pop(node._sequence_nr(), None)) is not None:
            call, share = found
            _, shares = self.seen.setdefault(call.key, (call.place, []))
            shares.append(share)

    @staticmethod
    def _of_a_layer(x: Tensor) -> bool:
        """Whether x is a layer's result, or a sum of such, and no number was added to it."""
        node = behind(x.grad_fn)
        if node is None or not node.name().startswith(("Add", "Sub")):
            return True
        parts = [fn for fn, _ in node.next_functions]
        return node.name().startswith("Add") and len(parts) == 2 and None not in parts

    def finish(self) -> None:
        for place, shares in self.seen.values():
            if len(shares) < _ROUNDS:
                continue
            late = [s for s, _ in shares[-_ROUNDS:]]
            if min(late) >= self.SHARE:
                units = shares[-1][1]
                self.find(
                    place,
                    f"{late[-1]:.0%} of {units} units give 0 for every sample of a batch, in each "
                    f"of the last {len(late)} steps looked at: no gradient passes through them",
                    "lower the learning rate, check the scale of inputs, weights and biases, or "
                    "use LeakyReLU or GELU",
                )


class Saturated(Rationed):
    mistake = "saturated activation"
    operations = few = ("nn.functional.tanh", "tanh", "nn.functional.sigmoid", "sigmoid")

    SHARE = 0.9
    BOTH = 0.75  # where they lie at both bounds, as with inputs or weights that are too large
    ONE = 0.05  # of the values that lie at the bound with fewer of them
    ANY = 0.5  # of each call; those of a recurrence between two backwards are judged together

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, tuple[Place | None, str, list[Any], list[Any]]] = {}

    def operation(self, call: Call) -> None:
        out = call.outputs[0]
        if out.grad_fn is None or out.numel() < 8 or self.run.round >= _EARLY:
            return
        if self.is_enough(call):
            return
        if maker(call.inputs[0]) in ("Mul", "Div"):
            return  # a steep one is made so on purpose
        if self._is_prior(call.inputs[0].grad_fn):
            return
        v = values(out)
        name = call.name.removeprefix("nn.functional.")
        low, high = (v < -0.99, v > 0.99) if name == "tanh" else (v < 0.01, v > 0.99)
        _, _, shares, spans = self.seen.setdefault(call.key, (call.place, name, [], []))
        low, high = float(low.mean()), float(high.mean())
        shares.append((self.run.backwards, low + high, min(low, high)))
        spans.append(float(np.abs(values(call.inputs[0])).mean()))

    @staticmethod
    def _is_prior(node: Any) -> bool:
        """Whether a layer's biases were set to one number, as for classes that are rare."""
        node = behind(node)
        for fn, _ in node.next_functions if node is not None else ():
            leaf = getattr(fn, "variable", None)
            if isinstance(leaf, Tensor) and leaf.dim() == 1:
                v = values(leaf)
                if 1 < abs(v.mean()) < 10 and np.ptp(v) < 0.1 * abs(v.mean()):
                    return True
        return False

    def finish(self) -> None:
        for place, name, shares, sizes in self.seen.values():
            if len(shares) < _ROUNDS or min(share for _, share, _ in shares) < self.ANY:
                continue
            rounds = [[s[1:] for s in own] for _, own in groupby(shares, key=lambda s: s[0])]
            least, fewer = np.min([np.mean(own, axis=0) for own in rounds], axis=0)
            if least >= (self.BOTH if fewer >= self.ONE else self.SHARE):
                self.find(
                    place,
                    f"{shares[-1][1]:.0%} of the values of {name} lie within 0.01 of its bounds, "
                    f"in all {len(shares)} calls looked at; its inputs are {sizes[-1]:.3g} on "
                    "average in size: hardly any gradient passes",
                    "normalise the inputs, start with smaller weights, or put a normalisation "
                    "before it",
                )
