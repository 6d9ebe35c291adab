"""Random numbers in the workers of loaders."""

from __future__ import annotations

import ast
import linecache
import random
from collections.abc import Iterator
from operator import eq
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import clew
from clew._insight.debug.doctor.data import prints
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Batch, Pass
from clew._insight.debug.holders import assignment
from clew._insight.debug.place import Place

_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random, clew.Generator)
_CALLED = ("__call__", "forward", "__getitem__", "__getitems__")
_SEEDED = {"seed", "manual_seed", "set_state", "setstate", "get_worker_info"}
_INSIDE = ("dataset", "transform", "transforms")


class WorkersRepeat(Rule):
    mistake = "loader workers give the same random data"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, list[list[int]]] = {}

    def batch(self, batch: Batch) -> None:
        if batch.loader.num_workers < 2:
            return
        if batch.number == 0:
            self._copies(batch)
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

    def _copies(self, batch: Batch) -> None:
        """Of a dataset with a generator of its own, that each worker gets as it is."""
        if batch.loader.worker_init_fn is not None:
            self._seeds(batch)
            return
        for part in _parts(batch.loader):
            for name, value in getattr(part, "__dict__", {}).items():
                if not isinstance(value, _GENERATORS) or not _draws_from(part, name):
                    continue
                self.find(
                    assignment(type(part), name) or batch.place(self.run),
                    f"{batch.loader.num_workers} workers each get a copy of {type(part).__name__}."
                    f"{name}, a {type(value).__name__}, in the state that it has here: all of them "
                    "draw the same numbers, and in each epoch the same again" + batch.read(),
                    "draw with clew, random or numpy.random, which are seeded in every worker, or "
                    "seed it in worker_init_fn from clew.utils.data.get_worker_info().seed",
                    id(batch.loader),
                )

    def _seeds(self, batch: Batch) -> None:
        """Of a worker_init_fn that seeds all workers alike."""
        function = batch.loader.worker_init_fn
        if not isinstance(function, FunctionType):
            return
        tree = _tree(function.__code__)
        for node in ast.walk(tree):
            told = _constant_seed(node, function.__code__)
            if not told:
                continue
            self.find(
                Place(None, function.__code__.co_filename, getattr(node, "lineno", 0)),
                f"{batch.loader.num_workers} workers run {told}: "
                "all of them draw the same numbers, and in each epoch the same again"
                + batch.read(),
                "leave it out, workers are seeded each its own way; or use "
                "clew.utils.data.get_worker_info().seed",
                id(batch.loader),
            )


class SeededBySample(Rule):
    """Of a dataset that seeds with the same number for every sample."""

    mistake = "the same random numbers are drawn in every step"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.current: int | None = None
        # By loader: itself, the file, the line and what stands there; no line where there is none.
        self.lines: dict[int, tuple[Any, str, int, str]] = {}

    def batch(self, batch: Batch) -> None:
        self.current = id(batch.loader)
        if batch.number or self.current in self.lines:
            return
        self.lines[self.current] = (batch.loader, "", 0, "")
        for method in (m for part in _parts(batch.loader) for m in _methods(part)):
            for node in ast.walk(_tree(method.__code__)):
                told = _constant_seed(node, method.__code__)
                if told:
                    line = getattr(node, "lineno", 0)
                    at = (batch.loader, method.__code__.co_filename, line, told)
                    self.lines[self.current] = at

    def backward(self, pass_: Pass) -> None:
        _, file, line, told = self.lines.get(self.current or 0, (None, "", 0, ""))
        if line:
            self.find(
                Place(None, file, line),
                f"{told} runs for every sample that is made: line {line} starts the generator "
                "again, so that each sample gets the same numbers, in every epoch",
                "leave it out and seed once, at the beginning; or add the sample's index to the "
                "seed",
            )


def _constant_seed(node: ast.AST, code: CodeType) -> str:
    """A call that seeds with a number that is the same each time; empty for anything else."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return ""
    called = ast.unparse(node.func)
    if not called.endswith(("random.seed", "torch.manual_seed", "clew.manual_seed")):
        return ""
    given = list(ast.walk(node.args[0]))
    if any(isinstance(n, (ast.Call, ast.Subscript, ast.Attribute)) for n in given):
        return ""
    if {n.id for n in given if isinstance(n, ast.Name)} & set(code.co_varnames):
        return ""
    return f"{called}({ast.unparse(node.args[0])})"


def _parts(loader: Any) -> list[Any]:
    """A loader's dataset, and the datasets and transforms inside it."""
    parts = [loader.dataset]
    for part in parts:
        for name in _INSIDE:
            inner = getattr(part, name, None)
            parts += inner if isinstance(inner, (list, tuple)) else [inner]
        del parts[64:]
    return [part for part in parts if part is not None]


def _draws_from(part: Any, attribute: str) -> bool:
    """Whether an attribute of self is read by the method that makes a sample, or by a method that
    this one calls."""
    if any(_SEEDED & set(method.__code__.co_names) for method in _methods(part)):
        return False  # by sample, or by worker
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.value, ast.Name)
        and node.value.id == method.__code__.co_varnames[0]
        for method in _methods(part)
        for node in ast.walk(_tree(method.__code__))
    )


def _methods(part: Any) -> Iterator[FunctionType]:
    names = list(_CALLED)
    for name in names:
        method = getattr(type(part), name, None)
        if isinstance(method, FunctionType) and method.__code__.co_varnames:
            yield method
            names += [n for n in method.__code__.co_names if n not in names]


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
    """The user's functions that workers run: worker_init_fn, collate_fn, the methods by which the
    dataset and the datasets inside it make samples, and the functions that these call."""
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
