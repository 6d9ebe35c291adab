"""Data: scale, order, repetition, overlap, dtype, and how long it takes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.nodes import span
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Batch, Call, Pass
from clew._insight.debug.place import Place, called_from_outside, placed

SORTED = "the data is sorted by label and not shuffled"
SHUFFLE = "shuffle: DataLoader(..., shuffle=True)"
_BYTES = 2048  # of a sample that tell it from others
_SAMPLES = 8192  # that are remembered of each loader
_ROWS, _COLUMNS = 4, 32  # of a batch that tell whether its numbers are few


def samples(batch: Batch) -> Any:
    """The values of a batch's largest floating-point tensor; empty where it has none."""
    tensors = [t for t in batch.tensors if t.dim() >= 1 and t.is_floating_point()]
    if not tensors:
        tensors = [t for t in batch.tensors if t.dim() >= 2]
    return values(max(tensors, key=lambda t: t.numel())) if tensors else np.empty(0)


def is_coarse(batch: Batch) -> bool:
    """Whether a batch's samples, where they differ, are still made of the same few numbers."""
    v = samples(batch)
    if v.size == 0 or len(v) < _ROWS:
        return False
    rows = v.reshape(len(v), -1)[:, :_COLUMNS]
    different = len(np.unique(rows, axis=0))
    of_a_column = np.mean([len(np.unique(column)) for column in rows.T])
    return bool(of_a_column < 0.5 * different)


def prints(batch: Batch) -> list[int]:
    """A number for each sample of a batch, of its largest floating-point tensor."""
    v = samples(batch)
    if v.size == 0:
        return []
    found = []
    for row in v:
        raw = np.ascontiguousarray(row).reshape(-1)
        if raw.size < 2 or (raw == raw[0]).all():
            return []
        step = max(1, raw.nbytes // _BYTES)
        found.append(hash(raw[::step].tobytes()))
    return found


class NotNormalised(Rule):
    mistake = "the inputs are not normalised"
    operations = few = (
        "nn.functional.linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "addmm",
        "matmul",
        "_recurrent",
    )

    LARGE = 30.0

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.judged: dict[Any, int] = {}

    def operation(self, call: Call) -> None:
        x = call.inputs[1] if call.name == "addmm" else call.inputs[0]
        if not call.outputs[0].requires_grad or x.requires_grad or not x.is_floating_point():
            return
        if self.judged.get(call.key, 0) >= 2 or x.numel() < 8:
            return
        self.judged[call.key] = self.judged.get(call.key, 0) + 1
        from clew import _C

        cut = _C._cut_of(x)
        if cut is not None and cut[0] != "made":
            return  # a value of the model, not data
        v = values(x)
        if self._is_divided_twice(v):
            self.find(
                called_from_outside() or call.place,
                f"the input lies in {span(v)}, and all its values are whole multiples of "
                "1 / 255 / 255: pixels that were divided by 255 twice",
                "divide once: ToTensor() does it already",
            )
            return
        mean, std = float(v.mean()), float(v.std())
        size = (mean * mean + std * std) ** 0.5
        if not size > self.LARGE:
            return
        first, given = call.place, called_from_outside()
        apart = given is not None and first is not None and given.line != first.line
        self.find(
            given or first,
            f"the input{f' of the first layer, at {first.short},' if apart and first else ''} lies "
            f"in {span(v)}, with mean {mean:.4g} and standard deviation {std:.4g}; weights "
            "start for inputs around 0 with deviation 1",
            "subtract the mean and divide by the deviation of the training data "
            "(images: x / 255 first)",
        )

    @staticmethod
    def _is_divided_twice(v: Any) -> bool:
        first = v.reshape(-1)[:_BYTES]
        if not 0 < first.max() <= 1.001 / 255 or first.min() < 0:
            return False
        levels = first.astype(np.float64) * 255 * 255
        many = len(np.unique(np.round(levels))) > _ROWS
        return many and bool(np.abs(levels - np.round(levels)).max() < 0.01)


class Overlap(Rule):
    mistake = "training and test data overlap"

    SHARE = 0.02

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.samples: dict[int, set[int]] = {}
        self.loaders: dict[int, Any] = {}
        self.places: dict[int, Any] = {}
        # By loader: `trains` has the optimizers that stepped after its batches; `judges` those that
        # had stepped last when it was read, so that it evaluates what they train. In
        # cross-validation each part of the data is in both, for different models.
        self.trains: dict[int, set[int]] = {}
        self.judges: dict[int, set[int]] = {}
        self.steps: dict[int, int] = {}
        self.passes: dict[int, int] = {}
        self.shown: dict[int, tuple[int, int]] = {}  # in the first pass: samples, different ones
        self.coarse: set[int] = set()  # loaders of samples that are made of few different numbers
        self.last: set[int] = set()
        self.current: int | None = None

    def batch(self, batch: Batch) -> None:
        self._note_steps()
        key = self.current = id(batch.loader)
        self.loaders[key] = batch.loader
        self.places.setdefault(key, batch)
        self.judges.setdefault(key, set()).update(self.last)
        known = self.samples.setdefault(key, set())
        if batch.number == 0:
            self.passes[key] = self.passes.get(key, 0) + 1
            if is_coarse(batch):
                self.coarse.add(key)
        if len(known) < _SAMPLES:
            found = prints(batch)
            known.update(found)
            if self.passes.get(key) == 1:
                self.shown[key] = (self.shown.get(key, (0, 0))[0] + len(found), len(known))

    def _repeats(self, key: int) -> bool:
        """Whether samples come several times in one pass. Where they are made of few numbers, there
        are not many different ones, and that two sets have the same is no sign of a wrong split."""
        shown, different = self.shown.get(key, (0, 0))
        return different < 0.99 * shown

    def _note_steps(self) -> None:
        now = {key: watched.steps for key, watched in self.run.optimizers.items()}
        stepped = {key for key, steps in now.items() if steps > self.steps.get(key, 0)}
        self.steps = now
        if stepped:
            self._trained(stepped)

    def _trained(self, optimizers: set[int]) -> None:
        self.last = optimizers
        if self.current is not None:
            self.trains.setdefault(self.current, set()).update(optimizers)

    def backward(self, pass_: Pass) -> None:
        if not self.run.optimizers:  # parameters are changed by hand
            self._trained({0})

    def finish(self) -> None:
        self._note_steps()
        for test in self.samples.keys() - self.trains.keys():
            for train, optimizers in self.trains.items():
                if not optimizers & self.judges[test]:
                    continue
                one, two = self.samples.get(train, set()), self.samples[test]
                if not one or not two:
                    continue
                common = one & two
                same = self.loaders[train].dataset is self.loaders[test].dataset
                if same:
                    self._by_samplers(train, test)
                if common == two and self._has_another_test(train, test):
                    continue  # how well it does on what it has seen is asked on purpose
                few = all(self._repeats(key) and key in self.coarse for key in (train, test))
                if same or few or len(common) < max(2, self.SHARE * len(two)):
                    continue
                self.find(
                    self._chosen(train, test) or self.places[test].place(self.run),
                    f"{len(common)} of {len(two)} samples looked at that are evaluated on were "
                    "trained on, too" + self.places[test].read(),
                    "split once, by index, before making the two datasets (random_split)",
                    # Several loaders may be made for the same data, one after the other.
                    frozenset(common),
                )

    def _has_another_test(self, train: int, test: int) -> bool:
        """Whether what is trained here is evaluated on other samples, too."""
        return any(
            other != test
            and self.judges[other] & self.judges[test]
            and self.samples[other]
            and not self.samples[other] & self.samples[train]
            for other in self.samples.keys() - self.trains.keys()
        )

    def _by_samplers(self, train: int, test: int) -> None:
        """Of two loaders over one dataset, whose samplers draw from parts of it."""
        samplers = [getattr(self.loaders[key], "sampler", None) for key in (train, test)]
        given = [list(getattr(sampler, "indices", None) or ()) for sampler in samplers]
        one, two = (set(map(int, part)) for part in given)
        common = len(one & two)
        # All of it may be evaluated on, or a part of what was trained on.
        if not common or two <= one or one <= two:
            return
        self.find(
            self.places[test].place(self.run),
            f"{common} of {len(two)} indices that are evaluated on were trained on, too"
            + self.places[test].read(),
            "give the two samplers parts without a common index",
            (train, test),
        )

    def _chosen(self, train: int, test: int) -> Place | None:
        """Where the part that is evaluated on was chosen, if by itself and not by one split."""
        whole = [self.loaders[key].dataset for key in (train, test)]
        one, two = (self.run.made.get(id(each), (None, None))[1] for each in whole)
        return placed(two) if two is not None and two != one else None


class SlowLoader(Rule):
    mistake = "the model waits for the data"

    # Seconds a batch, and how many times what the rest of a round takes.
    LONG = ((0.01, 3.0), (0.003, 10.0))

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.waits: dict[int, list[float]] = {}
        self.works: dict[int, list[float]] = {}
        self.places: dict[int, Any] = {}
        self.loaders: dict[int, Any] = {}
        self.last: tuple[int, float] | None = None
        self.trained: set[int] = set()

    def batch(self, batch: Batch) -> None:
        now = time.perf_counter()
        key = id(batch.loader)
        if batch.number > 0:
            self.waits.setdefault(key, []).append(batch.waited)
            if self.last is not None and self.last[0] == key:
                self.works.setdefault(key, []).append(now - batch.waited - self.last[1])
        self.loaders[key] = batch.loader
        self.places.setdefault(key, batch)
        self.last = (key, now)

    def backward(self, pass_: Pass) -> None:
        if self.last is not None:
            self.trained.add(self.last[0])

    def finish(self) -> None:
        for key in self.trained:
            waits, works = sorted(self.waits.get(key, [])), sorted(self.works.get(key, []))
            if len(waits) < 6 or len(works) < 6:
                continue
            # The lower quartiles: what else the machine does adds to some of the times.
            wait, work = waits[len(waits) // 4], works[len(works) // 4]
            if any(wait > long and wait > times * work for long, times in self.LONG):
                workers = self.loaders[key].num_workers
                self.find(
                    self.places[key].place(self.run),
                    f"a batch takes {wait * 1e3:.1f} ms to come, the rest of a round "
                    f"{work * 1e3:.1f} ms; num_workers={workers}" + self.places[key].read(),
                    "raise num_workers, do once what is done for each sample each time, or keep "
                    "the data in one tensor",
                    key,
                )


class DoublePrecision(Rule):
    mistake = "float64 creeps in"
    operations = few = ("sub", "mul", "add", "div", "_distance", "_mse_loss")

    def operation(self, call: Call) -> None:
        out = call.outputs[0]
        if out.dtype.name != "float64" or not out.requires_grad or out.numel() == 1:
            return  # a single number costs nothing
        both = [t for t in call.inputs[:2] if isinstance(t, Tensor)]
        if len(both) < 2 or {t.dtype.name for t in both} != {"float32", "float64"}:
            return
        narrow, wide = sorted(both, key=lambda t: t.dtype.name)
        if wide.dim() == 0 and narrow.dim() > 0:
            return
        if wide.grad_fn is not None and self.findings:
            return  # it follows from what was told
        self.find(
            call.place,
            f"float32 of shape {tuple(narrow.shape)} meets float64 of shape {tuple(wide.shape)}; "
            "the result, and all after it, is float64: twice the memory, half the speed",
            "convert the data once: x.float(), or from_numpy(a.astype('float32'))",
        )


class SortedDataset(Rule):
    """Of a dataset that is in memory and read in its own order."""

    mistake = SORTED

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.sorted: dict[int, tuple[Any, Any, str]] = {}  # loader, place, what was seen
        self.current: int | None = None

    def batch(self, batch: Batch) -> None:
        self.current = id(batch.loader)
        if batch.number or self.current in self.sorted:
            return
        from clew.utils.data import SequentialSampler, TensorDataset

        loader = batch.loader
        if not isinstance(getattr(loader, "sampler", None), SequentialSampler):
            return
        data = loader.dataset
        labels = data.tensors[-1] if isinstance(data, TensorDataset) else None
        if labels is None:
            labels = getattr(data, "targets", getattr(data, "labels", None))
        if labels is None:
            labels = self._paired(data, batch)
        found = np.asarray(values(labels) if isinstance(labels, Tensor) else labels)
        if found.ndim != 1 or found.size < 16 or found.dtype.kind not in "iu":
            return
        kinds = len(np.unique(found))
        if 2 <= kinds <= found.size // 4 and bool((np.diff(found.astype(np.int64)) >= 0).all()):
            seen = (
                f"the {found.size} labels of {type(data).__name__} rise from {found[0]} to "
                f"{found[-1]}, {kinds} classes, and are read in this order"
            )
            self.sorted[self.current] = (loader, batch.place(self.run), seen + batch.read())

    @staticmethod
    def _paired(data: Any, batch: Batch) -> Any:
        """The labels of a list of pairs, as long as the dataset, if the batch holds its first."""
        given = [values(t).tolist() for t in batch.tensors if t.dim() == 1]
        for pairs in getattr(data, "__dict__", {}).values():
            if not isinstance(pairs, list) or len(pairs) < 16 or len(pairs) != len(data):
                continue
            if not all(isinstance(p, tuple) and p for p in pairs):
                continue
            for labels in ([p[-1] for p in pairs], [p[0] for p in pairs]):
                if all(isinstance(label, int) for label in labels):
                    if any(labels[: len(g)] == g for g in given):
                        return labels
        return None

    def backward(self, pass_: Pass) -> None:
        if self.current in self.sorted:
            _, place, seen = self.sorted[self.current]
            self.find(place, seen, SHUFFLE, self.current)
