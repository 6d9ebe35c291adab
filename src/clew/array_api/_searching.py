"""Searching, sorting and set functions."""

from __future__ import annotations

from typing import Literal, NamedTuple

import clew
from clew import Tensor

from ._common import Number, as_array, promoted, tensor_of


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first greatest element along an axis, or of the flattened array.

    Args:
        x: an array of real numbers.
        axis: the axis; None for the flattened array.
        keepdims: keep the axis, with size one.

    >>> clew.array_api.argmax(clew.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([1, 0])
    """
    return _arg(clew.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first smallest element along an axis, or of the flattened array.

    Args:
        x: an array of real numbers.
        axis: the axis; None for the flattened array.
        keepdims: keep the axis, with size one.

    >>> clew.array_api.argmin(clew.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([0, 1])
    """
    return _arg(clew.argmin, x, axis, keepdims)


def _arg(op: object, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        out = op(clew.flatten(x), 0)  # type: ignore[operator]
        return out.reshape((1,) * x.ndim) if keepdims else out
    return op(x, axis, keepdims)  # type: ignore[operator]


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of the nonzero elements, one vector an axis.

    Args:
        x: an array of at least one dim.

    >>> clew.array_api.nonzero(clew.tensor([[0, 5], [7, 0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    if tensor_of("nonzero", x).ndim == 0:
        raise ValueError("nonzero: at least one dim is needed; got none")
    return tuple(clew.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor,
    x2: Tensor | Number,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Where the elements of `x2` would go into the sorted vector `x1`.

    Args:
        x1: the vector.
        x2: an array of any shape, or a number.
        side: "left" goes before equal elements, "right" after them.
        sorter: the places of the elements of `x1` in sorted order, where it is not sorted.

    >>> clew.array_api.searchsorted(clew.tensor([1, 3, 5]), clew.tensor([3, 4]))
    tensor([1, 2])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right'; got {side!r}")
    x1, x2 = promoted("searchsorted", x1, x2)
    if sorter is not None:
        sorter = sorter.to(clew.int64)
    return clew.searchsorted(x1, x2, right=side == "right", sorter=sorter)


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Elements of `x1` where the condition holds, of `x2` elsewhere.

    Args:
        condition: an array of bool.
        x1, x2: arrays whose shapes broadcast with it, or numbers.

    >>> clew.array_api.where(clew.tensor([True, False]), clew.tensor([1, 2]), 0)
    tensor([1, 0])
    """
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        return clew.where(condition, x1, x2)
    return clew.where(condition, *promoted("where", x1, x2))


def isin(x1: Tensor | Number, x2: Tensor | Number, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is among those of `x2`.

    Args:
        x1, x2: arrays; one may be a number.
        invert: whether it is not among them.

    >>> clew.array_api.isin(clew.tensor([1, 2, 3]), clew.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if not isinstance(x1, Tensor) and isinstance(x2, Tensor):
        x1 = as_array(x1, x2)
    a, b = promoted("isin", x1, x2)
    out = clew.isin(a, b)
    return ~out if invert else out


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The places of the elements in sorted order along an axis.

    Args:
        x: an array of real numbers.
        axis: the axis.
        descending: greatest first.
        stable: equal elements always keep their order here.

    >>> clew.array_api.argsort(clew.tensor([30, 10, 20]))
    tensor([1, 2, 0])
    """
    return clew.sort(x, dim=axis, descending=descending, stable=True).indices


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis.

    Args:
        x: an array of real numbers.
        axis: the axis.
        descending: greatest first.
        stable: equal elements always keep their order here.

    >>> clew.array_api.sort(clew.tensor([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return clew.sort(x, dim=axis, descending=descending, stable=True).values


class UniqueAllResult(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements, where each is first, which one each element is, how often each is.

    Args:
        x: an array of any shape.

    Returns:
        `values`, `indices`, `inverse_indices` (of the shape of `x`) and `counts`.

    >>> clew.array_api.unique_all(clew.tensor([4, 2, 4])).indices
    tensor([1, 0])
    """
    flat = clew.flatten(tensor_of("unique_all", x))
    if flat.is_complex():
        rows, inverse, counts = clew.unique(
            clew.view_as_real(flat), return_inverse=True, return_counts=True, dim=0
        )
        values = clew.view_as_complex(rows.contiguous())
    else:
        values, inverse, counts = clew.unique(flat, return_inverse=True, return_counts=True)
    n = flat.numel()
    first = clew.full((values.numel(),), n, dtype=clew.int64, device=x.device)
    places = clew.arange(n, device=x.device)
    first = first.scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return UniqueAllResult(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements in order, and how often each is.

    Args:
        x: an array of any shape.

    Returns:
        `values` and `counts`.

    >>> clew.array_api.unique_counts(clew.tensor([4, 2, 4])).counts
    tensor([1, 2])
    """
    got = unique_all(x)
    return UniqueCountsResult(got.values, got.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements in order, and which one each element is.

    Args:
        x: an array of any shape.

    Returns:
        `values` and `inverse_indices`, of the shape of `x`.

    >>> clew.array_api.unique_inverse(clew.tensor([4, 2, 4])).inverse_indices
    tensor([1, 0, 1])
    """
    got = unique_all(x)
    return UniqueInverseResult(got.values, got.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements in order.

    Args:
        x: an array of any shape.

    >>> clew.array_api.unique_values(clew.tensor([4, 2, 4]))
    tensor([2, 4])
    """
    return unique_all(x).values


__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]
