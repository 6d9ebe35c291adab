"""compare: where two runs that should be equal first differ."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from clew import _C, Tensor, _flops
from clew._debug.observing import Observation
from clew._debug.place import Place, placed

__all__ = ["Difference", "RecordedRun", "compare", "record_run"]

LIMIT = 1 << 30  # bytes of values that a run may keep
ROUNDING = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-9}


class Value(NamedTuple):
    """What one operation gave: its name, place, module, which call of it, and the elements."""

    operation: str
    place: Place | None
    module: str | None
    occurrence: int
    array: Any
    dtype: str

    @property
    def line(self) -> Any:
        return None if self.place is None else (self.place.file, self.place.line)


class RecordedRun:
    """The values of a run in order of their making; `record_run` makes it.

    Attributes:
        values: one entry for each tensor that an operation gave.
        outputs: what each module gave, by its path and the number of the call.
    """

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.outputs: dict[tuple[str, int], tuple[Any, str]] = {}
        self._counts: dict[Any, int] = {}
        self._bytes = 0

    def _note(self, name: str, given: list[Any], got: list[Any]) -> None:
        where = _C._here()
        for t in got:
            if not isinstance(t, Tensor) or not (t.is_floating_point() or t.is_complex()):
                continue
            key = (name, where and (id(where[0]), where[1], where[2]))
            number = self._counts[key] = self._counts.get(key, -1) + 1
            module = where[2] if where else None
            self.values.append(
                Value(name, placed(where), module, number, self._kept(t), t.dtype.name)
            )

    def _kept(self, t: Tensor) -> Any:
        array = np.array(_array(t))
        self._bytes += array.nbytes
        if self._bytes > LIMIT:
            raise RuntimeError(
                f"compare: the run made more than {LIMIT >> 20} MB of values; compare one step"
            )
        return array

    def _note_output(self, path: str, output: Any) -> None:
        number = self._counts[path] = self._counts.get(path, -1) + 1
        if isinstance(output, (tuple, list)):
            output = output[0] if output else None
        if isinstance(output, Tensor) and output.is_floating_point():
            self.outputs[path, number] = (self._kept(output), output.dtype.name)


def _array(t: Tensor) -> Any:
    from clew._tensor_str import widen

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

    run = RecordedRun()
    # Whatever module is called gives its output under its path, "" for the outermost.
    hook = _global.register_module_forward_hook(
        lambda module, args, output: run._note_output(_path(), output)
    )
    observation = Observation(run._note, _flops._kinds())
    try:
        function()
    finally:
        observation.close()
        hook.remove()
    return run


def _path() -> str:
    here = _C._here()
    return "" if here is None or here[2] is None else here[2]


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


def compare(run_a: Any, run_b: Any, *, rtol: float | None = None) -> Difference | None:
    """Finds the first value that differs between two runs by more than rounding.

    Runs are aligned by line and module, or by module where one of them is not clew's: values that
    another program dumped.

    Args:
        run_a: a function to run, a RecordedRun, or a mapping (or the path of an .npz file) from
            modules' paths to arrays of what they gave, such as PyTorch's.
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
    return _by_module(_outputs(a), _outputs(b), rtol)


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


def _outputs(run: Any) -> dict[str, tuple[Any, str]]:
    """The last output of each module by its path."""
    if isinstance(run, RecordedRun):
        return {path: value for (path, number), value in run.outputs.items() if number == 0}
    found = {}
    for name, value in run.items():
        array = _array(value) if isinstance(value, Tensor) else np.asarray(value)
        found[name] = (array, array.dtype.name)
    return found


def _by_line(a: RecordedRun, b: RecordedRun, rtol: float | None) -> Difference | None:
    known = {(v.operation, v.line, v.module, v.occurrence): v for v in b.values}
    for v in a.values:
        other = known.get((v.operation, v.line, v.module, v.occurrence))
        if other is None:
            continue
        told = _differ(v.array, other.array, min_precise(v.dtype, other.dtype), rtol)
        if told is not None:
            place = v.place.text if v.place else ""
            return Difference(v.operation, place, v.module, *told)
    if len(a.values) != len(b.values) or not any(
        (v.operation, v.line, v.module, v.occurrence) in known for v in a.values
    ):
        return _first_alone(a, b)
    return None


def _first_alone(a: RecordedRun, b: RecordedRun) -> Difference | None:
    """The first operation that only one run has."""
    keys = [{(v.operation, v.line, v.module, v.occurrence) for v in run.values} for run in (a, b)]
    for run, others, name in ((a, keys[1], "second"), (b, keys[0], "first")):
        for v in run.values:
            if (v.operation, v.line, v.module, v.occurrence) not in others:
                text = f"the {name} run has no such call: one takes another way from here"
                place = v.place.text if v.place else ""
                return Difference(v.operation, place, v.module, text, None, None)
    return None


def _by_module(
    a: dict[str, tuple[Any, str]], b: dict[str, tuple[Any, str]], rtol: float | None
) -> Difference | None:
    common = [path for path in a if path in b]
    if not common:
        raise ValueError(
            f"compare: the runs have no module in common; the first has {list(a)[:5]}, the second "
            f"{list(b)[:5]}"
        )
    for path in common:
        (one, kind), (two, other) = a[path], b[path]
        told = _differ(one, two, min_precise(kind, other), rtol)
        if told is not None:
            return Difference(f"the output of {path or 'the model'}", "", path, *told)
    return None


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
