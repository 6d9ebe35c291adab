"""Statistical and utility functions: what reduces an array, or runs along it."""

from __future__ import annotations

import clew
from clew import Tensor

from ._common import Axes, axes_of, keeps, promoted, sum_dtype


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are nonzero.

    Args:
        x: an array.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.

    >>> clew.array_api.all(clew.tensor([[1, 0], [2, 3]]), axis=1)
    tensor([False,  True])
    """
    y, axes = axes_of(x.to(clew.bool), axis)
    return clew.all(y, axes, keeps(x, axis, keepdims))


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element is nonzero.

    Args:
        x: an array.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.

    >>> clew.array_api.any(clew.tensor([[1, 0], [0, 0]]), axis=1)
    tensor([ True, False])
    """
    y, axes = axes_of(x.to(clew.bool), axis)
    return clew.any(y, axes, keeps(x, axis, keepdims))


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements are nonzero, as int64.

    Args:
        x: an array.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.

    >>> clew.array_api.count_nonzero(clew.tensor([[1, 0], [2, 3]]), axis=1)
    tensor([1, 2])
    """
    return sum(x.to(clew.bool), axis=axis, keepdims=keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element; NaN if there is one.

    Args:
        x: an array of real numbers.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.

    >>> clew.array_api.max(clew.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([5, 7])
    """
    y, axes = axes_of(x, axis)
    return clew.amax(y, axes, keeps(x, axis, keepdims))


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if there is one.

    Args:
        x: an array of real numbers.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.

    >>> clew.array_api.min(clew.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([1, 2])
    """
    y, axes = axes_of(x, axis)
    return clew.amin(y, axes, keeps(x, axis, keepdims))


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean.

    Args:
        x: an array of floating-point numbers.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.

    >>> clew.array_api.mean(clew.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([3.0000, 4.5000])
    """
    y, axes = axes_of(x, axis)
    return clew.mean(y, axes, keeps(x, axis, keepdims))


def prod(
    x: Tensor, /, *, axis: Axes = None, dtype: clew.dtype | None = None, keepdims: bool = False
) -> Tensor:
    """The product; integers are multiplied in 64 bits.

    Args:
        x: an array of numbers.
        axis: the axis or axes; None for all.
        dtype: of the result; that of `x`, or its 64-bit integers, if None.
        keepdims: keep them, with size one.

    >>> clew.array_api.prod(clew.tensor([[1, 2], [3, 4]]), axis=0)
    tensor([3, 8])
    """
    dtype = sum_dtype(x.dtype) if dtype is None else dtype
    y, axes = axes_of(x, axis)
    for a in sorted((a % y.ndim for a in axes), reverse=True):
        y = clew.prod(y, a, keeps(x, axis, keepdims), dtype=dtype)
    return y


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation: squares are divided by the count less `correction`.

    Args:
        x: an array of real floating-point numbers.
        axis: the axis or axes; None for all.
        correction: 0 for the numbers themselves, 1 for a sample.
        keepdims: keep them, with size one.

    >>> clew.array_api.std(clew.tensor([1.0, 3.0]))
    tensor(1.)
    """
    y, axes = axes_of(x, axis)
    return clew.std(y, axes, correction=correction, keepdim=keeps(x, axis, keepdims))


def sum(
    x: Tensor, /, *, axis: Axes = None, dtype: clew.dtype | None = None, keepdims: bool = False
) -> Tensor:
    """The sum; integers are added in 64 bits.

    Args:
        x: an array of numbers.
        axis: the axis or axes; None for all.
        dtype: of the result; that of `x`, or its 64-bit integers, if None.
        keepdims: keep them, with size one.

    >>> clew.array_api.sum(clew.tensor([200, 100], dtype=clew.uint8))
    tensor(300, dtype=clew.uint64)
    """
    y, axes = axes_of(x, axis)
    dtype = sum_dtype(x.dtype) if dtype is None else dtype
    return clew.sum(y, axes, keeps(x, axis, keepdims), dtype=dtype)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance: squares are divided by the count less `correction`.

    Args:
        x: an array of real floating-point numbers.
        axis: the axis or axes; None for all.
        correction: 0 for the numbers themselves, 1 for a sample.
        keepdims: keep them, with size one.

    >>> clew.array_api.var(clew.tensor([1.0, 5.0]), correction=1)
    tensor(8.)
    """
    y, axes = axes_of(x, axis)
    return clew.var(y, axes, correction=correction, keepdim=keeps(x, axis, keepdims))


def _scan_axis(name: str, x: Tensor, axis: int | None) -> int:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: axis is needed for an array of {x.ndim} dims")
        return 0
    if x.ndim == 0:
        raise ValueError(f"{name}: an array of no dims has no axis {axis}")
    return axis


def _with_initial(out: Tensor, axis: int, value: int) -> Tensor:
    shape = list(out.shape)
    shape[axis] = 1
    return clew.cat([clew.full(shape, value, dtype=out.dtype, device=out.device), out], axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: clew.dtype | None = None,
    include_initial: bool = False,
) -> Tensor:
    """The sums of the elements up to each one along an axis.

    Args:
        x: an array of numbers.
        axis: the axis; not needed for a vector.
        dtype: of the result; that of `x`, or its 64-bit integers, if None.
        include_initial: begin with 0; the result has one more element.

    >>> clew.array_api.cumulative_sum(clew.tensor([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    axis = _scan_axis("cumulative_sum", x, axis)
    out = clew.cumsum(x, axis, dtype=sum_dtype(x.dtype) if dtype is None else dtype)
    return _with_initial(out, axis, 0) if include_initial else out


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: clew.dtype | None = None,
    include_initial: bool = False,
) -> Tensor:
    """The products of the elements up to each one along an axis.

    Args:
        x: an array of numbers.
        axis: the axis; not needed for a vector.
        dtype: of the result; that of `x`, or its 64-bit integers, if None.
        include_initial: begin with 1; the result has one more element.

    >>> clew.array_api.cumulative_prod(clew.tensor([1, 2, 3]))
    tensor([1, 2, 6])
    """
    axis = _scan_axis("cumulative_prod", x, axis)
    out = clew.cumprod(x, axis, dtype=sum_dtype(x.dtype) if dtype is None else dtype)
    return _with_initial(out, axis, 1) if include_initial else out


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along an axis, `n` times over.

    Args:
        x: an array of numbers.
        axis: the axis.
        n: how often.
        prepend: what is put in front of `x` along the axis first.
        append: what is put behind it.

    >>> clew.array_api.diff(clew.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if n == 0:
        return x
    ends = [t for t in (prepend, append) if t is not None]
    x, *ends = promoted("diff", x, *ends)
    if prepend is not None:
        prepend = ends.pop(0)
    if append is not None:
        append = ends.pop(0)
    return clew.diff(x, n, axis, prepend, append)


__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
