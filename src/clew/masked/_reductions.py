"""Masked sums, products, extrema and running sums: a masked element is replaced by the value that
leaves the others as they are.
"""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_tensors, wrapped_dim
from clew._C import Tensor

_f = _C.functions
_where = _C.ops.where


def prepared(name: str, input: Tensor, mask: Tensor | None, dtype: Any) -> Tensor:
    """The input in the dtype asked for, after checks of both.

    Raises:
        TypeError: input or mask is not a Tensor.
        IndexError: the mask has more dimensions than the input.
    """
    need_tensors(name, input=input)
    if mask is not None:
        need_tensors(name, mask=mask)
        if mask.ndim > input.ndim:
            raise IndexError(
                f"masked.{name}: the mask must not have more dimensions than the input; got "
                f"{list(mask.shape)} for {list(input.shape)}"
            )
    return input if dtype is None else input.to(dtype)


def filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with a value where the mask is false."""
    if mask is None:
        return input
    chosen = mask if mask.dtype is _dtypes.bool else mask != 0
    return _where(chosen.expand(input.shape), input, _C.tensor(value, dtype=input.dtype))


def dims_of(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, in ascending order; all for None and ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    dims = [wrapped_dim(f"masked.{name}", d, ndim) for d in given]
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"masked.{name}: a dim appears multiple times in {given}")
    return tuple(sorted(dims)) if ndim else ()


def widened(input: Tensor, dtype: Any) -> Any:
    """The dtype of a sum: int64 for smaller integers."""
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        return _dtypes.int64
    return dtype


def lowest(dtype: Any, largest: bool = False) -> Any:
    """The smallest (or largest) value of a dtype."""
    if dtype is _dtypes.bool:
        return largest
    if dtype.is_floating_point:
        return float("inf") if largest else -float("inf")
    limits = _dtypes.iinfo(dtype)
    return limits.max if largest else limits.min


def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements where the mask is true; 0 where it is nowhere.

    Args:
        input: any tensor.
        dim: a dimension or several; all when None.
        keepdim: keep reduced dimensions, of size 1.
        dtype: what to compute in; int64 for integers by default.
        mask: broadcast to the input's shape; all true when None.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([True, False, True])
    >>> clew.masked.sum(x, mask=m)
    tensor(4)
    """
    x = prepared("sum", input, mask, dtype)
    dims = dims_of("sum", dim, x.ndim)
    return filled(x, mask, 0).sum(dims, keepdim, dtype=widened(x, dtype))


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements where the mask is true; 1 where it is nowhere.

    Args: as for :func:`sum`.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([True, False, True])
    >>> clew.masked.prod(x, mask=m)
    tensor(3)
    """
    x = prepared("prod", input, mask, dtype)
    made = filled(x, mask, 1)
    if x.ndim == 0:
        return made.prod(dtype=widened(x, dtype))
    for d in reversed(dims_of("prod", dim, x.ndim)):
        made = made.prod(d, keepdim, dtype=widened(made, dtype))
    return made


def amax(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest element where the mask is true; the smallest value of the dtype where it is
    nowhere.

    Args: as for :func:`sum`.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([True, True, False])
    >>> clew.masked.amax(x, mask=m)
    tensor(2)
    """
    x = prepared("amax", input, mask, dtype)
    return filled(x, mask, lowest(x.dtype)).amax(dims_of("amax", dim, x.ndim), keepdim)


def amin(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest element where the mask is true; the largest value of the dtype where it is
    nowhere.

    Args: as for :func:`sum`.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([False, True, True])
    >>> clew.masked.amin(x, mask=m)
    tensor(2)
    """
    x = prepared("amin", input, mask, dtype)
    return filled(x, mask, lowest(x.dtype, True)).amin(dims_of("amin", dim, x.ndim), keepdim)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest element lies among those where the mask is true.

    Args: as for :func:`sum`, with one dimension or None for the flattened input.

    Returns:
        indices in the dtype of the input (or `dtype`), as PyTorch gives them here.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([True, True, False])
    >>> clew.masked.argmax(x, mask=m)
    tensor(1)
    """
    x = prepared("argmax", input, mask, None)
    return filled(x, mask, lowest(x.dtype)).argmax(dim, keepdim).to(dtype or x.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest element lies among those where the mask is true.

    Args: as for :func:`argmax`.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([False, True, True])
    >>> clew.masked.argmin(x, mask=m)
    tensor(1)
    """
    x = prepared("argmin", input, mask, None)
    return filled(x, mask, lowest(x.dtype, True)).argmin(dim, keepdim).to(dtype or x.dtype)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of the elements where the mask is true.

    Args:
        input: any tensor.
        dim: the dimension.
        dtype: what to compute in.
        mask: broadcast to the input's shape; all true when None.

    Returns:
        a tensor like input.

    >>> x, m = clew.tensor([1, 2, 3]), clew.tensor([True, False, True])
    >>> clew.masked.cumsum(x, 0, mask=m)
    tensor([1, 1, 4])
    """
    x = prepared("cumsum", input, mask, dtype)
    return filled(x, mask, 0).cumsum(dim, dtype=x.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products of the elements where the mask is true.

    Args:
        input: any tensor.
        dim: the dimension.
        dtype: what to compute in.
        mask: broadcast to the input's shape; all true when None.

    Returns:
        a tensor like input.

    >>> x, m = clew.tensor([2, 2, 3]), clew.tensor([True, False, True])
    >>> clew.masked.cumprod(x, 0, mask=m)
    tensor([2, 2, 6])
    """
    x = prepared("cumprod", input, mask, dtype)
    return filled(x, mask, 1).cumprod(dim, dtype=x.dtype)


def _floating(x: Tensor) -> Tensor:
    return x if x.is_floating_point() or x.is_complex() else x.to(_C.get_default_dtype())


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(input))) over the elements where the mask is true; -inf where it is nowhere.

    Args: as for :func:`sum`.

    >>> x, m = clew.tensor([0.0, 5.0]), clew.tensor([True, False])
    >>> clew.masked.logsumexp(x, 0, mask=m)
    tensor(0.)
    """
    given = prepared("logsumexp", input, mask, dtype)
    x = _floating(given)
    dims = dims_of("logsumexp", dim, x.ndim)
    return _f["logsumexp"](filled(x, mask, -float("inf")), dims, keepdim).to(given.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), where an element that its mask leaves out counts as -inf.

    Args:
        input: any tensor.
        other: a tensor of a shape that broadcasts.
        dtype: what to compute in.
        input_mask: where input counts; all when None.
        other_mask: where other counts; all when None.

    Returns:
        a tensor of the broadcast shape.

    >>> x, m = clew.tensor([0.0, 5.0]), clew.tensor([True, False])
    >>> clew.masked.logaddexp(x, clew.zeros(2), input_mask=m)
    tensor([0.6931, 0.0000])
    """
    need_tensors("logaddexp", input=input, other=other)
    a = filled(prepared("logaddexp", input, input_mask, dtype), input_mask, -float("inf"))
    b = filled(prepared("logaddexp", other, other_mask, dtype), other_mask, -float("inf"))
    return _f["logaddexp"](a, b)
