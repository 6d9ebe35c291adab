"""The training loop: gradients that are cleared or not, optimizers that step or do not."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.rule import Rule, size_of, values
from clew._insight.debug.doctor.run import Pass, Watched
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
        # By a parameter's id: the parameter, the gradient that its optimizer's step left, and
        # whether a backward has added to this gradient since. The gradient is held weakly, because
        # a new one may be made at its address.
        self.left: dict[int, tuple[Tensor, weakref.ref[Tensor], bool]] = {}
        self.held: dict[int, tuple[int, float]] = {}  # of optimizers: steps in a row, first norm
        self.place: Place | None = None

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        ids = {id(leaf) for leaf in pass_.leaves}
        for key, (p, grad, _) in list(self.left.items()):
            if p.grad is None or p.grad is not grad() or is_zero(p.grad):
                del self.left[key]
            elif key in ids:
                self.left[key] = (p, grad, True)
                self.place = pass_.place

    def stepping(self, watched: Watched) -> None:
        mine = [p for p in watched.params[: self.FEW] if p.grad is not None]
        left = [self.left.get(id(p)) for p in mine]
        kept = [each[0].grad for each in left if each and each[2] and each[0].grad is each[1]()]
        if not kept:
            self.held.pop(id(watched), None)
            return
        now = norm([g for g in kept if g is not None])
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
                self.left[id(p)] = (p, weakref.ref(p.grad), False)


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
            # The line that asked to keep the graph, which may be a package's.
            self.kept[pass_.key] = (nodes, placed(pass_.instruction))

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
