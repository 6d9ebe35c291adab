"""compare: where two runs that should be equal first differ."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._insight.debug.observing import Observation
from clew._insight.debug.place import Place, placed
from clew._ops.kinds import kinds
from clew._tensor.html import as_printed
from clew._tensor.structured import parts_of

__all__ = ["Difference", "RecordedRun", "compare", "record_run"]

LIMIT = 1 << 30  # bytes of values that a run may keep
ROUNDING = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-9}


# What an optimizer gets and gives, beside operations; aligned by number, whatever the line.
STEP, GRADIENT = "step()", "the gradient"


class Value(NamedTuple):
    """What one operation gave: its name, place, module, which call of it, the elements (None where
    they were written over before they could be read), and what went in that no operation of the run
    had made."""

    operation: str
    place: Place | None
    module: str | None
    occurrence: int
    array: Any
    dtype: str
    given: tuple[tuple[int, str, Any, str], ...] = ()  # number, what it is, elements, dtype

    @property
    def line(self) -> Any:
        if self.operation in (STEP, GRADIENT) or self.place is None:
            return None
        return self.place.file, self.place.line

    @property
    def key(self) -> Any:
        """Equal for calls that are compared."""
        return self.operation, self.line, self.module, self.occurrence


class _Waiting(NamedTuple):
    """A result of a compiled function: to read it at once would keep it from being compiled."""

    tensor: Tensor
    version: int


class RecordedRun:
    """The values of a run in order of their making; `record_run` makes it.

    Attributes:
        values: one entry for each tensor that an operation gave.
        outputs: what each module gave, by its path and the number of the call.

    Example:
        >>> net = clew.nn.Linear(2, 1)
        >>> run = clew.debug.record_run(lambda: net(clew.ones(1, 2)))
        >>> isinstance(run, clew.debug.RecordedRun), len(run.values) > 0
        (True, True)
    """

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.outputs: dict[tuple[str, int], tuple[Any, str]] = {}
        self._counts: dict[Any, int] = {}
        self._bytes = 0
        self._steps: dict[tuple[str, int], dict[str, Any]] = {}  # an optimizer's settings, by step
        self._made: dict[int, weakref.ref[Tensor]] = {}
        self._copies: dict[int, tuple[Tensor, int, Any]] = {}
        self._lines: dict[tuple[int, int], tuple[Any, str, int]] = {}

    def _note(self, name: str, given: list[Any], got: list[Any]) -> None:
        where = _C._here()
        least = _least_deferred()
        written = {id(t) for t in got}  # in place: it is what the operation made of it
        inputs = tuple(
            self._given(i, t, least)
            for i, t in enumerate(given)
            if id(t) not in written and self._is_new(t)
        )
        for t in got:
            if not isinstance(t, Tensor) or not (t.is_floating_point() or t.is_complex()):
                continue
            self._made[id(t)] = weakref.ref(t)
            place = placed(where)
            module = _own_path(where[2]) if where else None
            # By line: there may be several calls in one.
            key = (name, self._line(where, place), module)
            number = self._counts[key] = self._counts.get(key, -1) + 1
            kept = self._kept(t, least)
            self.values.append(Value(name, place, module, number, kept, t.dtype.name, inputs))

    def _line(self, where: Any, place: Place | None) -> Any:
        if place is None:
            return None
        key = id(where[0]), where[1]
        if key not in self._lines:
            self._lines[key] = (where[0], place.file, place.line)  # the code keeps its number
        return self._lines[key][1:]

    def _is_new(self, t: Any) -> bool:
        """Whether a tensor is none that an operation of the run made."""
        if not isinstance(t, Tensor) or t.is_sparse:
            return False
        made = self._made.get(id(t))
        return made is None or made() is not t

    def _given(self, number: int, t: Tensor, least: int | None) -> tuple[int, str, Any, str]:
        known = self._copies.get(id(t))
        if known is None or known[0] is not t or known[1] != t._version:
            known = self._copies[id(t)] = (t, t._version, self._kept(t, least))
        return number, _told(number, t), known[2], t.dtype.name

    def _kept(self, t: Tensor, least: int | None) -> Any:
        if least is not None and t.numel() >= least:
            self._count(t.nbytes)
            return _Waiting(t, t._version)
        array = np.array(_array(t))
        self._count(array.nbytes)
        return array

    def _note_gradients(self, optimizer: Any) -> None:
        """What an optimizer is about to use, with the line that wrote it: backward, or clipping."""
        for name, p in _trained(optimizer):
            grad = p.grad
            if grad is not None and not grad.is_sparse:
                place = placed(_C._place_of_write(grad))
                self._append(GRADIENT, place, name, grad)

    def _note_step(self, optimizer: Any) -> None:
        """What an optimizer has made of its parameters, and its settings."""
        place = placed(_C._here())
        for group in optimizer.param_groups:
            settings: dict[str, Any] = {
                k: v for k, v in group.items() if isinstance(v, (bool, int, float, tuple))
            }
            settings["kind"] = type(optimizer).__name__
            inside = {id(p) for p in group["params"]}
            for name, p in _trained(optimizer):
                if id(p) in inside and p.grad is not None:
                    number = self._append(STEP, place, name, p)
                    self._steps[name, number] = settings

    def _append(self, what: str, place: Place | None, name: str, t: Tensor) -> int:
        number = self._counts[what, name] = self._counts.get((what, name), -1) + 1
        self.values.append(Value(what, place, name, number, self._kept(t, None), t.dtype.name))
        return number

    def _count(self, nbytes: int) -> None:
        self._bytes += nbytes
        if self._bytes > LIMIT:
            raise RuntimeError(
                f"compare: the run made more than {LIMIT >> 20} MB of values; compare one step"
            )

    def _finish(self) -> None:
        """Reads what waited."""
        self._made.clear()
        self._copies.clear()

        def read(kept: Any) -> Any:
            if not isinstance(kept, _Waiting):
                return kept
            same = kept.tensor._version == kept.version
            return np.array(_array(kept.tensor)) if same else None

        self.values = [
            v._replace(
                array=read(v.array), given=tuple((i, n, read(a), d) for i, n, a, d in v.given)
            )
            for v in self.values
        ]
        outputs = {key: (read(kept), dtype) for key, (kept, dtype) in self.outputs.items()}
        self.outputs = {key: value for key, value in outputs.items() if value[0] is not None}

    def _note_output(self, path: str, output: Any) -> None:
        number = self._counts[path] = self._counts.get(path, -1) + 1
        if isinstance(output, (tuple, list)):
            output = output[0] if output else None
        (output,) = parts_of((output,))  # of sparse and ragged ones, the values
        if isinstance(output, Tensor) and output.is_floating_point():
            kept = self._kept(output, _least_deferred())
            self.outputs[path, number] = (kept, output.dtype.name)


def _trained(optimizer: Any) -> list[tuple[str, Tensor]]:
    """An optimizer's parameters by name, or by number where they have none."""
    found: dict[str, Tensor] = {}
    for i, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        known = _provenance.parameter_name(p)
        name = (_own_path(known[0]) if known else None) or f"parameter {i}"
        found[f"{name} (parameter {i})" if name in found else name] = p
    return list(found.items())


def _least_deferred() -> int | None:
    """The number of elements from which operations wait here; none outside of what is compiled."""
    least: int | None = _C._defer(None)
    if least is not None:
        _C._defer(least)
    return least


def _own_path(path: str | None) -> str | None:
    """A module's path, without the wrapper that compile() makes."""
    if path is None or "_orig_mod" not in path:
        return path
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


def _told(number: int, t: Tensor) -> str:
    """An input in words: its number, and a parameter's name or where it was made."""
    found = _provenance.parameter_name(t)
    if found:
        return f"input {number} ({_own_path(found[0])})"
    cut = _C._cut_of(t)
    at = placed(cut[2]) if cut is not None and cut[2] is not None else None
    return f"input {number}" + (f" (made at {at.short})" if at else "")


def _array(t: Tensor) -> Any:
    from clew._tensor.text import widen

    return widen(t._array_view(), t.dtype.name == "bfloat16")


def record_run(function: Callable[[], Any]) -> RecordedRun:
    """Runs a function and keeps what every operation in it gives.

    Args:
        function: takes nothing; computes one step, say.

    >>> run = clew.debug.record_run(lambda: clew.ones(2) * 3)
    >>> [value.operation for value in run.values]
    ['mul']
    """
    from clew.nn.modules import _global
    from clew.optim import optimizer as optim

    run = RecordedRun()
    # Whatever module is called gives its output under its path, "" for the outermost.
    hook = _global.register_module_forward_hook(
        lambda module, args, output: run._note_output(_path(), output)
    )
    hooks = [
        hook,
        optim.register_optimizer_step_pre_hook(lambda o, *_: run._note_gradients(o)),
        optim.register_optimizer_step_post_hook(lambda o, *_: run._note_step(o)),
    ]
    observation = Observation(run._note, kinds())
    try:
        function()
    finally:
        observation.close()
        for each in hooks:
            each.remove()
    run._finish()
    return run


def _path() -> str:
    here = _C._here()
    return "" if here is None else _own_path(here[2]) or ""


class Difference(NamedTuple):
    """The first value that differs.

    Args:
        operation: that made it, or the module's path.
        place: the line.
        module: the module in progress.
        evidence: by how much, and where.
        a: the element of the first run that differs most.
        b: that of the second.
    """

    operation: str
    place: str
    module: str | None
    evidence: str
    a: Any
    b: Any

    def __str__(self) -> str:
        at = f"\n  at {self.place}" if self.place else ""
        return f"{self.operation} is the first that differs{at}\n  {self.evidence}"

    def _repr_html_(self) -> str:
        return as_printed(self)


def compare(run_a: Any, run_b: Any, *, rtol: float | None = None) -> Difference | None:
    """Finds the first value that differs between two runs by more than rounding.

    Runs are aligned by line and module; by operation and module where no line is in both, as of two
    versions of a program; by module where one of them is not clew's: values that another program
    dumped. What is compiled stays so: its values are read when the run is over.

    Args:
        run_a: a function to run, a RecordedRun, or a mapping (or the path of an .npz file) from
            modules' paths to arrays of what they gave, such as PyTorch's; a list of arrays of a
            module that ran several times, or one of them.
        run_b: another.
        rtol: the greatest difference, relative to the largest element, that counts as rounding;
            by default what the dtype leads one to expect.

    Returns: the first difference, or None.

    >>> def step(scale):
    ...     x = clew.arange(4.0)
    ...     return (x * scale).exp().sum()
    >>> found = clew.debug.compare(lambda: step(1.0), lambda: step(1.1))
    >>> found.operation, found.a, found.b
    ('mul', 3.0, 3.3...)
    >>> clew.debug.compare(lambda: step(1.0), lambda: step(1.0)) is None
    True
    """
    a, b = _run(run_a), _run(run_b)
    if isinstance(a, RecordedRun) and isinstance(b, RecordedRun):
        return _by_line(a, b, rtol)
    return _by_module(a, b, rtol)


def _run(run: Any) -> Any:
    if isinstance(run, (str, os.PathLike)):
        with np.load(run, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    if isinstance(run, (RecordedRun, Mapping)):
        return run
    if callable(run):
        return record_run(run)
    raise TypeError(
        "compare: expected a function, a RecordedRun, a mapping of arrays or the path of an .npz "
        f"file; got {type(run).__name__}"
    )


def _outputs(run: Any) -> dict[str, list[tuple[Any, str]]]:
    """What each module gave, call after call, by its path."""
    found: dict[str, list[tuple[Any, str]]] = {}
    if isinstance(run, RecordedRun):
        for (path, _), value in run.outputs.items():
            found.setdefault(path, []).append(value)
        return found
    for name, value in run.items():
        calls = value if isinstance(value, (list, tuple)) else [value]
        arrays = [_array(each) if isinstance(each, Tensor) else np.asarray(each) for each in calls]
        found[_own_path(name) or ""] = [(array, array.dtype.name) for array in arrays]
    return found


def _place_of(runs: tuple[Any, ...], path: str) -> str:
    """The line of the last operation in a module, of the run that has lines."""
    for run in runs:
        if isinstance(run, RecordedRun):
            for v in reversed(run.values):
                if v.module == path and v.place is not None:
                    return v.place.text
    return ""


def _by_line(a: RecordedRun, b: RecordedRun, rtol: float | None) -> Difference | None:
    values, others = a.values, b.values
    if not _lines(values) & _lines(others):
        # Other lines, as of another version of the program: by operation and module.
        values, others = _without_lines(values), _without_lines(others)
    known = {v.key: v for v in others}
    coarse = "float64"  # of two dtypes that met, the one that rounds more: what follows has it, too
    for v in values:
        other = known.get(v.key)
        if other is None or v.array is None or other.array is None:
            continue
        if v.dtype != other.dtype:
            coarse = min_precise(coarse, min_precise(v.dtype, other.dtype))
        dtype = min_precise(coarse, min_precise(v.dtype, other.dtype))
        told = _differ(v.array, other.array, dtype, rtol)
        if told is None:
            continue
        text, first, second = told
        if v.operation in (STEP, GRADIENT):
            return _of_an_optimizer(a, b, v, other, told)
        place = v.place.text if v.place else ""
        text += _already(v, other, rtol) + _alone_before(values, others, v, other)
        return Difference(v.operation, place, v.module, text, first, second)
    return _first_alone(values, others)


def _lines(values: list[Value]) -> set[Any]:
    """What operations are aligned by."""
    return {v.key for v in values if v.operation not in (STEP, GRADIENT)}


def _of_an_optimizer(
    a: RecordedRun, b: RecordedRun, v: Value, other: Value, told: tuple[str, Any, Any]
) -> Difference:
    """A gradient that differs where all that was computed forward is equal, or what a step made of
    equal gradients."""
    text, first, second = told
    number = f"; it is the optimizer's step {v.occurrence + 1}"
    name = v.module or ""
    place = v.place
    if v.operation == GRADIENT:
        what = f"the gradient of {name}"
        if (v.place is None) != (other.place is None):  # what backward wrote has no line
            place = other.place or v.place
            which = "second" if other.place is not None else "first"
            number += f"; the {which} run alone writes it between backward() and step()"
        elif place is None:
            steps = (w.place for w in a.values if w.key == (STEP, None, name, v.occurrence))
            place = next(steps, None)
    else:
        one = a._steps.get((name, v.occurrence), {})
        two = b._steps.get((name, v.occurrence), {})
        what = f"{name} after {one.get('kind', 'the optimizer')}.step()"
        for key in dict.fromkeys([*one, *two]):
            if one.get(key) != two.get(key):
                setting = "the optimizer" if key == "kind" else key
                number += f"; {setting} is {one.get(key)} in the first run, "
                number += f"{two.get(key)} in the second"
    at = place.text if place else ""
    return Difference(what, at, name.rpartition(".")[0], text + number, first, second)


def _without_lines(values: list[Value]) -> list[Value]:
    counts: dict[Any, int] = {}
    found: list[Value] = []
    for v in values:
        number = counts[v.operation, v.module] = counts.get((v.operation, v.module), -1) + 1
        found.append(_Lineless(*v._replace(occurrence=number)))
    return found


class _Lineless(Value):
    @property
    def line(self) -> Any:
        return None


def _already(v: Value, other: Value, rtol: float | None) -> str:
    """What of an operation's inputs differs itself: then the cause lies before."""
    told = []
    others = {number: (array, kind) for number, _, array, kind in other.given}
    for number, name, one, kind in v.given:
        two, other_kind = others.get(number, (None, ""))
        if one is None or two is None:
            continue
        if _differ(one, two, min_precise(kind, other_kind), rtol) is not None:
            told.append(name)
    verb = "differs" if len(told) == 1 else "differ"
    return f"; {' and '.join(told)} {verb} already" if told else ""


def _alone_before(a: list[Value], b: list[Value], v: Value, other: Value) -> str:
    """The operations that only one run has between the last common value and the one that differs:
    often just what the other run lacks."""
    told = []
    for run, others, last, name in ((a, b, v, "first"), (b, a, other, "second")):
        keys = {each.key for each in others}
        at = next(i for i, each in enumerate(run) if each is last)
        alone: list[Value] = []
        while at > 0 and run[at - 1].key not in keys:
            at -= 1
            alone.insert(0, run[at])
        if alone:
            where = f" at {alone[0].place.short}" if alone[0].place else ""
            more = f" and {len(alone) - 1} more" if len(alone) > 1 else ""
            told.append(f"only the {name} run has {alone[0].operation.lstrip('_')}{where}{more}")
    return f"; before it, {', '.join(told)}" if told else ""


def _first_alone(a: list[Value], b: list[Value]) -> Difference | None:
    """The first operation that only one run has."""
    keys = [{v.key for v in run} for run in (a, b)]
    for run, others, name in ((a, keys[1], "second"), (b, keys[0], "first")):
        for v in run:
            if v.key not in others:
                text = f"the {name} run has no such call: one takes another way from here"
                place = v.place.text if v.place else ""
                return Difference(v.operation, place, v.module, text, None, None)
    return None


def _by_module(run_a: Any, run_b: Any, rtol: float | None) -> Difference | None:
    a, b = _outputs(run_a), _outputs(run_b)
    common = [path for path in a if path in b]
    if not common:
        raise ValueError(
            f"compare: the runs have no module in common; the first has {list(a)[:5]}, the second "
            f"{list(b)[:5]}"
        )
    for path in common:
        pairs = _paired(a[path], b[path])
        told = [
            _differ(one, two, min_precise(kind, other), rtol)
            for (one, kind), (two, other), _ in pairs
        ]
        # Of a module that ran several times a hook keeps one call, whichever that is.
        if len(a[path]) != len(b[path]) and None in told:
            continue
        for found, (_, _, which) in zip(told, pairs):
            if found is not None:
                text, first, second = found
                place = _place_of((run_a, run_b), path)
                what = f"the output of {path or 'the model'}{which}"
                return Difference(what, place, path, text, first, second)
    return None


def _paired(a: list[Any], b: list[Any]) -> list[tuple[Any, Any, str]]:
    """Pairs of outputs to compare: call by call. If one run has a single output, it is compared
    with each of the other run, the last first: a hook that overwrites its variable leaves that."""
    if len(a) == len(b):
        calls = len(a)
        return [(x, y, f" in call {i + 1}" * (calls > 1)) for i, (x, y) in enumerate(zip(a, b))]
    many = max(len(a), len(b))
    if min(len(a), len(b)) == 1:
        both = zip(a * many if len(a) == 1 else a, b * many if len(b) == 1 else b)
        found = [(x, y, f" in call {i + 1}") for i, (x, y) in enumerate(both)]
        return found[::-1]
    return [(x, y, f" in call {i + 1}") for i, (x, y) in enumerate(zip(a, b))]


def min_precise(one: str, two: str) -> str:
    """Of two dtypes the one that rounds more."""
    return max((one, two), key=lambda name: ROUNDING.get(name, 0.0))


def _differ(a: Any, b: Any, dtype: str, rtol: float | None) -> tuple[str, Any, Any] | None:
    if a.shape != b.shape:
        return f"its shape is {a.shape} in the first run and {b.shape} in the second", None, None
    if a.size == 0:
        return None
    bound = ROUNDING.get(dtype, 1e-9) if rtol is None else rtol
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "bu":  # whose differences would wrap around
        a, b = a.astype(np.int64), b.astype(np.int64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a - b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
        finite = np.abs(np.where(np.isfinite(a), a, 0)).max()
    largest = np.unravel_index(int(apart.argmax()), apart.shape)
    if not apart[largest] > bound * max(float(finite), 1e-30):
        return None
    count = int((apart > bound * max(float(finite), 1e-30)).sum())
    where = list(map(int, largest))
    first, second = a[largest].item(), b[largest].item()
    text = (
        f"{count} of {a.size} elements differ, most at {where}: {first:.7g} in the first run, "
        f"{second:.7g} in the second (largest element {float(finite):.4g})"
    )
    return text, first, second
