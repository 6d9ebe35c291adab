"""Labels that are outside, constant or sorted, and integers where fractions were meant."""

from __future__ import annotations

import re
import weakref
from itertools import pairwise
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.data import SHUFFLE, SORTED
from clew._insight.debug.doctor.filled import gives_filled
from clew._insight.debug.doctor.finding import made
from clew._insight.debug.doctor.nodes import HANDED_ON, MANY, class_dim, name_of, span
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Batch, Call
from clew._insight.debug.holders import owner_of
from clew._insight.debug.place import Place


class LabelsOutside(Rule):
    mistake = "labels outside of what the loss is made for"
    ROUNDING = 1e-4  # as of masks that were interpolated
    operations = (
        "_binary_cross_entropy",
        "_binary_cross_entropy_with_logits",
        "_cross_entropy",
        "_nll_loss",
    )

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "signs":
            self._signs(subject[0], subject[1], place)
        if what != "refused":
            return
        outside = re.search(r"target (-?\d+) is out of bounds for (\d+) classes", str(subject))
        if outside is None:
            return
        label, classes = map(int, outside.groups())
        self.find(
            place,
            f"there is a label {label}; the scores are for {classes} classes, 0 to {classes - 1}",
            "give the model one output more for each class that is missing, or count labels from "
            "0; what is to be left out is marked with the loss's ignore_index (-100)",
        )

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if y.numel() == 0 or x.grad_fn is None:
            return
        if not y.is_floating_point():
            return
        v = values(y)
        if v.min() < -self.ROUNDING or v.max() > 1 + self.ROUNDING:
            self.find(
                call.place,
                f"targets lie in {span(v)}; the loss wants probabilities between 0 and 1, and has "
                "no lower bound for others",
                self._change(v),
            )

    def _signs(self, name: str, target: Any, place: Place | None) -> None:
        """Of a loss whose labels are -1 and 1."""
        if not isinstance(target, Tensor) or target.numel() < 2:
            return
        v = values(target)
        zeros = int((v == 0).sum())
        if zeros and ((v == 0) | (v == 1)).all():
            self.find(
                place,
                f"{zeros} of {target.numel()} labels are 0 and the others 1; {name} wants -1 and "
                "1, and 0 tells it nothing, or something else",
                "map the labels to -1 and 1: 2 * y - 1",
            )

    @staticmethod
    def _change(v: Any) -> str:
        if v.min() >= 0 and v.max() > 2:
            highest = 255 if 100 < v.max() <= 255 else f"{v.max():g}"
            return f"bring the targets to 0 to 1: y / {highest}; for classes use cross_entropy"
        return "map the labels to 0 and 1: (y + 1) / 2 for labels -1 and 1, y - 1 for 1 and 2"


class ConstantLabels(Rule):
    mistake = "the labels are constant"
    operations = ("_cross_entropy", "_nll_loss", "_binary_cross_entropy_with_logits")

    ROUNDS = 4
    ENOUGH = 16

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, tuple[set[float], int, set[int], Place | None, int]] = {}
        self.last: Batch | None = None
        # By loader: a batch, which of its tensors are the labels, and what these were since.
        self.sources: dict[int, tuple[Batch, int, set[float]]] = {}
        self.joined: set[float] = set()  # labels of scores that were put together
        self.of_data: set[Any] = set()  # lines whose labels are to tell samples apart

    def batch(self, batch: Batch) -> None:
        self.last = batch
        source = self.sources.get(id(batch.loader))
        if source is not None and source[1] < len(batch.tensors):
            v = values(batch.tensors[source[1]])
            source[2].update((float(v.min()), float(v.max())) if v.size else ())

    def _note_source(self, labels: Any) -> None:
        """Remembers which loader gives the labels."""
        if self.last is None or id(self.last.loader) in self.sources:
            return
        for i, t in enumerate(self.last.tensors):
            if np.array_equal(values(t).reshape(-1), labels.reshape(-1)):
                self.sources[id(self.last.loader)] = (self.last, i, set())
                return

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if x.grad_fn is None or y.numel() == 0:
            return
        v = values(y)
        low, high = float(v.min()), float(v.max())
        if self._is_joined(x):
            self.joined |= {low, high} if low < high else set()
            return
        key = call.key
        if key not in self.seen and self._asks_of_data(x):
            self.of_data.add(key)
        self._note_source(v)
        kinds, count, rounds, place, classes = self.seen.get(key, (set(), 0, set(), None, 0))
        kinds |= {low, high}
        rounds.add(self.run.round)
        binary = y.is_floating_point()
        classes = 2 if binary else (x.shape[class_dim(x)] if x.dim() else 0)
        self.seen[key] = (kinds, count + v.size, rounds, place or call.place, classes)

    @classmethod
    def _is_joined(cls, x: Tensor) -> bool:
        """Whether scores were put together, perhaps scaled since: in contrastive losses the right
        one always stands first."""
        node = cls._unscaled(x)
        return node is not None and node.name().startswith(("Cat", "Stack"))

    @staticmethod
    def _unscaled(x: Tensor) -> Any:
        """The node that made scores, perhaps scaled since."""
        node = x.grad_fn
        while node is not None and node.name().startswith(("Div", "Mul", *HANDED_ON)):
            node = node.next_functions[0][0] if node.next_functions else None
        return node

    def _asks_of_data(self, x: Tensor) -> bool:
        """Whether scores are those of a trained layer, whose bias alone learns a constant label, or
        of all samples with all others, where each has a partner of its own."""
        node = self._unscaled(x)
        name = "" if node is None else name_of(node)
        if name == "Matmul":
            return x.dim() == 2 and x.shape[0] == x.shape[1]
        known = self.run.optimized()
        below = [fn for fn, _ in node.next_functions[1:] if fn is not None] if node else []
        return name == "Linear" and any(id(getattr(fn, "variable", 0)) in known for fn in below)

    def finish(self) -> None:
        if not any(owner_of(self.run.models, p) for p in self.run.optimized_tensors()):
            return  # an image is optimized, for one class
        # A GAN's targets are constant on each line, and differ between its lines.
        every = set().union(*(kinds for kinds, *_ in self.seen.values())) if self.seen else set()
        if len(every | self.joined) != 1:
            return
        if any(later - every for *_, later in self.sources.values()):
            self._sorted(next(iter(every)))
            return
        # Of two that are trained in turn one is to deceive the other.
        alone = sum(watched.steps > 0 for watched in self.run.optimizers.values()) == 1
        for key, (kinds, count, rounds, place, classes) in self.seen.items():
            enough = len(rounds) >= self.ROUNDS and count >= self.ENOUGH and classes > 1
            meant = not (alone and key in self.of_data)
            if enough and not (meant and gives_filled(place)):
                (only,) = kinds
                left_out = only < 0 < classes
                self.find(
                    place,
                    f"all {count} labels of {len(rounds)} steps are {only:g}"
                    + (
                        ", which the loss leaves out: its mean is over nothing"
                        if left_out
                        else f", of {classes} classes"
                    ),
                    "check how labels are read; shuffle the data if they are sorted",
                )

    def _sorted(self, only: float) -> None:
        """Of labels that become others only after many batches."""
        from clew.utils.data import SequentialSampler

        for batch, _, later in self.sources.values():
            if isinstance(getattr(batch.loader, "sampler", None), SequentialSampler):
                self.findings[id(batch.loader)] = made(
                    SORTED,
                    batch.place(self.run),
                    f"the first batches hold labels {only:g} only, later ones "
                    f"{', '.join(f'{kind:g}' for kind in sorted(later - {only})[:4])}"
                    + batch.read(),
                    SHUFFLE,
                )


class OneClassBatches(Rule):
    """Sorted labels without shuffling, where the data set cannot be looked at."""

    mistake = "labels rise through the batches: sorted data that is not shuffled"
    operations = ("_cross_entropy", "_nll_loss", "_binary_cross_entropy_with_logits")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, list[tuple[float, float, int, bool]]] = {}
        self.places: dict[Any, Place | None] = {}
        self.last: Batch | None = None

    def batch(self, batch: Batch) -> None:
        self.last = batch

    def _source(self, labels: Any) -> Place | None:
        """The line that made the loader of these labels."""
        given = self.last.tensors if self.last is not None else []
        mine = any(np.array_equal(values(t).reshape(-1), labels) for t in given)
        return self.last.place(self.run) if self.last is not None and mine else None

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if x.grad_fn is None or y.numel() < MANY or y.dim() > 2:
            return
        v = values(y).reshape(-1)
        rising = bool((np.diff(v) >= 0).all())
        batches = self.seen.setdefault(call.key, [])
        if not batches:
            self.places[call.key] = self._source(v) or call.place
        batches.append((float(v[0]), float(v[-1]), v.size, rising))

    def finish(self) -> None:
        if len(self.seen) != 1:
            return  # several losses: GANs, contrastive terms
        for key, batches in self.seen.items():
            if len(batches) < 4:
                continue
            kinds = {b[0] for b in batches} | {b[1] for b in batches}
            rising = sum(b[3] for b in batches)
            ordered = sum(a[1] <= b[0] for a, b in pairwise(batches))
            if len(kinds) < 2 or rising < len(batches) or ordered < 0.6 * (len(batches) - 1):
                continue
            if len({b[:2] for b in batches}) == 1:
                continue  # one batch again and again: nothing to shuffle
            pure = sum(b[0] == b[1] for b in batches)
            self.find(
                self.places[key],
                f"in all {len(batches)} batches the labels rise from first to last, {pure} of them "
                f"hold one class only, and most begin where the one before ended",
                "shuffle: DataLoader(..., shuffle=True), or draw the indices with randperm()",
            )


class IntegerDivision(Rule):
    mistake = "integer division where a fraction was meant"
    PICKS = ("_index", "index_select", "gather", "select")
    operations = (
        "floor_divide",
        "_div_floor",
        "_div_trunc",
        *("_to_dtype", "add", "sub", "mul", "div"),
        *PICKS,
    )
    few = ("add", "sub", "mul", "div", "select")  # it looks at integers alone

    DROPPED = 0.1  # of a quotient
    LOST = 0.95  # share of the quotients that are 0 although what was divided was not

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Quotients that are nearly all 0: where an index is meant, that may be right.
        self.doubtful: dict[int, tuple[weakref.ref[Tensor], Place | None, str]] = {}

    def _doubt(self, x: Any) -> tuple[Any, Place | None, str] | None:
        doubt = self.doubtful.get(id(x))
        return doubt if doubt is not None and doubt[0]() is x else None

    def _used(self, call: Call) -> None:
        """A quotient that is used as a float was meant as one; picked out, it is still one."""
        if not self.doubtful:
            return
        out = call.outputs[0]
        for x in call.inputs[:1] if call.name in self.PICKS else call.inputs:
            doubt = self._doubt(x)
            if doubt is None:
                continue
            if out.is_floating_point():
                self.find(doubt[1], doubt[2], "divide with /, or convert first: x.float() / n")
            else:
                self.doubtful[id(out)] = (weakref.ref(out), *doubt[1:])

    def operation(self, call: Call) -> None:
        x, *_ = call.inputs
        out = call.outputs[0]
        if "_div" not in call.name:
            self._used(call)
            return
        if out.is_floating_point():
            if x.requires_grad and out.numel():
                self.find(
                    call.place,
                    "floor division of a value that requires grad: its gradient is zero everywhere",
                    "divide with /",
                )
            return
        if x.numel() == 0 or x.dtype.name == "bool":
            return
        v, w = values(x), values(out)
        lost = v.max() > 0 and not w.any()
        fraction = lost and ((x.dim() == 0 and not self._is_period(call)) or self._is_share(call))
        pixels = x.dtype.name == "uint8" and x.numel() > 16 and v.max() > 1 and w.max() <= 1
        doubtful = w.size > 16 and v.max() >= 16 and 0 <= w.min() and w.max() <= 1
        doubtful = doubtful and (w == 0).mean() > self.LOST
        doubtful = (doubtful or not w.any()) and (v != 0).mean() > 0.5
        doubtful = doubtful or self._loses_shares(call)
        if not fraction and not pixels and not doubtful:
            return
        seen = (
            f"integers in {span(v)} become {sorted(set(w.reshape(-1).tolist()))[:3]}: what lies "
            "after the point is dropped"
        )
        if fraction or pixels:  # nothing else can be meant
            self.find(call.place, seen, "divide with /, or convert first: x.float() / n")
        else:
            self.doubtful[id(out)] = (weakref.ref(out), call.place, seen)

    @staticmethod
    def _is_period(call: Call) -> bool:
        """Whether the line divides by a number that it names, as who counts periods does."""
        return call.place is not None and bool(re.search(r"//\s*\d", call.place.text))

    @classmethod
    def _loses_shares(cls, call: Call) -> bool:
        """Whether one number is divided by each of several, as for the weights of classes, and
        much of a quotient is dropped."""
        x, y = call.inputs[0], call.inputs[1] if len(call.inputs) > 1 else None
        if not isinstance(y, Tensor) or x.numel() != 1 or y.numel() < 2 or not values(y).all():
            return False
        exact = values(x).reshape(-1)[0] / values(y)
        dropped = np.abs(exact - values(call.outputs[0]).reshape(exact.shape))
        return bool((dropped > cls.DROPPED * np.abs(exact)).any())

    @staticmethod
    def _is_share(call: Call) -> bool:
        """Whether several numbers are divided by their own sum."""
        x, y = call.inputs[0], call.inputs[1] if len(call.inputs) > 1 else None
        if not isinstance(y, Tensor) or y.numel() != 1 or x.numel() < 2:
            return False
        return bool(values(x).sum() == values(y).reshape(-1)[0])
