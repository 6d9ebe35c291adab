"""Learning rates, and the schedules that set them."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from clew import Tensor
from clew._base.origins import in_package
from clew._insight.debug.doctor.rule import Rule, size_of, some, values
from clew._insight.debug.doctor.run import Batch, Pass, Watched
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.doctor.training import is_zero
from clew._insight.debug.place import Place

_IN_A_ROW = 3  # times that something must happen to be no accident


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
    LONG = 48

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.made: dict[int, tuple[Any, Place | None, int]] = {}
        self.stepped_: set[int] = set()
        self.passes: dict[int, int] = {}  # over each loader

    def batch(self, batch: Batch) -> None:
        if batch.number == 0:
            self.passes[id(batch.loader)] = self.passes.get(id(batch.loader), 0) + 1

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
            watched = self.run.watched(optimizer)
            steps = watched.steps - before
            # Where only a part of a program is watched, the schedule may step outside of it.
            if watched.earlier and steps < self.LONG and max(self.passes.values(), default=0) < 2:
                continue
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


class RateZero(Rule):
    mistake = "the learning rate is 0"

    ENOUGH = 5  # steps that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.rates: dict[int, list[float]] = {}
        self.schedules: dict[int, tuple[Any, Place | None]] = {}  # by optimizer

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "scheduler" and getattr(subject, "optimizer", None) is not None:
            self.schedules[id(subject.optimizer)] = (subject, place)

    def stepping(self, watched: Watched) -> None:
        groups = watched.optimizer.param_groups
        self.rates.setdefault(id(watched), []).append(max(float(g.get("lr", 1.0)) for g in groups))

    def finish(self) -> None:
        for watched in self.run.optimizers.values():
            rates = self.rates.get(id(watched), [])
            made = self.schedules.get(id(watched.optimizer))
            if len(rates) < self.ENOUGH or any(rates[: self.ENOUGH]) or made is None:
                continue
            schedule, place = made
            at = self._divided(schedule)
            # Later steps need not have been looked at: the rate may have risen since.
            rates_now = [float(g.get("lr", 1.0)) for g in watched.optimizer.param_groups]
            if (any(rates) or any(rates_now)) and at is None:
                continue  # training may be meant to begin later
            idle = next((i for i, rate in enumerate(rates) if rate), len(rates))
            self.find(
                at or place,
                f"the learning rate was 0 in the first {idle} of {len(rates)} steps of this "
                f"{watched.kind} that were looked at, as {type(schedule).__name__} sets it: "
                "nothing is learned in them" + ("; the line divides with //" if at else ""),
                "divide with /, which gives fractions"
                if at
                else "check the factor that the schedule computes; a warm-up begins above 0",
                id(watched),
            )

    @staticmethod
    def _divided(schedule: Any) -> Place | None:
        """The one line of a schedule's own functions that divides whole numbers."""
        found = set()
        for function in getattr(schedule, "lr_lambdas", ()):
            code = getattr(function, "__code__", None)
            if code is None:
                continue
            last = max((n for *_, n in code.co_lines() if n is not None), default=0)
            for node in ast.walk(parsed(code.co_filename)):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
                    if code.co_firstlineno <= node.lineno <= last:
                        found.add((code.co_filename, node.lineno))
        return Place(None, *found.pop()) if len(found) == 1 else None


class UpdateSize(Rule):
    mistake = "the learning rate does not fit"

    HIGH = 1.0  # of a weight's own size
    LARGE = 0.1  # too much where the loss grows
    GREAT = 0.3  # too much where it grows less, if only for a while
    LOW = 5e-7
    TINY = (3e-6, 1e-6)  # the same with a rate below which hardly anybody trains
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
        self.numbers: dict[int, list[int]] = {}  # of the steps that were looked at
        self.losses: list[float] = []  # of each step the mean: parts of a batch differ
        self.parts: list[float] = []  # since the last step
        self.passes = 0
        self.loss_keys: set[Any] = set()

    def backward(self, pass_: Pass) -> None:
        root = pass_.roots[0]
        if pass_.how != "grad" and root.numel() == 1:
            self.parts.append(float(values(root).reshape(-1)[0]))
            self.passes += 1
            # One line may be given the losses of several tasks.
            self.loss_keys.add((pass_.key, root.grad_fn and root.grad_fn.name()))

    def _close(self) -> None:
        if self.parts:
            self.losses.append(sum(self.parts) / len(self.parts))
            self.parts.clear()

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
        self._close()
        if not self.before:
            return
        found = []
        for p, old in self.before:
            size, change = size_of(old), size_of(some(p) - old)
            if size > 0 and p.grad is not None and not is_zero(p.grad):
                found.append(change / size)
        self.before = []
        if not found or any("lr" not in g for g in watched.optimizer.param_groups):
            return  # one of the user's own may keep its rate elsewhere
        self.ratios.setdefault(id(watched), []).append(sorted(found)[len(found) // 2])
        self.rates.setdefault(id(watched), []).append(
            max(float(g["lr"]) for g in watched.optimizer.param_groups)
        )
        self.numbers.setdefault(id(watched), []).append(watched.steps)

    def finish(self) -> None:
        self._close()
        one_line = len(self.loss_keys) == 1
        for watched in self.run.optimizers.values():
            ratios = self.ratios.get(id(watched), [])
            rates = self.rates.get(id(watched), [])
            if len(ratios) < _IN_A_ROW:
                continue
            place, at = self._where(watched)
            middle = sorted(ratios)[len(ratios) // 2]
            first, last = (self.losses[0], self.losses[-1]) if self.losses else (0.0, 0.0)
            diverged = last != last or last in (float("inf"), float("-inf"))
            peak = max(self.losses[1:], default=0.0)
            grew = one_line and last > first > 0 and peak > self.GROWTH * first
            # A step too large may be overcome later: then the loss falls again.
            # Losses of parts of a batch differ by themselves.
            whole = self.passes < 2 * len(ratios)
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
                    place,
                    f"a step changes weights by {middle:.3g} of their own size (typical is "
                    f"0.001), and the loss went from {first:.4g} to {last:.4g}{how}; "
                    f"lr={rates[-1]:g}{at}",
                    f"lower the learning rate: try lr={rates[-1] / 10:g} or less",
                    id(watched),
                )
            elif not diverged and self._is_low(watched, ratios, rates):
                most = max(rates)
                told = f"lr={most:g}" + (" at most" if most > rates[-1] else "")
                self.find(
                    place,
                    f"a step changes weights by {middle:.3g} of their own size (typical is "
                    f"0.001): nothing is learned in any useful time; {told}{at}",
                    "raise the learning rate by factors of ten until the loss falls",
                    id(watched),
                )

    def _is_low(self, watched: Watched, ratios: list[float], rates: list[float]) -> bool:
        """Whether all steps are too small to learn anything, and the rate is the reason."""
        most = max(rates)
        if most <= rates[0] * 1.0001:
            tiny = max(ratios) < self.TINY[0] and rates[0] <= self.TINY[1]
            return (tiny or max(ratios) < self.LOW) and 0 < rates[0] <= self.SMALL
        # A warm-up, or a search for a rate, may go on; one that is over has shown its largest.
        numbers = self.numbers[id(watched)]
        peak = next(n for n, rate in zip(numbers, rates) if rate >= most * 0.9999)
        groups = watched.optimizer.param_groups
        if peak > watched.steps // 2 or not all("initial_lr" in g for g in groups):
            return False
        known = [float(g.get(k, 0.0)) for g in groups for k in ("initial_lr", "max_lr")]
        now = max(float(g["lr"]) for g in groups)
        return max(ratios) < self.LOW and now < most and max(most, *known) <= self.TINY[1]

    @staticmethod
    def _where(watched: Watched) -> tuple[Place | None, str]:
        """The line that gives an optimizer its rate, and where it steps."""
        made, step = watched.place, watched.step_place
        if made is None or in_package(made.file):
            return step, ""
        return made, f"; it steps at {step.short}" if step else ""
