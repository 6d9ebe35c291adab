"""Masked means, medians, norms, variances and softmaxes."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew.masked._reductions import dims_of, filled, prepared

_f = _C.functions
_INF = float("inf")


def _count(x: Tensor, dims: tuple[int, ...], mask: Tensor | None) -> Any:
    """How many elements take part in each reduction, dimensions kept."""
    ones = _C.ones(x.shape, dtype=_dtypes.int64, device=x.device)
    return filled(ones, mask, 0).sum(dims, True)


def _shaped(made: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return made if keepdim or not dims else made.squeeze(dims)


def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements where the mask is true; NaN where it is nowhere.

    Args:
        input: floating point or complex, or converted by `dtype`.
        dim: a dimension or several; all when None.
        keepdim: keep reduced dimensions, of size 1.
        dtype: what to compute in.
        mask: broadcast to the input's shape; all true when None.

    >>> x, m = clew.tensor([1.0, 2.0, 5.0]), clew.tensor([True, False, True])
    >>> clew.masked.mean(x, mask=m)
    tensor(3.)
    """
    x = prepared("mean", input, mask, dtype)
    dims = dims_of("mean", dim, x.ndim)
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(
            f"masked.mean: input must be floating point or complex, or give dtype; got {x.dtype}"
        )
    made = filled(x, mask, 0).sum(dims, True) / _count(x, dims, mask)
    return _shaped(made, dims, keepdim)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median along ``dim`` of the elements where the mask is true (the lower of two).

    Args: as for :func:`mean`, with one dimension.

    Raises:
        ValueError: an integer result would have to be NaN, since nothing takes part in it.

    >>> x, m = clew.tensor([1.0, 9.0, 5.0, 3.0]), clew.tensor([True, False, True, True])
    >>> clew.masked.median(x, 0, mask=m)
    tensor(3.)
    """
    x = prepared("median", input, mask, dtype)
    dims = dims_of("median", dim, x.ndim) or (0,)
    if len(dims) != 1:
        raise ValueError(
            f"masked.median: goes along one dimension; got dim={dim!r} for shape {list(x.shape)}"
        )
    at = dims[0]
    floating = x.is_floating_point()
    values = filled(x if floating else x.to(_dtypes.float32), mask, float("nan"))
    made = _f["nanmedian"](values, at, keepdim)[0]
    if floating:
        return made
    if not made.is_meta and bool(made.isnan().any()):
        raise ValueError(
            "masked.median expects no fully masked out rows if dtype is not floating point"
        )
    return made.to(x.dtype)


def norm(
    input: Tensor,
    ord: Any = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the elements where the mask is true; 0 (inf for order -inf) where it is
    nowhere.

    Args:
        ord: the order of the norm; the other arguments are as for :func:`mean`.

    >>> x, m = clew.tensor([3.0, 9.0, 4.0]), clew.tensor([True, False, True])
    >>> clew.masked.norm(x, mask=m)
    tensor(5.)
    """
    x = prepared("norm", input, mask, dtype)
    dims = dims_of("norm", dim, x.ndim)
    order = 2.0 if ord is None else ord
    values = filled(x, mask, float("inf") if order == -float("inf") else 0)
    return _f["linalg.vector_norm"](values, order, dims, keepdim)


def normalize(
    input: Tensor,
    ord: Any,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements over the norm of those where the mask is true, or over eps where that is larger.

    Args:
        ord: the order of the norm.
        dim: the dimension of the norms.
        eps: the smallest divisor; the other arguments are as for :func:`mean`.

    >>> x, m = clew.tensor([3.0, 9.0, 4.0]), clew.tensor([True, False, True])
    >>> clew.masked.normalize(x, 2, 0, mask=m)
    tensor([0.6000, 0.0000, 0.8000])
    """
    x = prepared("normalize", input, mask, dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    return filled(x, mask, 0) / length.clamp(min=eps)


def _spread(
    name: str,
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError(f"masked.{name}: only one of unbiased and correction may be given")
    if unbiased is not None:
        correction = 1 if unbiased else 0
    x = prepared(name, input, mask, dtype)
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_dtypes.float32)
    dims = dims_of(name, dim, x.ndim)
    count = _count(x, dims, mask)
    centred = x - filled(x, mask, 0).sum(dims, True) / count
    squares = centred * centred.conj()
    left = (count - (1 if correction is None else correction)).clamp(min=0)
    return _shaped(filled(squares, mask, 0).sum(dims, True) / left.to(x.dtype), dims, keepdim)


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements where the mask is true.

    Args:
        unbiased: whether the divisor is one less than the number of elements.
        correction: how much less it is; 1 by default. The other arguments are as for :func:`mean`.

    >>> x, m = clew.tensor([1.0, 9.0, 5.0]), clew.tensor([True, False, True])
    >>> clew.masked.var(x, mask=m)
    tensor(8.)
    """
    return _spread("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements where the mask is true.

    Args: as for :func:`var`.

    >>> x, m = clew.tensor([1.0, 9.0, 5.0]), clew.tensor([True, False, True])
    >>> clew.masked.std(x, 0, False, mask=m)
    tensor(2.)
    """
    return _spread("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax over the elements where the mask is true; 0 elsewhere, NaN where it is nowhere true.

    Args:
        input: any tensor.
        dim: the dimension.
        dtype: what to compute in.
        mask: broadcast to the input's shape; all true when None.

    Returns:
        a tensor like input.

    >>> x, m = clew.tensor([1.0, 9.0, 1.0]), clew.tensor([True, False, True])
    >>> clew.masked.softmax(x, 0, mask=m)
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _f["softmax"](filled(prepared("softmax", input, mask, dtype), mask, -_INF), dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of :func:`softmax`.

    Args:
        input: any tensor.
        dim: the dimension.
        dtype: what to compute in.
        mask: broadcast to the input's shape; all true when None.

    Returns:
        a tensor like input.

    >>> x, m = clew.tensor([1.0, 9.0, 1.0]), clew.tensor([True, False, True])
    >>> clew.masked.log_softmax(x, 0, mask=m)
    tensor([-0.6931,    -inf, -0.6931])
    """
    return _f["log_softmax"](filled(prepared("log_softmax", input, mask, dtype), mask, -_INF), dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The :func:`softmax` of the negative input.

    Args:
        input: any tensor.
        dim: the dimension.
        dtype: what to compute in.
        mask: broadcast to the input's shape; all true when None.

    Returns:
        a tensor like input.

    >>> x, m = clew.tensor([1.0, 9.0, 1.0]), clew.tensor([True, False, True])
    >>> clew.masked.softmin(x, 0, mask=m)
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _f["softmax"](-filled(prepared("softmin", input, mask, dtype), mask, _INF), dim)
