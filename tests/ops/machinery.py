"""What the generic suite needs: tensors from samples, tolerances, numerical derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew import _C
from samples import Op, Rng, S

# Relative and absolute tolerance of one operation, by dtype.
TOLERANCE = {
    "float64": (1e-10, 1e-10),
    "float32": (2e-5, 2e-5),
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
    "complex64": (2e-5, 2e-5),
    "complex128": (1e-10, 1e-10),
}


def public_name(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def function(name: str) -> Callable[..., Any]:
    """The op's function by its dotted name."""
    if name in _C.functions:
        return _C.functions[name]
    if hasattr(_C.ops, public_name(name)) and "." not in name:
        return getattr(_C.ops, public_name(name))
    found: Any = clew
    for part in name.split("."):
        found = getattr(found, part)
    return found


def inplace_function(name: str) -> Callable[..., Any] | None:
    if name not in _C.functions and ("." in name or not hasattr(_C.ops, name)):
        return None  # written in Python
    return getattr(_C.ops, public_name(name) + "_", None)


def samples_of(op: Op) -> list[S]:
    return op.samples(Rng(op.name))


def map_arrays(value: Any, f: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return f(value)
    if isinstance(value, (list, tuple)) and any(
        isinstance(v, np.ndarray) or v is None for v in value
    ):
        return type(value)(map_arrays(v, f) for v in value)
    return value


def map_sample(sample: S, f: Callable[[np.ndarray], Any]) -> S:
    return S(
        *(map_arrays(a, f) for a in sample.args),
        **{k: map_arrays(v, f) for k, v in sample.kwargs.items()},
    )


def double(sample: Any) -> Any:
    """A sample's arrays as tensors of float64 or complex128."""
    return map_sample(
        sample, lambda a: to_tensor(a, "complex128" if a.dtype.kind == "c" else "float64")
    )


def dtype(name: str) -> Any:
    return getattr(clew, name)


def to_tensor(array: np.ndarray, dtype_name: str | None) -> clew.Tensor:
    """A tensor of its own memory; floating arrays in the dtype asked for."""
    t = clew.tensor(array)
    if dtype_name is None:
        return t
    wanted = dtype(dtype_name)
    if array.dtype.kind == "f" or (array.dtype.kind == "c" and wanted.is_complex):
        return t.to(wanted)
    if array.dtype.kind == "c":
        return t
    return t


def to_numpy(t: Any) -> Any:
    if isinstance(t, clew.Tensor):
        t = t.detach()
        if t.dtype in (clew.bfloat16, clew.float16):
            t = t.to(clew.float64)
        return t.numpy()
    if isinstance(t, (tuple, list)):
        return tuple(to_numpy(x) for x in t)
    return np.asarray(t)


def flat_outputs(outputs: Any) -> list[clew.Tensor]:
    if isinstance(outputs, clew.Tensor):
        return [outputs]
    return [t for o in outputs if isinstance(o, (clew.Tensor, tuple)) for t in flat_outputs(o)]


def tensors_in(sample: S) -> list[clew.Tensor]:
    found: list[clew.Tensor] = []

    def visit(v: Any) -> None:
        if isinstance(v, clew.Tensor):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            for x in v:
                visit(x)

    for v in (*sample.args, *sample.kwargs.values()):
        visit(v)
    return found


def replace_tensors(sample: S, fresh: list[clew.Tensor]) -> S:
    queue = list(fresh)

    def visit(v: Any) -> Any:
        if isinstance(v, clew.Tensor):
            return queue.pop(0)
        if isinstance(v, (list, tuple)) and any(isinstance(x, clew.Tensor) for x in v):
            return type(v)(visit(x) for x in v)
        return v

    return S(*[visit(a) for a in sample.args], **{k: visit(v) for k, v in sample.kwargs.items()})


def is_inexact(t: clew.Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def random_like(t: clew.Tensor, rng: np.random.Generator) -> clew.Tensor:
    x = rng.normal(size=tuple(t.shape))
    if t.is_complex():
        x = x + 1j * rng.normal(size=tuple(t.shape))
    return clew.tensor(np.asarray(x)).to(t.dtype)


def inner(a: clew.Tensor, b: clew.Tensor) -> float:
    """The real inner product."""
    x, y = to_numpy(a), to_numpy(b)
    return float(np.sum((np.conj(x) * y).real))


class Problem:
    """An op at a sample as a function of its inexact tensors alone, in double precision."""

    def __init__(self, f: Callable[..., Any], sample: S) -> None:
        self.f = f
        self.sample = sample
        self.all = tensors_in(sample)
        self.index = [i for i, t in enumerate(self.all) if is_inexact(t)]
        self.inputs = [self.all[i] for i in self.index]

    def __call__(self, *inputs: clew.Tensor) -> list[clew.Tensor]:
        full = list(self.all)
        for i, t in zip(self.index, inputs):
            full[i] = t
        s = replace_tensors(self.sample, full)
        return [o for o in flat_outputs(self.f(*s.args, **s.kwargs)) if is_inexact(o)]

    def numeric(
        self, f: Callable[..., Any], inputs: Any, directions: Any, seeds: Any, eps: float
    ) -> float:
        """d/dt of sum <seed, f(inputs + t direction)> at 0, by a central difference."""
        with clew.no_grad():
            high = f(*[x + d * eps for x, d in zip(inputs, directions)])
            low = f(*[x - d * eps for x, d in zip(inputs, directions)])
        return sum(inner(s, up - down) for s, up, down in zip(seeds, high, low)) / (2 * eps)

    def smooth_derivative(
        self, f: Callable[..., Any], inputs: Any, directions: Any, seeds: Any
    ) -> float | None:
        """The derivative, or None where two step sizes disagree: a kink lies within reach."""
        a = self.numeric(f, inputs, directions, seeds, 1e-5)
        b = self.numeric(f, inputs, directions, seeds, 3e-6)
        scale = max(abs(a), abs(b), 1.0)
        return b if abs(a - b) < 1e-4 * scale else None


def derivative_samples(op: Op) -> Any:
    """Each sample in double precision, with the function of those of its tensors that may have a
    gradient.
    """
    for sample in samples_of(op):
        problem = Problem(function(op.name), double(sample))
        if problem.inputs and sum(t.numel() for t in problem.inputs):
            yield sample, problem
