"""Data: scale, order, repetition, overlap, dtype, and how long it takes."""

from __future__ import annotations

import ast
import linecache
import time
from operator import eq
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._insight.debug.doctor.nodes import span
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Batch, Call, Pass
from clew._insight.debug.place import Place

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
        mean, std = float(v.mean()), float(v.std())
        size = (mean * mean + std * std) ** 0.5
        if not size > self.LARGE:
            return
        self.find(
            call.place,
            f"the input lies in {span(v)}, with mean {mean:.4g} and standard deviation {std:.4g}; "
            "weights start for inputs around 0 with deviation 1",
            "subtract the mean and divide by the deviation of the training data "
            "(images: x / 255 first)",
        )


class WorkersRepeat(Rule):
    mistake = "loader workers give the same random data"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, list[list[int]]] = {}

    def batch(self, batch: Batch) -> None:
        if batch.loader.num_workers < 2:
            return
        if batch.number == 0:
            self.seen[id(batch.loader)] = []
        known = self.seen.setdefault(id(batch.loader), [])
        found = prints(batch)
        # Workers that draw the same make the same samples in the same order.
        again, number = max(
            ((sum(map(eq, found, before)), i) for i, before in enumerate(known)), default=(0, 0)
        )
        known.append(found)
        if found and again >= max(1, len(found) // 2):
            self.find(
                batch.place(self.run),
                f"{again} of {len(found)} samples of batch {batch.number} are those of batch "
                f"{number}, bit by bit: {batch.loader.num_workers} workers draw the same numbers"
                + batch.read(),
                "draw with clew or with a generator seeded from "
                "clew.utils.data.get_worker_info().seed, or seed in worker_init_fn",
                id(batch.loader),
            )


class WorkersUnseeded(Rule):
    """Of a program that was seeded: one that was not may well want other numbers in each run."""

    mistake = "loader workers draw from a source that no seed reaches"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.others: set[str] = set()  # modules whose generators were seeded, apart from clew

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "seeded":
            self.others.add(subject)

    def batch(self, batch: Batch) -> None:
        loader = batch.loader
        if batch.number or not loader.num_workers:
            return
        if clew.initial_seed() >= 1 << 32:  # one of 64 bits: manual_seed() was not called
            if self.others and loader.generator is None:
                self._half_seeded(batch)
            return
        for function in _run_by_workers(loader):
            for line, what in unseeded(function.__code__):
                self.find(
                    Place(None, function.__code__.co_filename, line),
                    f"{loader.num_workers} workers run {function.__qualname__}, which calls "
                    f"{what}: other numbers in each run, though the program's seed is "
                    f"{clew.initial_seed()}",
                    "seed it from clew.utils.data.get_worker_info().seed, or draw with "
                    "clew, random or numpy.random, which are seeded in every worker",
                )

    def _half_seeded(self, batch: Batch) -> None:
        for function in _run_by_workers(batch.loader):
            for line, what in drawing(function.__code__):
                kind = "random" if what.startswith("random.") else "numpy.random"
                if kind not in self.others:
                    continue
                self.find(
                    Place(None, function.__code__.co_filename, line),
                    f"{batch.loader.num_workers} workers run {function.__qualname__}, which calls "
                    f"{what}; {kind}.seed() was called, but workers are seeded by clew's "
                    "generator, which was not: other numbers in each run",
                    "call torch.manual_seed(...) too, or give the loader a seeded generator",
                    id(batch.loader),
                )


def _run_by_workers(loader: Any) -> list[FunctionType]:
    """The user's functions: what the loader calls, of its dataset and those in it the methods that
    make samples, and those that they call."""
    found: list[Any] = [loader.worker_init_fn, loader.collate_fn]
    datasets = [loader.dataset]
    for dataset in datasets:
        datasets += [getattr(dataset, "dataset", None), *getattr(dataset, "datasets", ())]
        datasets[:] = [d for d in datasets if d is not None]
        if len(datasets) > 64:
            break
        names = ["__getitem__", "__getitems__", "__iter__", "__next__"]
        for name in names:
            method = getattr(type(dataset), name, None)
            if isinstance(method, FunctionType) and method not in found:
                found.append(method)
                names += method.__code__.co_names
        found.append(getattr(dataset, "transform", None))
    return [f for f in found if isinstance(f, FunctionType) and not f.__module__.startswith("clew")]


# Calls that draw from the system's entropy: those always, these when nothing is given to them.
_ENTROPY = {"urandom", "SystemRandom", "token_bytes", "randbits"}
_ENTROPY_ALONE = {"default_rng", "RandomState", "SeedSequence", "Random", "PCG64", "MT19937"}
# Calls that seed a global generator, and what gives them another seed in each run.
_SEEDS = ("random.seed", "torch.seed", "clew.seed")
_CLOCKS = {"time", "time_ns", "perf_counter", "getpid"}
_GLOBAL = ("random.", "np.random.", "numpy.random.")


def unseeded(code: CodeType) -> list[tuple[int, str]]:
    """The lines of a function that draw from the system's entropy, and what they call."""
    found = []
    for node in ast.walk(_tree(code)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        given = [a for a in node.args if not (isinstance(a, ast.Constant) and a.value is None)]
        alone = not given and not node.keywords
        text = ast.unparse(called)
        reseeds = text.endswith(_SEEDS) and (alone or bool(_CLOCKS & _names(node)))
        if name in _ENTROPY or (name in _ENTROPY_ALONE and alone) or reseeds:
            found.append((node.lineno, f"{text}()"))
    return found


def drawing(code: CodeType) -> list[tuple[int, str]]:
    """The lines of a function that draw from Python's or NumPy's generator, and what they call."""
    return [
        (node.lineno, f"{text}()")
        for node in ast.walk(_tree(code))
        if isinstance(node, ast.Call)
        and (text := ast.unparse(node.func)).startswith(_GLOBAL)
        and "(" not in text
        and not text.endswith((*_SEEDS, *_ENTROPY_ALONE))
    ]


def _names(node: ast.AST) -> set[str]:
    return {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def _tree(code: CodeType) -> ast.AST:
    """A function's syntax tree, with the lines of its file; an empty one where it is unknown."""
    try:
        whole = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:  # lines of a notebook, or another language
        whole = ast.Module([], [])
    found: list[Any] = []  # of lambdas there may be several in a line
    for node in ast.walk(whole):
        if isinstance(node, ast.Lambda):
            name, first = "<lambda>", node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name, first = node.name, min(d.lineno for d in [node, *node.decorator_list])
        else:
            continue
        if (name, first) == (code.co_name, code.co_firstlineno):
            found.append(node)
    return ast.Module(found, [])


class Overlap(Rule):
    mistake = "training and test data overlap"

    SHARE = 0.02

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.samples: dict[int, set[int]] = {}
        self.loaders: dict[int, Any] = {}
        self.places: dict[int, Any] = {}
        # By loader, the optimizers that stepped after its batches: those are trained with it. And
        # those that had stepped last when it was read: what they train is evaluated with it. In
        # cross-validation each part of the data is in both, for another model.
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
                common = len(one & two)
                same = self.loaders[train].dataset is self.loaders[test].dataset
                few = all(self._repeats(key) and key in self.coarse for key in (train, test))
                if same or few or common < 2 or common < self.SHARE * len(two):
                    continue
                self.find(
                    self.places[test].place(self.run),
                    f"{common} of {len(two)} samples looked at that are evaluated on were trained "
                    "on, too" + self.places[test].read(),
                    "split once, by index, before making the two datasets (random_split)",
                    (train, test),
                )


class SlowLoader(Rule):
    mistake = "the model waits for the data"

    LONG = 0.01  # seconds a batch
    TIMES = 3.0  # what the rest of a round takes

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
            wait, work = waits[len(waits) // 2], works[len(works) // 2]
            if wait > self.LONG and wait > self.TIMES * work:
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
        if out.dtype.name != "float64" or not out.requires_grad:
            return
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

    mistake = "the data is sorted by label and not shuffled"

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

    def backward(self, pass_: Pass) -> None:
        if self.current in self.sorted:
            _, place, seen = self.sorted[self.current]
            self.find(place, seen, "shuffle: DataLoader(..., shuffle=True)", self.current)
