"""The training loop: optimizers, gradients that are cleared or not, schedules, scaling."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._insight.debug.doctor.losses import LOSSES, is_scaled, leaves_of
from clew._insight.debug.doctor.rule import Rule, size_of, some, values
from clew._insight.debug.doctor.run import Call, Pass, Watched, call_key
from clew._insight.debug.doctor.source import overwriting
from clew._insight.debug.holders import owner_of
from clew._insight.debug.place import Place, placed

_IN_A_ROW = 3  # times that something must happen to be no accident


def norm(tensors: list[Tensor]) -> float:
    """The norm of several tensors taken as one vector."""
    return sum(size_of(values(t)) ** 2 for t in tensors) ** 0.5


def is_zero(t: Tensor) -> bool:
    """Whether no element differs from zero."""
    return not values(t).any()


class ZeroGradForgotten(Rule):
    mistake = "gradients are never cleared: they add up over the steps"

    FEW = 4  # parameters of each optimizer that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By parameter: itself, the identity of the gradient that its optimizer's step left, and
        # whether a backward since has added to it.
        self.left: dict[int, tuple[Tensor, int, bool]] = {}
        self.held: dict[int, tuple[int, float]] = {}  # of optimizers: steps in a row, first norm
        self.place: Place | None = None

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        ids = {id(leaf) for leaf in pass_.leaves}
        for key, (p, grad, _) in list(self.left.items()):
            if p.grad is None or id(p.grad) != grad or is_zero(p.grad):
                del self.left[key]
            elif key in ids:
                self.left[key] = (p, grad, True)
                self.place = pass_.place

    def stepping(self, watched: Watched) -> None:
        mine = [p for p in watched.params[: self.FEW] if p.grad is not None]
        kept = [
            p.grad
            for p in mine
            if p.grad is not None and self.left.get(id(p), (p, 0, False))[1:] == (id(p.grad), True)
        ]
        if not kept:
            self.held.pop(id(watched), None)
            return
        now = norm(kept)
        rows, first = self.held.get(id(watched), (0, now))
        self.held[id(watched)] = (rows + 1, first)
        if rows + 1 >= _IN_A_ROW:
            step = watched.step_place
            self.find(
                self.place,
                f"{rows + 1} steps in a row used gradients that still held what the steps before "
                f"had used; their norm went from {first:.4g} to {now:.4g}"
                + (f"; step() is at {step.short}" if step else ""),
                "call optimizer.zero_grad() in every round, before backward",
                id(watched),
            )

    def stepped(self, watched: Watched) -> None:
        for p in watched.params[: self.FEW]:
            self.left.pop(id(p), None)
            if p.grad is not None:
                self.left[id(p)] = (p, id(p.grad), False)


class ZeroGradAfterBackward(Rule):
    mistake = "gradients are cleared between backward and step"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: set[int] = set()  # parameters that a backward since the last step reached
        self.cleared_at: Place | None = None
        self.empty: dict[int, int] = {}

    def backward(self, pass_: Pass) -> None:
        if pass_.how != "grad":
            self.fed |= {id(leaf) for leaf in pass_.leaves}
            self.cleared_at = None

    def cleared(self, owner: Any, place: Place | None) -> None:
        self.cleared_at = self.cleared_at or place

    def stepping(self, watched: Watched) -> None:
        params = watched.params
        fed = [p for p in params if id(p) in self.fed and p.requires_grad]
        if not fed:
            return
        # Gradients may be zero because all is learned; None they are if somebody made them so.
        if all(p.grad is None or (self.cleared_at and is_zero(p.grad)) for p in fed):
            self.empty[id(watched)] = self.empty.get(id(watched), 0) + 1
            if self.empty[id(watched)] >= 2:
                step = watched.step_place
                how = "zero_grad() took them away" if self.cleared_at else "they were taken away"
                self.find(
                    self.cleared_at or step,
                    f"backward gave gradients to {len(fed)} parameters, but {how} before step()"
                    + (f" at {step.short}" if step else "")
                    + ": all are None or zero there, and nothing is learned",
                    "clear before backward: zero_grad(), backward(), step()",
                )

    def stepped(self, watched: Watched) -> None:
        self.fed -= {id(p) for p in watched.params}
        if not self.fed & self.run.optimized():
            self.cleared_at = None


class NeverSteps(Rule):
    mistake = "the optimizer never steps"

    ENOUGH = 3
    LONG = 8  # where only a part of a program is watched, in which gradients may be gathered
    FEW = 4  # parameters of each optimizer that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: dict[int, int] = {}  # of optimizers: backwards that reached them
        self.first: dict[int, tuple[Place | None, list[tuple[Any, int, Any]]]] = {}
        self.refused: set[int] = set()  # those whose gradients are NaN or infinite: nobody would

    def cleared(self, owner: Any, place: Place | None) -> None:
        for watched in self.run.optimizers.values():
            self._look_at(watched)

    def _look_at(self, watched: Watched) -> None:
        if watched.steps == 0 and id(watched) not in self.refused:
            grads = [p.grad for p in watched.params[: self.FEW] if p.grad is not None]
            if not all(np.isfinite(values(g)).all() for g in grads):
                self.refused.add(id(watched))

    def backward(self, pass_: Pass) -> None:
        waiting = [w for w in self.run.optimizers.values() if w.steps == 0]
        if pass_.how == "grad" or not waiting:
            return
        ids = {id(leaf) for leaf in pass_.leaves}
        for watched in waiting:
            reached = [p for p in watched.params if id(p) in ids]
            if not reached:
                continue
            self.fed[id(watched)] = self.fed.get(id(watched), 0) + 1
            if id(watched) not in self.first:
                kept = [(p, p._version, values(p).copy()) for p in reached[: self.FEW]]
                self.first[id(watched)] = (pass_.place, kept)

    def finish(self) -> None:
        for watched in self.run.optimizers.values():
            times = self.fed.get(id(watched), 0)
            if watched.steps or times < (self.LONG if watched.earlier else self.ENOUGH):
                continue
            self._look_at(watched)
            if id(watched) in self.refused:
                continue
            place, kept = self.first[id(watched)]
            # Through .data a parameter changes, and its version does not.
            same = all(
                p._version == version and np.array_equal(values(p), old, equal_nan=True)
                for p, version, old in kept
            )
            if same:
                self.find(
                    watched.place or place,
                    f"backward ran {'at least ' * self.run.rested}{times} times for the parameters "
                    f"of this {watched.kind}, its step() not once: no parameter has changed",
                    "call optimizer.step() after backward",
                    id(watched),
                )


class FrozenButChanging(Rule):
    mistake = "a frozen parameter is changed by the optimizer"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.before: list[tuple[Tensor, Any]] = []

    def stepping(self, watched: Watched) -> None:
        frozen = [p for p in watched.params if not p.requires_grad and p.grad is not None]
        self.before = [(p, values(p).copy()) for p in frozen]

    def stepped(self, watched: Watched) -> None:
        for p, old in self.before:
            change = float(np.abs(values(p) - old).max()) if p.numel() else 0.0
            if not change > 0:
                continue
            group = next(
                g for g in watched.optimizer.param_groups if any(q is p for q in g["params"])
            )
            grad = norm([p.grad]) if p.grad is not None else 0.0
            why = [f"{k}={group[k]}" for k in ("weight_decay", "momentum", "betas") if group.get(k)]
            self.find(
                watched.step_place,
                f"{self.run.name_of(p)} has requires_grad=False, but step() changed it by up to "
                f"{change:.3g}: its .grad is still there (norm {grad:.3g})"
                + (f", and {', '.join(why)} acts on it" if why else ""),
                "set p.grad = None when freezing, or give the optimizer only what requires grad: "
                "(p for p in net.parameters() if p.requires_grad)",
            )
        self.before = []


class ScheduleOrder(Rule):
    mistake = "the schedule steps before the optimizer"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, Any] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what != "schedule":
            return
        optimizer = getattr(subject, "optimizer", None)
        if optimizer is None or id(subject) in self.seen:
            return
        self.seen[id(subject)] = subject
        watched = self.run.watched(optimizer)
        # A scaler leaves steps out whose gradients are not finite.
        scaled = self.run.scaler is not None
        if watched.steps == 0 and not scaled and not getattr(optimizer, "_opt_called", False):
            self.find(
                place,
                f"{type(subject).__name__}.step() ran when {watched.kind}.step() had run 0 times: "
                "the first value of the schedule is skipped",
                "call optimizer.step() first, then the schedule's step()",
            )


class ScheduleNeverSteps(Rule):
    mistake = "the learning-rate schedule never steps"

    ENOUGH = 4

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.made: dict[int, tuple[Any, Place | None, int]] = {}
        self.stepped_: set[int] = set()

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scheduler":
            optimizer = getattr(subject, "optimizer", None)
            steps = self.run.watched(optimizer).steps if optimizer is not None else 0
            self.made[id(subject)] = (subject, place, steps)
        elif what == "schedule":
            self.stepped_.add(id(subject))
            # One that is made of others steps them.
            for inner in getattr(subject, "_schedulers", ()):
                self.stepped_.add(id(inner))

    def finish(self) -> None:
        for key, (subject, place, before) in self.made.items():
            optimizer = getattr(subject, "optimizer", None)
            if key in self.stepped_ or optimizer is None:
                continue
            steps = self.run.watched(optimizer).steps - before
            if steps >= self.ENOUGH and not self._is_part(subject):
                rates = ", ".join(f"{g['lr']:g}" for g in optimizer.param_groups[:3])
                self.find(
                    place,
                    f"the optimizer stepped {steps} times, {type(subject).__name__}.step() never "
                    f"ran: the learning rate is still {rates}",
                    "call scheduler.step() after each epoch, or after each step, as the schedule "
                    "counts",
                    key,
                )

    def _is_part(self, subject: Any) -> bool:
        return any(
            subject in getattr(other, "_schedulers", ()) for other, _, _ in self.made.values()
        )


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
        self.vain: dict[Any, int] = {}  # by line, how often in a row; -1 where it had an effect
        self.places: dict[Any, Place | None] = {}

    def backward(self, pass_: Pass) -> None:
        self.fed |= {id(leaf) for leaf in pass_.leaves}
        self.trained |= self.fed

    def stepped(self, watched: Watched) -> None:
        self.fed -= {id(p) for p in watched.params}
        for p in watched.params[: self.FEW]:
            if p.grad is not None:
                self.left[id(p)] = (p, id(p.grad), p.grad._version)

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what != "clip" or not self.run.looking or not self.run.optimizers:
            return
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


class ClearedUnused(Rule):
    """Of who gathers the gradients of several batches, as the division of the loss tells."""

    mistake = "gradients are cleared before a step has used them"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.passes: dict[Any, list[Any]] = {}  # by line: all, after clearing, of a share, place
        self.history: dict[Any, list[int]] = {}
        self.cleared_at: Place | None = None

    def cleared(self, owner: Any, place: Place | None) -> None:
        self.cleared_at = place

    def backward(self, pass_: Pass) -> None:
        node = pass_.roots[0].grad_fn
        if pass_.how == "grad" or node is None:
            return
        known = self.run.optimized()
        mine = [leaf for leaf in pass_.leaves if id(leaf) in known][:4]
        empty = all(leaf.grad is None or is_zero(leaf.grad) for leaf in mine)
        counts = self.passes.setdefault(pass_.key, [0, 0, 0.0, None])
        counts[0] += 1
        counts[1] += bool(mine) and empty
        counts[2] = self._share(node)
        counts[3] = self.cleared_at or pass_.place

    @staticmethod
    def _share(node: Any) -> float:
        """The part of a loss that is differentiated: 4 where it is loss / 4 or 0.25 * loss."""
        factors = [t for t in node.saved_tensors if t is not None]
        if len(factors) != 1 or factors[0].numel() != 1:
            return 0.0
        factor = float(values(factors[0]).reshape(-1)[0])
        if node.name().startswith("Mul"):
            return 1 / factor if factor else 0.0
        return factor if node.name().startswith("Div") else 0.0

    def stepped(self, watched: Watched) -> None:
        for key, (count, empty, share, place) in self.passes.items():
            history = self.history.setdefault(key, [])
            fits = count >= 2 and count == empty and abs(share - count) < 1e-6 * count
            history.append(count if fits else 0)
            if len(history) >= _IN_A_ROW and min(history) == max(history) > 0:
                self.find(
                    place,
                    f"backward runs {count} times for each step, on {1 / count:.3g} of a loss each "
                    f"time, and finds no gradients left: {count - 1} of {count} are lost",
                    "call zero_grad() once for each step, after it",
                    key,
                )
        self.passes.clear()


class StepsWithoutGradients(Rule):
    mistake = "the optimizer steps without gradients"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.idle: dict[int, int] = {}  # of optimizers: steps with no gradient at all
        self.fed: set[int] = set()  # those that had one, or changed a parameter without
        self.before: list[int] = []

    def stepping(self, watched: Watched) -> None:
        self.before = [p._version for p in watched.params]

    def stepped(self, watched: Watched) -> None:
        params = watched.params
        if not params or any(p.grad is not None for p in params):
            self.fed.add(id(watched))
        elif self.before != [p._version for p in params]:
            self.fed.add(id(watched))
        self.idle[id(watched)] = self.idle.get(id(watched), 0) + 1

    def finish(self) -> None:
        for watched in self.run.optimizers.values():
            steps = self.idle.get(id(watched), 0)
            if steps < _IN_A_ROW or id(watched) in self.fed:
                continue
            ran = self.run.backwards
            self.find(
                watched.step_place,
                f"in all {steps} steps of this {watched.kind} that were looked at, none of its "
                f"{len(watched.params)} parameters had a gradient; "
                + (f"backward ran {ran} times, for others" if ran else "backward never ran"),
                "check that the loss is made of these parameters"
                if ran
                else "call loss.backward() before step(); its name without () calls nothing",
                id(watched),
            )


class UpdateSize(Rule):
    mistake = "the learning rate does not fit"

    HIGH = 1.0  # of a weight's own size
    LARGE = 0.1  # too much where the loss grows
    GREAT = 0.3  # too much where it grows less, if only for a while
    LOW = 5e-7
    SMALL = 1e-4  # a learning rate; with larger ones it is the gradients that are small
    GROWTH = 3.0  # of the loss
    RISE = 2.0
    PEAK = 5.0  # of the loss, that falls again
    OPPOSED = -0.5  # the cosine between a gradient and the one before; momentum alone gives -0.3
    BOUNCES = 4  # pairs of gradients to judge by

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.before: list[tuple[Tensor, Any]] = []
        self.last: dict[int, tuple[int, list[Any]]] = {}  # of optimizers: round, gradients
        self.cosines: dict[int, list[float]] = {}
        self.ratios: dict[int, list[float]] = {}
        self.rates: dict[int, list[float]] = {}
        self.losses: list[float] = []
        self.loss_keys: list[Any] = []

    def backward(self, pass_: Pass) -> None:
        root = pass_.roots[0]
        if pass_.how != "grad" and root.numel() == 1:
            self.losses.append(float(values(root).reshape(-1)[0]))
            self.loss_keys.append(pass_.key)

    def stepping(self, watched: Watched) -> None:
        weights = [p for p in watched.params if p.dim() >= 2 and p.grad is not None]
        self.before = [(p, some(p).copy()) for p in weights[:3] + weights[3:][-3:]]
        grads = [p.grad for p in weights[:2]]
        self._compare(watched, [g for g in grads if g is not None and not g.is_sparse])

    def _compare(self, watched: Watched, grads: list[Tensor]) -> None:
        """Notes the cosine between these gradients and those of the round before. It is far below
        zero where steps jump to and fro across a valley."""
        now = [some(g).astype(np.float32) for g in grads]
        at, before = self.last.get(id(watched), (-1, []))
        self.last[id(watched)] = (self.run.round, now)
        if at != self.run.round - 1 or [b.shape for b in before] != [n.shape for n in now]:
            return
        sizes = [sum(size_of(v) ** 2 for v in each) ** 0.5 for each in (before, now)]
        product = sum(float((a * b).sum()) for a, b in zip(before, now))
        if all(np.isfinite(sizes)) and min(sizes) > 0:
            cosine = product / (sizes[0] * sizes[1])
            self.cosines.setdefault(id(watched), []).append(cosine)

    def stepped(self, watched: Watched) -> None:
        if not self.before:
            return
        found = []
        for p, old in self.before:
            size, change = size_of(old), size_of(some(p) - old)
            if size > 0 and p.grad is not None and not is_zero(p.grad):
                found.append(change / size)
        self.before = []
        if not found or watched.optimizer is None:
            return
        self.ratios.setdefault(id(watched), []).append(sorted(found)[len(found) // 2])
        self.rates.setdefault(id(watched), []).append(
            max(float(g["lr"]) for g in watched.optimizer.param_groups)
        )

    def finish(self) -> None:
        one_line = len(set(self.loss_keys)) == 1
        for watched in self.run.optimizers.values():
            ratios = self.ratios.get(id(watched), [])
            rates = self.rates.get(id(watched), [])
            if len(ratios) < _IN_A_ROW:
                continue
            middle = sorted(ratios)[len(ratios) // 2]
            first, last = (self.losses[0], self.losses[-1]) if self.losses else (0.0, 0.0)
            diverged = last != last or last in (float("inf"), float("-inf"))
            peak = max(self.losses[1:], default=0.0)
            grew = one_line and last > first > 0 and peak > self.GROWTH * first
            # A step too large may be overcome later: then the loss falls again.
            # Losses of parts of a batch differ by themselves.
            whole = len(self.losses) < 2 * len(ratios)
            early = sorted(ratios[:6])[len(ratios[:6]) // 2]
            high = self.RISE if whole and early > self.GREAT else self.PEAK
            peaked = one_line and first > 0 and peak > high * first and early > self.LARGE
            turns = self.cosines.get(id(watched), [])
            turn = sorted(turns)[len(turns) // 2] if len(turns) >= self.BOUNCES else 0.0
            # LBFGS searches along a line: its gradients turn on purpose.
            bounces = one_line and turn < self.OPPOSED and watched.kind != "LBFGS"
            if (
                (diverged and max(r for r in ratios if r == r) > 0.1)
                or ((grew or bounces) and middle > self.LARGE)
                or peaked
                or middle > self.HIGH
            ):
                how = f", by way of {peak:.4g}" if peaked and peak > last else ""
                if bounces:
                    how += f"; each gradient points against the one before (cosine {turn:.2f})"

                self.find(
                    watched.step_place,
                    f"a step changes weights by {middle:.3g} of their own size (typical is "
                    f"0.001), and the loss went from {first:.4g} to {last:.4g}{how}; "
                    f"lr={rates[-1]:g}",
                    f"lower the learning rate: try lr={rates[-1] / 10:g} or less",
                    id(watched),
                )
            elif (
                max(ratios) < self.LOW
                and rates[0] <= self.SMALL
                and max(rates) <= rates[0] * 1.0001
                and not diverged
            ):
                self.find(
                    watched.step_place,
                    f"a step changes weights by {middle:.3g} of their own size (typical is "
                    f"0.001): nothing is learned in any useful time; lr={rates[-1]:g}",
                    "raise the learning rate by factors of ten until the loss falls",
                    id(watched),
                )


class RetainWithoutNeed(Rule):
    mistake = "retain_graph=True is not needed"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.kept: dict[Any, tuple[set[int], Place | None]] = {}
        self.idle: dict[Any, int] = {}
        self.needed: set[Any] = set()

    def backward(self, pass_: Pass) -> None:
        if not self.kept and pass_.how != "retaining":
            return
        nodes = set(pass_.sequences)
        for key, (sequences, place) in list(self.kept.items()):
            if sequences & nodes:
                self.needed.add(key)
                del self.kept[key]
            elif key == pass_.key:  # round again
                del self.kept[key]
                self._count(key, place, len(sequences))
        if pass_.how == "retaining":
            self.kept[pass_.key] = (nodes, pass_.place)

    def _count(self, key: Any, place: Place | None, count: int) -> None:
        self.idle[key] = self.idle.get(key, 0) + 1
        if self.idle[key] >= 2 and key not in self.needed:
            self.find(
                place,
                f"{self.idle[key]} times this backward kept its graph of {count} operations, and "
                "no other backward went through it: its memory is held one round too long",
                "leave retain_graph=True out",
                key,
            )

    def finish(self) -> None:
        for key in self.needed:
            self.findings.pop(key, None)


class LossDoesNotReach(Rule):
    """Of an optimizer's parameters that never get a gradient, those that were cut off."""

    mistake = "parameters are cut off from the loss"
    operations = (*LOSSES, "mean")
    few = ("mean",)

    ROUNDS = 2

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.missing: dict[int, int] = {}
        # Of parameters, why no gradient comes: at the last backward before their optimizer
        # stepped, which is the one that was to reach them, or at any.
        self.reasons: dict[int, tuple[str, Any, str]] = {}
        self.latest: dict[int, tuple[str, Any, str]] = {}
        self.reached: set[int] = set()
        self.looked = 0
        self.leaf_losses: dict[Any, int] = {}
        self.numbers: dict[int, Tensor] = {}  # the leaves of a loss that is made of numbers
        # Parameters whose use came to nothing, and the losses that were made of them, by line.
        self.unused: dict[int, Tensor] = {}
        self.dropped: dict[Any, tuple[Place, int, dict[int, Tensor]]] = {}

    def operation(self, call: Call) -> None:
        node = call.outputs[0].grad_fn
        if not self.unused or node is None or call.outputs[0].numel() != 1 or call.place is None:
            return
        mine = {k: p for k, p in leaves_of(node).items() if k in self.unused}
        if mine:
            times = self.dropped[call.key][1] if call.key in self.dropped else 0
            self.dropped[call.key] = (call.place, times + 1, mine)

    def _is_leaf_loss(self, pass_: Pass) -> bool:
        """A loss that backward begins at and ends with: its value was taken out of its graph, and
        requires_grad was set afterwards."""
        root = pass_.roots[0]
        if len(pass_.roots) != 1 or root.numel() != 1:
            return False
        known = self.run.optimized()
        if root.grad_fn is not None:
            return self._is_made_of_numbers(pass_, known)
        if id(root) in known or not known:
            return False
        times = self.leaf_losses[pass_.key] = self.leaf_losses.get(pass_.key, 0) + 1
        if times == self.ROUNDS:
            from clew._insight.graph.why import cut_text

            cut = _C._cut_of(root)
            made = cut is not None and cut[0] != "made"
            self.find(
                placed(cut[2]) if cut is not None else pass_.place,
                f"backward begins at a tensor that no operation made, with value "
                f"{float(values(root).reshape(-1)[0]):.4g}, and ends there"
                + (f": its history was cut off {cut_text(cut)}" if made else "")
                + "; no parameter gets a gradient",
                "leave requires_grad=True out: the loss has it where it is computed from the "
                "parameters with tensors all the way",
                "leaf",
            )
        return True

    def _is_made_of_numbers(self, pass_: Pass, known: set[int]) -> bool:
        """A loss of tensors alone that were made of numbers, with requires_grad set."""
        made = [_C._cut_of(leaf) for leaf in pass_.leaves if id(leaf) not in known]
        if not made or len(made) < len(pass_.leaves):
            return False
        if any(cut is None or cut[0] != "made" for cut in made):
            return False
        if any(id(leaf) in self.numbers for leaf in pass_.leaves):
            return False  # not made anew in each round: it is what is optimized
        self.numbers = {id(leaf): leaf for leaf in pass_.leaves}
        times = self.leaf_losses[pass_.key] = self.leaf_losses.get(pass_.key, 0) + 1
        if times == self.ROUNDS:
            cut = made[0]
            self.find(
                placed(cut[2]) if cut is not None else pass_.place,
                "backward ends at a tensor that is made of plain numbers here, in each round anew, "
                f"of shape {tuple(pass_.leaves[0].shape)}; no parameter gets a gradient",
                "clew.stack() the tensors instead: tensor(...) takes their numbers alone, and "
                "requires_grad=True gives them no history",
                "numbers",
            )
        return True

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or not self.run.optimizers or self._is_leaf_loss(pass_):
            return
        self.reached |= {id(leaf) for leaf in pass_.leaves}
        lost = [
            p
            for w in self.run.optimizers.values()
            if not (w.steps and w.step_place is None)  # it stepped while nobody looked
            for p in w.params
            if p.requires_grad and p.grad is None
            if id(p) not in self.reached and id(p) not in self.reasons
        ]
        if not lost or self.looked >= 6:
            return
        self.looked += 1
        from clew._insight.graph.graph import graph

        whole = graph(pass_.roots)
        for p in lost[:32]:
            answer = whole.why(p)
            if answer.kind in ("cut", "likely cut"):
                self.latest[id(p)] = (self.run.name_of(p), *self._cut(answer, whole))
            else:
                found = self._cut_later(p, whole)
                if found is not None:
                    self.latest[id(p)] = (self.run.name_of(p), *found)
                elif answer.kind == "not used":
                    self.unused[id(p)] = p

    def stepping(self, watched: Watched) -> None:
        for p in watched.params if self.latest else ():
            if id(p) in self.latest:
                self.reasons.setdefault(id(p), self.latest[id(p)])

    @staticmethod
    def _cut_later(p: Tensor, whole: Any) -> tuple[Any, str] | None:
        """Of a parameter that was used before another backward, as a generator's are: where what
        was made of it was cut off on its way to this loss."""
        from clew._insight.graph.why import cut_text

        use = _C._recorded_use(p)
        if use is None or use[0] is None:
            return None
        made = _provenance.Location(*use[0][:2])
        for cut in whole._cuts:
            if cut[3] is None:
                continue
            at = _provenance.Location(*cut[3][:2])
            if (at.file, at.line) == (made.file, made.line):
                return cut[2], f"its value was cut off: {cut_text(cut)}"
        return None

    @staticmethod
    def _cut(answer: Any, whole: Any) -> tuple[Any, str]:
        from clew._insight.graph.why import cut_text

        if answer.kind == "likely cut" and answer.place is not None:
            # What the loss did receive from that line, and without its graph, is no guess.
            guess = _provenance.Location(*answer.place[:2])
            for cut in whole._cuts:
                if cut[3] is None or cut[0] not in ("no_grad", "inference_mode"):
                    continue
                at = _provenance.Location(*cut[2][:2])
                if (at.file, at.line) == (guess.file, guess.line):
                    return cut[2], f"its value was cut off: {cut_text(cut)}"
        return answer.place, answer.reason

    def _overwritten(self) -> None:
        """Losses that were computed of parameters that no backward reached, and whose name was
        given to something else."""
        for key, (loss, times, params) in self.dropped.items():
            idle = [p for k, p in params.items() if k not in self.reached]
            at = overwriting(loss.file, loss.line)
            if times < _IN_A_ROW or not idle or at is None:
                continue
            self.find(
                Place(None, loss.file, at[1]),
                f"{at[0]} got a loss at line {loss.line}, and gets another here, which is not made "
                f"of it: {', '.join(self.run.name_of(p) for p in idle[:3])} never got a gradient, "
                f"in {times} steps looked at",
                f"add them up: {at[0]} = {at[0]} + ...",
                key,
            )

    def finish(self) -> None:
        self._overwritten()
        places: dict[Any, list[tuple[str, Any, str]]] = {}
        for key, told in {**self.latest, **self.reasons}.items():
            if key not in self.reached:
                places.setdefault(told[1] and tuple(told[1][:2]), []).append(told)
        for group in places.values():
            names = [name for name, _, _ in group]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            place = placed(group[0][1])
            drawn = place is not None and ".sample(" in place.text
            self.find(
                place,
                f"{', '.join(names[:3])}{more} never got a gradient although an optimizer has "
                f"them: {group[0][2].removeprefix('does not reach the result: ')}",
                "draw with rsample(): sample() computes without gradients"
                if drawn
                else "compute with tensors all the way: leave out detach(), .data, item(), numpy() "
                "and no_grad() where gradients are to flow",
            )


class ParameterRegistration(Rule):
    mistake = "parameters are in no optimizer"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: dict[int, list[Any]] = {}  # parameter, passes, use
        self.first: dict[int, Any] = {}  # the first values of those that no optimizer has

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        from clew.nn import Parameter

        for leaf in pass_.leaves:
            if isinstance(leaf, Parameter):
                entry = self.fed.setdefault(id(leaf), [leaf, 0, None])
                entry[1] += 1
                entry[2] = _C._recorded_use(leaf)
                if entry[1] == 1 and id(leaf) not in self.run.optimized():
                    self.first[id(leaf)] = values(leaf).copy()

    def finish(self) -> None:
        from clew._insight.debug.holders import assignment, hidden_in, put_into

        stepping = [w for w in self.run.optimizers.values() if w.steps]
        if sum(w.steps for w in stepping) < 2:
            return
        known = self.run.optimized()
        lost = [
            (entry[0], entry[2])
            for key, entry in self.fed.items()
            if key not in known and entry[1] >= 2 and key not in self.run.behind_targets
        ]
        lost = [(p, use) for p, use in lost if p.requires_grad]
        if not lost or not (known & set(self.fed) or self._all_replaced(lost, stepping)):
            return  # nothing is missing, or the optimizers are for something else
        told: dict[Any, list[Any]] = {}
        for p, use in lost:
            holder = hidden_in(self.run.models, p)
            owner = owner_of(self.run.models, p)
            key = holder[:2] if holder else ("model", id(owner[0])) if owner else ("loose", 0)
            told.setdefault(key, []).append((p, use, holder, owner))
        for key, group in told.items():
            p, use, holder, owner = group[0]
            count = sum(q.numel() for q, *_ in group)
            what = "1 parameter" if len(group) == 1 else f"{len(group)} parameters"
            verbs = "gets gradients and is" if len(group) == 1 else "get gradients and are"
            many = f"{what} ({count:,} numbers) {verbs} in no optimizer"
            used = placed(use[0]) if use else None
            if holder:
                module, attribute, kind = holder
                set_at = assignment(type(module), attribute)
                near = set_at or used
                filled = near and put_into(getattr(module, attribute), near.file)
                place = set_at or filled or used
                self._found(
                    place,
                    "parameters lie in a plain " + kind,
                    f"{type(module).__name__}.{attribute} is a {kind}, which parameters() does not "
                    f"look into: {many}" + (f"; it is filled at {filled.short}" if filled else ""),
                    "use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.ParameterDict",
                    key,
                )
                continue
            if not owner:
                place = used
                self._found(
                    place,
                    self.mistake,
                    f"{many}, nor in a model that was called",
                    "give them to the optimizer",
                    key,
                )
                continue
            model = owner[0]
            names = ", ".join(n for q, *_ in group if (n := self.run.name_of(q)))[:120]
            mine = {id(q) for q in model.parameters()}
            stale = [
                w
                for w in stepping
                if any(id(q) not in mine and q.grad is None for q in w.params)
                and (any(id(q) in mine for q in w.params) or len(stepping) == 1)
            ]
            if stale:
                w = stale[0]
                old = sum(id(q) not in mine for q in w.params)
                self._found(
                    w.place or w.step_place,
                    "the optimizer has parameters that were replaced",
                    f"{old} parameters of this {w.kind} are no longer in the model and get no "
                    f"gradients, while {names} get gradients and are in no optimizer",
                    "make the optimizer after the model is complete",
                    key,
                )
            elif any(id(q) in mine for w in stepping for q in w.params):
                self._found(
                    stepping[0].place or stepping[0].step_place,
                    self.mistake,
                    f"{many}: {names}",
                    "give the optimizer all parameters, or freeze the others with "
                    "requires_grad_(False)",
                    key,
                )
            elif model.training and self._is_left_out(model, [q for q, *_ in group], stepping):
                w = self._same_again(stepping)
                self._found(
                    w.place or w.step_place,
                    self.mistake,
                    f"all of {type(model).__name__}, in training mode: {many}, and none has "
                    f"changed: {names}",
                    "give the optimizer its parameters too, or freeze them with "
                    "requires_grad_(False)",
                    key,
                )

    @staticmethod
    def _all_replaced(lost: list[Any], stepping: list[Watched]) -> bool:
        """Whether an optimizer has a tensor without gradients for each that gets some."""
        shapes = sorted(tuple(p.shape) for p, _ in lost)
        return any(
            all(p.grad is None for p in w.params)
            and sorted(tuple(p.shape) for p in w.params) == shapes
            for w in stepping
        )

    @staticmethod
    def _same_again(stepping: list[Watched]) -> Watched:
        """The optimizer that was given what another has already: likely the one that was meant."""
        ids = [[id(p) for p in w.params] for w in stepping]
        return next((w for i, w in enumerate(stepping) if ids[i] in ids[:i]), stepping[0])

    def _is_left_out(self, model: Any, mine: list[Tensor], stepping: list[Watched]) -> bool:
        """Whether a model as a whole is in no optimizer, and others that the program calls are."""
        if any(id(q) in self.run.optimized() for q in model.parameters()):
            return False
        if not any(owner_of(self.run.models, q) for w in stepping for q in w.params):
            return False  # what is optimized is no model: an image, a prompt
        return all(
            np.array_equal(values(q), self.first[id(q)]) for q in mine if id(q) in self.first
        )

    def _found(self, place: Any, mistake: str, evidence: str, change: str, key: Any) -> None:
        from clew._insight.debug.doctor.finding import made

        self.findings.setdefault(key, made(mistake, place, evidence, change))
