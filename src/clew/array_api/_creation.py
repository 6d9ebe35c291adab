"""Creation functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import clew
from clew import Tensor

from ._common import Number

Shape = int | Sequence[int]


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: clew.dtype | None = None,
    device: Any = None,
) -> Tensor:
    """Evenly spaced numbers from `start` up to `stop`, which is not one of them.

    >>> clew.array_api.arange(3, 9, 2)
    tensor([3, 5, 7])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step must not be zero")
    whole = all(isinstance(v, int) for v in (start, stop, step))
    if dtype is None:
        dtype = clew.int64 if whole else clew.get_default_dtype()
    if whole:
        numbers = range(start, stop, step)  # type: ignore[call-overload]
        n = len(numbers)
        if n and dtype is clew.uint64 and max(numbers[0], numbers[-1]) >= 2**63:
            # Steps are counted modulo 2**64, so that negative ones are fine.
            steps = clew.arange(n, device=device).to(clew.uint64)
            return steps * (numbers.step % 2**64) + numbers.start
        if n > 0 and max(abs(numbers.start), abs(numbers.stop), abs(numbers.step)) >= 2**62:
            spaced = clew.arange(n, dtype=clew.int64, device=device) * numbers.step
            return (spaced + numbers.start).to(dtype)
    else:
        n = max(0, math.ceil((stop - start) / step))
    if n == 0:
        return clew.empty(0, dtype=dtype, device=device)
    return clew.arange(start, stop, step, dtype=dtype, device=device)


def asarray(
    obj: Any,
    /,
    *,
    dtype: clew.dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
) -> Tensor:
    """An array of what `obj` holds: an array, numbers, nested sequences, or a buffer.

    Args:
        copy: True always copies; False raises where a copy is needed; None copies where needed.

    >>> clew.array_api.asarray([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(obj, (bool, int, float, complex, list, tuple)):
        if copy is False:
            raise ValueError("asarray: a Python object cannot become an array without a copy")
        return clew.tensor(obj, dtype=dtype, device=device)
    if not isinstance(obj, Tensor):
        import numpy as np

        array = np.asarray(obj)
        # Memory that clew must not write to, or cannot lie over.
        odd = not array.flags.writeable or any(n < 0 for n in array.strides)
        if copy or (odd and copy is None):
            array, copy = array.copy(), None
        elif odd:
            raise ValueError("asarray: read-only or reversed memory needs a copy, got copy=False")
        obj = clew.from_numpy(array)
    out = obj.to(device=device, dtype=dtype)
    if copy is False and out is not obj:
        raise ValueError("asarray: the conversion needs a copy, which copy=False forbids")
    return out.clone() if copy and out is obj else out


def empty(shape: Shape, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array whose elements are not set."""
    return clew.empty(_shape(shape), dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` whose elements are not set."""
    return clew.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: clew.dtype | None = None,
    device: Any = None,
) -> Tensor:
    """Ones on the `k`-th diagonal, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return clew.eye(n_rows, n_cols, dtype=dtype, device=device)
    across = clew.arange(n_cols, device=device) - clew.arange(n_rows, device=device)[:, None]
    return (across == k).to(clew.get_default_dtype() if dtype is None else dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of any object with ``__dlpack__``."""
    return clew.from_dlpack(x, device=device, copy=bool(copy))


def full(
    shape: Shape, fill_value: Number, *, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """An array with the same number everywhere."""
    return clew.full(_shape(shape), fill_value, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Number, *, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """An array of the shape of `x` with the same number everywhere."""
    return clew.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: clew.dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is left out on request.

    >>> clew.array_api.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = clew.get_default_dtype().to_complex()
    if endpoint:
        return clew.linspace(start, stop, num, dtype=dtype, device=device)
    return clew.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Coordinate arrays of the grid that the vectors span."""
    if len({a.dtype for a in arrays}) > 1:
        raise ValueError("meshgrid: the arrays must have one dtype")
    return tuple(clew.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape: Shape, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return clew.ones(_shape(shape), dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones of the shape of `x`."""
    return clew.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of the matrices, up to the `k`-th diagonal; zeros elsewhere."""
    return clew.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of the matrices, from the `k`-th diagonal on; zeros elsewhere."""
    return clew.triu(x, k)


def zeros(shape: Shape, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return clew.zeros(_shape(shape), dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros of the shape of `x`."""
    return clew.zeros_like(x, dtype=dtype, device=device)


__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]
