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
    """A vector of evenly spaced numbers from `start` up to `stop`, which is not one of them.

    Args:
        start: the first number; with it alone, the end, and 0 is the first.
        stop: the end.
        step: the distance between neighbours, not zero.
        dtype: int64 if None and all are ints, else the default floating dtype.
        device: where it lies.

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
        obj: what it is made of.
        dtype: as the numbers say if None.
        device: where it lies.
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
    """An array whose elements are not set.

    Args:
        shape: an int or a sequence of them.
        dtype: the default floating dtype if None.
        device: where it lies.

    >>> clew.array_api.empty((2, 3)).shape
    clew.Size([2, 3])
    """
    return clew.empty(_shape(shape), dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` whose elements are not set.

    Args:
        x: an array.
        dtype: that of `x` if None.
        device: where it lies.

    >>> clew.array_api.empty_like(clew.ones(2, 3)).shape
    clew.Size([2, 3])
    """
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
    """A matrix of ones on the `k`-th diagonal and zeros elsewhere.

    Args:
        n_rows: how many rows.
        n_cols: how many columns; as many if None.
        k: the diagonal; positive ones lie above the main one.
        dtype: the default floating dtype if None.
        device: where it lies.

    >>> clew.array_api.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return clew.eye(n_rows, n_cols, dtype=dtype, device=device)
    across = clew.arange(n_cols, device=device) - clew.arange(n_rows, device=device)[:, None]
    return (across == k).to(clew.get_default_dtype() if dtype is None else dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of any object with ``__dlpack__``.

    Args:
        x: the object.
        device: where it is to lie; where it lies if None.
        copy: True copies the memory; else it is shared.

    >>> import numpy as np
    >>> clew.array_api.from_dlpack(np.array([1, 2]))
    tensor([1, 2])
    """
    return clew.from_dlpack(x, device=device, copy=bool(copy))


def full(
    shape: Shape, fill_value: Number, *, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """An array with the same number everywhere.

    Args:
        shape: an int or a sequence of them.
        fill_value: the number.
        dtype: as the number says if None.
        device: where it lies.

    >>> clew.array_api.full(2, 7)
    tensor([7, 7])
    """
    return clew.full(_shape(shape), fill_value, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Number, *, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """An array of the shape of `x` with the same number everywhere.

    Args:
        x: an array.
        fill_value: the number.
        dtype: that of `x` if None.
        device: where it lies.

    >>> clew.array_api.full_like(clew.ones(2), 7)
    tensor([7., 7.])
    """
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
    """A vector of evenly spaced numbers from `start` to `stop`, which is left out on request.

    Args:
        start, stop: the ends.
        num: how many numbers.
        dtype: the default floating dtype, or its complex one, if None.
        device: where it lies.
        endpoint: whether `stop` is the last number.

    >>> clew.array_api.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = clew.get_default_dtype().to_complex()
    if endpoint:
        return clew.linspace(start, stop, num, dtype=dtype, device=device)
    return clew.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """The coordinate arrays of the grid that the vectors span.

    Args:
        arrays: vectors of one dtype.
        indexing: "xy" has the first vector along the second axis, "ij" along the first.

    >>> clew.array_api.meshgrid(clew.tensor([1, 2]), clew.tensor([3, 4]))[0]
    tensor([[1, 2],
            [1, 2]])
    """
    if len({a.dtype for a in arrays}) > 1:
        raise ValueError("meshgrid: the arrays must have one dtype")
    return tuple(clew.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape: Shape, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones.

    Args:
        shape: an int or a sequence of them.
        dtype: the default floating dtype if None.
        device: where it lies.

    >>> clew.array_api.ones(2)
    tensor([1., 1.])
    """
    return clew.ones(_shape(shape), dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones of the shape of `x`.

    Args:
        x: an array.
        dtype: that of `x` if None.
        device: where it lies.

    >>> clew.array_api.ones_like(clew.tensor([3, 4]))
    tensor([1, 1])
    """
    return clew.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of the matrices, up to the `k`-th diagonal; zeros elsewhere.

    Args:
        x: matrices, (..., n, m).
        k: the diagonal; positive ones lie above the main one.

    >>> clew.array_api.tril(clew.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return clew.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of the matrices, from the `k`-th diagonal on; zeros elsewhere.

    Args:
        x: matrices, (..., n, m).
        k: the diagonal; positive ones lie above the main one.

    >>> clew.array_api.triu(clew.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return clew.triu(x, k)


def zeros(shape: Shape, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros.

    Args:
        shape: an int or a sequence of them.
        dtype: the default floating dtype if None.
        device: where it lies.

    >>> clew.array_api.zeros(2)
    tensor([0., 0.])
    """
    return clew.zeros(_shape(shape), dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: clew.dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros of the shape of `x`.

    Args:
        x: an array.
        dtype: that of `x` if None.
        device: where it lies.

    >>> clew.array_api.zeros_like(clew.tensor([3, 4]))
    tensor([0, 0])
    """
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
