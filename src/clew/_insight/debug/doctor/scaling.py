"""Gradients of another size than they are meant to have: scaled, clipped, added up."""

from __future__ import annotations

import linecache
import re
from itertools import pairwise
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._insight.debug.doctor.nodes import MANY, is_scaled
from clew._insight.debug.doctor.rule import Rule, size_of, some, values
from clew._insight.debug.doctor.run import Pass, Watched, call_key
from clew._insight.debug.doctor.training import is_zero
from clew._insight.debug.place import Place

_IN_A_ROW = 3  # times that something must happen to be no accident
_SIZED = re.compile(r"\.(mul|div)_\(|_foreach_(mul|div)_\(|[*/]=")  # gradients in place


class Unscaled(Rule):
    mistake = "gradients are clipped before they are unscaled"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.scaling: Any = None  # the scaler whose factor is in the gradients

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scale":
            self.scaling = subject if subject.is_enabled() else None
            self.run.scaler = self.scaling or self.run.scaler
        elif what in ("unscale", "update"):
            self.scaling = None
        elif what == "clip" and self.scaling is not None:
            factor = self.scaling.get_scale()
            if factor > 1:
                self.find(
                    place,
                    f"the loss was multiplied by {factor:g}, and so are the gradients that are "
                    f"clipped here: the bound acts as one {factor:g} times smaller",
                    "call scaler.unscale_(optimizer) before clipping",
                )


class ClippedByHand(Rule):
    """Of a program that clips in place, without clip_grad_norm_ and the like."""

    mistake = Unscaled.mistake

    BOUNDS = re.compile(r"\.(clamp|clip)_\(")
    AWARE = re.compile(r"get_scale\(|\._scale\b")  # of the factor, which the bound may hold
    SMALL = 1e-2  # a bound by the factor: one that is meant for gradients as they are is larger
    EQUAL = 1e-4
    OTHER = 0.1  # how far gradients of two batches differ, by their size

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.scaling: Any = None
        # By line: the largest number or the norm that was left, the factor, a gradient.
        self.left: dict[Any, list[tuple[float, float, Any]]] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scale":
            self.scaling = subject if subject.is_enabled() else None
        elif what == "unscale" and self.scaling is not None and self.run.looking:
            self._look_at(subject, self.scaling.get_scale())

    def _look_at(self, optimizer: Any, factor: float) -> None:
        """What a line has left of the gradients that are about to be unscaled."""
        if factor <= 1:
            return
        written: dict[Any, tuple[Any, list[Tensor]]] = {}
        for p in (p for g in optimizer.param_groups for p in g["params"]):
            if p.grad is None or p.grad.is_sparse or not p.grad._version:
                continue
            raw = _C._place_of_write(p.grad)
            if raw is not None:
                written.setdefault(call_key(raw), (raw, []))[1].append(p.grad)
        for key, (raw, grads) in written.items():
            place = Place(raw)
            clamped = self.BOUNDS.search(place.source)
            if len(grads) < 2 or not (clamped or _SIZED.search(place.source)):
                continue
            if self.AWARE.search("".join(linecache.getlines(place.file))):
                continue
            arrays = [values(g) for g in grads]
            if clamped:
                bound = max(float(np.abs(a).max()) for a in arrays if a.size)
            else:
                bound = sum(size_of(a) ** 2 for a in arrays) ** 0.5
            seen = self.left.setdefault(key, [])
            largest = max(grads, key=Tensor.numel)
            seen.append((bound, factor, some(largest).astype(np.float32)))
            del seen[:-_IN_A_ROW]
            if len(seen) == _IN_A_ROW and self._is_bound(seen):
                self.find(
                    place,
                    f"the loss was multiplied by {factor:g}, and so are the gradients of "
                    f"{len(grads)} parameters that are clipped here, to {bound:.3g} in each of "
                    f"{len(seen)} steps: the bound acts as one {factor:g} times smaller",
                    "call scaler.unscale_(optimizer) before clipping",
                    key,
                )

    def _is_bound(self, seen: list[tuple[float, float, Any]]) -> bool:
        """Whether gradients that differ were brought to one size, and a small one."""
        first, factor, _ = seen[-1]
        if not 0 < first < self.SMALL * factor:
            return False
        if any(abs(bound - first) > self.EQUAL * first for bound, _, _ in seen):
            return False
        grads = [g for _, _, g in seen]
        return all(
            a.shape == b.shape and size_of(a - b) > self.OTHER * size_of(a)
            for a, b in pairwise(grads)
        )


class StepOnScaled(Rule):
    mistake = "the optimizer steps with gradients that are still scaled"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.scaling: Any = None
        # Parameters that a scaled loss reached, and the call of its backward.
        self.scaled: dict[int, Any] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scale":
            self.scaling = subject if subject.is_enabled() else None
        elif what == "unscale":
            for p in (p for g in subject.param_groups for p in g["params"]):
                self.scaled.pop(id(p), None)
        elif what == "update":
            self.scaled.clear()

    def backward(self, pass_: Pass) -> None:
        node = pass_.roots[0].grad_fn
        if self.scaling is not None and node is not None and is_scaled(node, self.scaling):
            self.scaled |= {id(leaf): pass_.key for leaf in pass_.leaves}

    def _is_untouched(self, p: Tensor) -> bool:
        """Whether backward was the last to write a gradient: it may be divided by hand."""
        writer = _C._place_of_write(p.grad)
        return writer is None or call_key(writer) == self.scaled[id(p)]

    def stepping(self, watched: Watched) -> None:
        mine = [p for p in watched.params if id(p) in self.scaled and p.grad is not None]
        mine = [p for p in mine if self._is_untouched(p)]
        if mine and not getattr(watched.optimizer, "_step_supports_amp_scaling", False):
            factor = self.scaling.get_scale()
            self.find(
                watched.step_place,
                f"the loss was multiplied by {factor:g}, and so are the gradients of {len(mine)} "
                f"parameters that this {watched.kind} steps with",
                "call scaler.step(optimizer) and scaler.update() in the place of optimizer.step()",
            )

    def stepped(self, watched: Watched) -> None:
        for p in watched.params:
            self.scaled.pop(id(p), None)


class ClippedInVain(Rule):
    mistake = "gradients are clipped where it has no effect"

    FEW = 4  # parameters that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: set[int] = set()  # parameters that a backward since the last step reached
        self.trained: set[int] = set()  # those that one reached at any time
        # By parameter what the last step left of its gradient: its identity and version.
        self.left: dict[int, tuple[Tensor, int, int]] = {}
        self.steps: dict[int, int] = {}  # of optimizers: their number at the last one seen
        self.vain: dict[Any, int] = {}  # by line, how often in a row; -1 where it had an effect
        self.places: dict[Any, Place | None] = {}

    def backward(self, pass_: Pass) -> None:
        self.fed |= {id(leaf) for leaf in pass_.leaves}
        self.trained |= self.fed

    def stepped(self, watched: Watched) -> None:
        self.fed -= {id(p) for p in watched.params}
        self.steps[id(watched)] = watched.steps
        for p in watched.params[: self.FEW]:
            if p.grad is not None:
                self.left[id(p)] = (p, id(p.grad), p.grad._version)

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what != "clip" or not self.run.looking or not self.run.optimizers:
            return
        if any(w.steps != self.steps.get(id(w), 0) for w in self.run.optimizers.values()):
            return  # what the last step used was not seen
        params = [subject] if isinstance(subject, Tensor) else subject
        key = place and (place.file, place.line)
        if not params:
            self._nothing(key, place)
            return
        if not any(id(p) in self.trained for p in params):
            return  # nothing to clip: frozen, or not in turn yet
        if any(id(p) in self.fed for p in params) or self.vain.get(key) == -1:
            self.vain[key] = -1
            return
        grads = [(p, p.grad) for p in params[: self.FEW] if p.grad is not None]
        used = all(self.left.get(id(p), (p, 0, 0))[1:] == (id(g), g._version) for p, g in grads)
        if grads and not used and not all(is_zero(g) for _, g in grads):
            self.vain[key] = -1  # gradients that the program made itself
            return
        self.vain[key] = self.vain.get(key, 0) + 1
        if self.vain[key] >= _IN_A_ROW:
            seen = "step() has used already" if grads and used else "backward has not made yet"
            self.places[key] = place
            self.find(
                place,
                f"{self.vain[key]} times in a row this came when no backward had run since the "
                f"last step(): it clips gradients that {seen}",
                "clip between backward() and step()",
                key,
            )

    def _nothing(self, key: Any, place: Place | None) -> None:
        if self.vain.get(key) == -1:
            return
        self.vain[key] = self.vain.get(key, 0) + 1
        if self.vain[key] >= _IN_A_ROW:
            self.find(
                place,
                f"{self.vain[key]} times in a row this was given 0 tensors: a generator, such as "
                "parameters() or a filter of it, can be gone through once, and has been",
                "give it model.parameters() anew, or keep a list: list(model.parameters())",
                key,
            )

    def finish(self) -> None:
        for key, times in self.vain.items():
            if times == -1:
                self.findings.pop(key, None)


class UnscaledAccumulation(Rule):
    mistake = "gradients of several batches are added up without dividing the loss"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.calls: dict[Any, list[Any]] = {}
        self.history: dict[Any, list[int]] = {}
        self.inside = False  # of a step, whose closure may run backward several times

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "unscale":
            self._leave_out_divided([p for g in subject.param_groups for p in g["params"]])

    def stepping(self, watched: Watched) -> None:
        self.inside = True
        self._leave_out_divided(watched.params)

    def _leave_out_divided(self, params: list[Tensor]) -> None:
        """Of gradients that the program divides by itself nothing is to be said."""
        if all(call[0] < 2 for call in self.calls.values()):
            return
        for p in params[:MANY]:
            raw = _C._place_of_write(p.grad) if p.grad is not None and p.grad._version else None
            if raw is not None and call_key(raw) not in self.calls:
                if _SIZED.search(Place(raw).source):
                    self.calls.clear()
                    return

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or len(pass_.roots) != 1 or self.inside:
            return
        root = pass_.roots[0]
        node = root.grad_fn
        if node is None or root.numel() != 1:
            return
        known = self.run.optimized()
        mine = [leaf for leaf in pass_.leaves if id(leaf) in known]
        if not mine:
            return  # copies that the program steps itself
        trained = {id(leaf) for leaf in mine}
        if all(leaf.grad is None or not values(leaf.grad).any() for leaf in mine[:MANY]):
            # Cleared since: nothing of before adds up, as in LBFGS or adversarial training.
            for key in [k for k, call in self.calls.items() if call[3] & trained]:
                del self.calls[key]
        calls = self.calls.setdefault(pass_.key, [0, 0, pass_.place, trained])
        plain = calls[0] == calls[1]  # all so far
        calls[0] += 1
        # Losses of several tasks, each with a head of its own, are added on purpose.
        calls[1] += plain and trained == calls[3] and self._is_plain_mean(pass_, node)

    def _is_plain_mean(self, pass_: Pass, node: Any) -> bool:
        scaled = self.run.scaler is not None and is_scaled(node, self.run.scaler)
        if scaled:
            node = node.next_functions[0][0]
        name = node.name().removesuffix("Backward0")
        if name == "Mean":
            return True
        columns = pass_.columns
        index = columns["roots"][0][0]
        if scaled:
            index = columns["sequence"].index(node._sequence_nr())
        attributes = columns["attributes"][index] or {}
        kind = attributes.get("reduction", attributes.get("mean"))
        return kind in ("mean", True)

    def stepped(self, watched: Watched) -> None:
        self.inside = False
        for key, (count, plain, place, _) in self.calls.items():
            history = self.history.setdefault(key, [])
            history.append(count if plain == count else 0)
            if len(history) >= 2 and min(history[-2:]) >= 2 and history[-1] == history[-2]:
                self.find(
                    place,
                    f"backward runs {count} times for each step, on the mean over a batch each "
                    f"time: the gradient is {count} times that of one batch",
                    f"divide before backward: (loss / {count}).backward()",
                )
        self.calls.clear()
