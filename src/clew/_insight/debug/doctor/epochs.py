"""Passes over the data: their order, where they end, and what stands in their batches."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.data import prints
from clew._insight.debug.doctor.nodes import LOSSES
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Batch, Call, Pass
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.place import Place, placed


class SamplerEpoch(Rule):
    mistake = "a distributed sampler gives the same order in every epoch"

    ENOUGH = 3  # passes

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, list[Any]] = {}  # loader, its sampler's epoch, passes, backwards
        self.current = 0  # the loader that was read last
        self.trained: set[int] = set()

    def backward(self, pass_: Pass) -> None:
        self.trained.add(self.current)

    def batch(self, batch: Batch) -> None:
        self.current = id(batch.loader)
        sampler = getattr(batch.loader, "sampler", None)
        if batch.number or not getattr(sampler, "shuffle", False):
            return
        epoch = getattr(sampler, "epoch", None)
        if epoch is None or not hasattr(sampler, "set_epoch"):
            return
        entry = [batch.loader, epoch, 0, self.run.backwards]
        seen = self.seen.setdefault(id(batch.loader), entry)
        trained = self.run.backwards > seen[3]
        seen[2] = seen[2] + 1 if seen[1] == epoch and (trained or not seen[2]) else 1
        seen[1], seen[3] = epoch, self.run.backwards
        # What a model is only evaluated with may come in any order.
        if seen[2] >= self.ENOUGH and self.current in self.trained:
            self.find(
                batch.place(self.run),
                f"in {seen[2]} epochs in a row the {type(sampler).__name__} had epoch={epoch}: it "
                "shuffles by that number, so that the order is always the same" + batch.read(),
                "call sampler.set_epoch(epoch) before each epoch",
                id(batch.loader),
            )


class SameOrder(Rule):
    mistake = "every epoch has the same order, although it is shuffled"

    ENOUGH = 4  # passes

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line where they are read: first samples, passes alike, backwards, the optimizers.
        self.seen: dict[Any, list[Any]] = {}
        self.current: Any = None  # the line where batches were read last
        self.trained: set[Any] = set()

    def backward(self, pass_: Pass) -> None:
        self.trained.add(self.current)

    def batch(self, batch: Batch) -> None:
        from clew.utils.data import RandomSampler

        place = placed(batch.read_at)
        self.current = place and (place.file, place.line)
        if batch.number or place is None or batch.of < 3:
            return
        if not isinstance(getattr(batch.loader, "sampler", None), RandomSampler):
            return
        mark = prints(batch)
        if len(set(mark)) < 4:
            return
        # A search that begins anew with other models has other optimizers.
        optimizers = tuple(self.run.optimizers)
        key = (place.file, place.line)
        seen = self.seen.setdefault(key, [mark, 0, -1, optimizers])
        again = seen[0] == mark and seen[3] == optimizers and self.run.backwards > seen[2]
        seen[1] = seen[1] + 1 if again else 1
        seen[0], seen[2], seen[3] = mark, self.run.backwards, optimizers
        if seen[1] >= self.ENOUGH and key in self.trained and "iter(" not in place.text:
            self.find(
                batch.place(self.run),
                f"{seen[1]} epochs in a row began with the same {len(mark)} samples in the same "
                "order, bit by bit: the order is drawn anew from the same seed" + batch.read(),
                "make the loader and its generator once, before the epochs, and seed once",
                key,
            )


class OnlyFirst(Rule):
    mistake = "a loop over the data returns after its first batch"

    ENOUGH = 4  # passes

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line: batches of the passes so far, the last loader's length, the place.
        self.seen: dict[Any, list[Any]] = {}

    def batch(self, batch: Batch) -> None:
        place = placed(batch.read_at)
        if place is None or not hasattr(batch.loader, "__len__"):
            return
        seen = self.seen.setdefault((place.file, place.line), [[], 0, place, self.run.backwards])
        if batch.number == 0:
            seen[0].append(0)
        if seen[0]:
            seen[0][-1] += 1
        seen[1] = batch.of

    def finish(self) -> None:
        for passes, length, place, before in self.seen.values():
            if len(passes) < self.ENOUGH or max(passes) > 1 or length < 3:
                continue
            if self.run.backwards - before < self.ENOUGH or not self._returns(place):
                continue
            self.find(
                place,
                f"{len(passes)} times one batch of {length} was read, because a return ends the "
                "loop in its first round",
                "move the return out of the loop, to the indentation of the for",
            )

    @staticmethod
    def _returns(place: Place) -> bool:
        """Whether the loop at a line trains and then returns, whatever comes."""
        for loop in ast.walk(parsed(place.file)):
            if isinstance(loop, ast.For) and loop.lineno == place.line:
                called = [n.func for n in ast.walk(loop) if isinstance(n, ast.Call)]
                trains = any(getattr(f, "attr", "") in ("backward", "step") for f in called)
                return trains and isinstance(loop.body[-1], ast.Return)
        return False


class TargetGiven(Rule):
    mistake = "the target is among the inputs"
    operations = LOSSES

    ENOUGH = 3  # batches

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By loader: whether the last column was the target in all batches so far, how many.
        self.columns: dict[int, tuple[bool, int]] = {}
        self.batches: dict[int, Batch] = {}
        self.last: tuple[int, Any] | None = None

    def batch(self, batch: Batch) -> None:
        self.last = None
        value = batch.value
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return
        x, y = value
        if not (isinstance(x, Tensor) and isinstance(y, Tensor)) or x.dim() != 2:
            return
        if not (x.is_floating_point() and y.is_floating_point()) or len(x) < 8:
            return
        if y.numel() != len(x) or x.shape[1] < 2:
            return
        v, w = values(x), values(y).reshape(-1)
        if len(np.unique(w)) < 8:
            return
        # Where a target stands in a table it is the last; small trials pick the first.
        same = bool((v[:, -1] == w).all())
        key = id(batch.loader)
        known, times = self.columns.get(key, (True, 0))
        self.columns[key] = (known and same, times + 1)
        self.batches.setdefault(key, batch)
        self.last = (key, w)

    def operation(self, call: Call) -> None:
        if self.last is None or len(call.inputs) < 2 or call.inputs[0].grad_fn is None:
            return
        (key, w), y = self.last, call.inputs[1]
        same, times = self.columns[key]
        if not same or times < self.ENOUGH or not isinstance(y, Tensor):
            return
        if y.numel() != w.size or not np.array_equal(values(y).reshape(-1), w):
            return
        batch = self.batches[key]
        self.find(
            batch.place(self.run),
            f"in all {times} batches looked at, the last of the "
            f"{batch.value[0].shape[1]} inputs is the target itself" + batch.read(),
            "leave the target's column out of the inputs",
            key,
        )


class Paired(Rule):
    mistake = "predictions and labels are broadcast when they are compared"
    operations = ("eq",)

    def operation(self, call: Call) -> None:
        if len(call.inputs) < 2 or not isinstance(call.inputs[1], Tensor):
            return
        a, b = call.inputs[:2]
        big, small = (a, b) if a.dim() > b.dim() else (b, a)
        if big.dim() != 2 or small.dim() != 1 or big.shape[1] != 1 or big.shape[0] < 2:
            return
        n = small.shape[0]
        if big.shape[0] != n or not self.run.backwards:
            return
        place = call.place
        text = place.text if place else ""
        # Each with each, as the line itself says; labels of pairs are compared so.
        if any(word in text for word in ("None]", "unsqueeze", "[:, ", "view(", ".t()", ".T")):
            return
        # Numbers of classes are compared with each label on purpose.
        counted = values(small)
        if self._is_one(a, b) or (np.diff(counted.astype(np.float64)) == 1).all():
            return
        self.find(
            place,
            f"shapes {tuple(a.shape)} and {tuple(b.shape)} give {n} x {n} answers: every "
            f"prediction is compared with all {n} labels",
            "bring both to one shape first: prediction.squeeze(-1) == labels",
        )

    @staticmethod
    def _is_one(a: Tensor, b: Tensor) -> bool:
        """Whether both are the same values, such as the labels of all pairs of a batch."""
        return np.array_equal(values(a).reshape(-1), values(b).reshape(-1))
