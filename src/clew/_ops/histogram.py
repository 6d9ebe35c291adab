"""Histograms: how many elements, or how much weight, lies in each bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_int, need_number, need_tensors, whole
from clew._base.overriding import asks_classes, modes_are_on
from clew._base.results import shown_as
from clew._C import Tensor
from clew._ops.primitive import loops_in_vmap, without_derivative, write_out

__all__ = ["histc", "histogram", "histogramdd"]

_f = _C.functions
_range = range


@shown_as("histogram")
class histogram_result(NamedTuple):
    """What :func:`histogram` returns: the counts, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor


@shown_as("histogramdd")
class histogramdd_result(NamedTuple):
    """What :func:`histogramdd` returns: the counts, and a vector of edges for each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _check_range(function: str, low: Any, high: Any) -> None:
    if isinstance(low, Tensor):
        finite = bool(_f["isfinite"](low) & _f["isfinite"](high))
    else:
        finite = math.isfinite(low) and math.isfinite(high)
    if not finite:
        low, high = (x.item() if isinstance(x, Tensor) else x for x in (low, high))
        raise RuntimeError(f"{function}: range of [{low}, {high}] is not finite")


def _own_range(values: Tensor) -> tuple[Any, Any]:
    """The range of the elements; for modes, such as exporters, as tensors."""
    if not modes_are_on():
        low, high = (x.item() for x in _f["aminmax"](values))
        return (low - 1, high + 1) if low == high else (low, high)
    least, most = (x.double() for x in _f["aminmax"](values))
    same = least == most
    return _f["where"](same, least - 1, least), _f["where"](same, most + 1, most)


def _check_bins(function: str, bins: Any) -> int:
    bins = need_int(function, "bins", bins)
    if bins <= 0:
        raise RuntimeError(f"{function}(): bins must be > 0, but got {bins}")
    return bins


@asks_classes
@loops_in_vmap
def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
) -> Tensor:
    """The number of elements in each of equally wide bins between min and max.

    Elements outside the range and NaNs are left out; the last bin includes max.

    Args:
        input: floating point, any shape.
        bins: how many bins.
        min: the left edge of the first bin.
        max: the right edge of the last bin; the data's own range when min equals max.
        out: receives the result.

    Returns:
        A vector of the input's dtype; it has no gradient.

    >>> clew.histc(clew.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if not isinstance(input, Tensor):
        need_tensors("histc", input=input)
    bins = _check_bins("histc", bins)
    low, high = float(need_number("histc", "min", min)), float(need_number("histc", "max", max))
    if not input.is_floating_point():
        raise NotImplementedError(f"histc: input must be floating point; got {input.dtype}")
    if input.is_meta:
        return write_out("histc", input.new_empty(bins), out)
    values = input.detach().reshape(-1)
    least: Any = low
    most: Any = high
    whole_range = low == high and values.numel() > 0
    if whole_range:
        least, most = _own_range(values)
    elif low == high:
        least, most = low - 1, high + 1
    elif low > high:
        raise RuntimeError(f"histc: max must be larger than min; got {low} and {high}")
    _check_range("histc", least, most)
    if not whole_range:
        values = values[(values >= least) & (values <= most)]
    if values.dtype in (_dtypes.float16, _dtypes.bfloat16):
        values = values.float()
    at = ((values - least) * (bins / (most - least))).long().clamp_(max=bins - 1)
    return write_out("histc", _f["bincount"](at, minlength=bins).to(input.dtype), out)


def _edges(
    function: str, points: Tensor, bins: Any, range: Any, dims: int
) -> tuple[list[Tensor], bool]:
    """The bins' edges of each dimension."""
    if any(isinstance(b, Tensor) for b in bins):
        if range is not None:
            raise TypeError(f"{function}(): range needs numbers of bins, not their edges")
        for b in bins:
            need_tensors(function, bins=b)
            if b.ndim != 1 or b.numel() == 0 or b.dtype is not points.dtype:
                raise RuntimeError(
                    f"{function}: bins must be non-empty vectors of the input's dtype "
                    f"{points.dtype}; got {b.dtype}{list(b.shape)}"
                )
        return [b.detach() for b in bins], False
    counts = [_check_bins(function, b) for b in bins]
    if range is not None:
        ends = [float(need_number(function, "range", r)) for r in range]
        if len(ends) != 2 * dims:
            raise RuntimeError(
                f"{function}: for a {dims}-dimensional histogram range should have {2 * dims} "
                f"elements, but got {len(ends)}"
            )
        low, high = ends[0::2], ends[1::2]
    elif points.shape[0]:
        low, high = (x.tolist() for x in _f["aminmax"](points, dim=0))
    else:
        low, high = [0.0] * dims, [1.0] * dims
    edges = []
    for d, (a, b) in enumerate(zip(low, high)):
        _check_range(function, a, b)
        if a > b:
            raise RuntimeError(
                f"{function}: min should not exceed max, but got min {a} max {b} for dimension {d}"
            )
        if a == b:
            a, b = a - 0.5, b + 0.5
        edges.append(_C.linspace(a, b, counts[d] + 1, dtype=points.dtype))
    return edges, True


def _histogram(
    function: str, input: Tensor, bins: Any, range: Any, weight: Any, density: bool
) -> tuple[Tensor, list[Tensor]]:
    if input.dtype not in (_dtypes.float32, _dtypes.float64):
        raise NotImplementedError(f"{function}: input must be float32 or float64; got {input}")
    dims = input.shape[-1]
    points = input.detach().reshape(-1, dims)
    if isinstance(bins, Tensor) or whole(bins) is not None:
        bins = [bins] * dims
    elif not isinstance(bins, (list, tuple)):
        raise TypeError(
            f"{function}(): argument 'bins' must be int, a list of ints or of Tensors, not "
            f"{type(bins).__name__}"
        )
    if len(bins) != dims:
        raise RuntimeError(
            f"{function}: expected {dims} bins or sequences of edges for a {dims}-dimensional "
            f"histogram; got {len(bins)}"
        )
    weights = None
    if weight is not None:
        need_tensors(function, weight=weight)
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                f"{function}: weight must have the input's dtype {input.dtype}; got {weight.dtype}"
            )
        if weight.shape != input.shape[:-1]:
            raise RuntimeError(
                f"{function}: if weight tensor is provided it should have the same shape as the "
                f"input tensor excluding its innermost dimension; got weight "
                f"{list(weight.shape)} and input {list(input.shape)}"
            )
        weights = weight.detach().reshape(-1)
    if any(isinstance(t, Tensor) and t.is_meta for t in (input, weight, *bins)):
        raise NotImplementedError(f"{function}: the bins depend on the data; got a meta tensor")
    edges, _ = _edges(function, points, bins, range, dims)
    sizes = [e.numel() - 1 for e in edges]
    flat: Any = None
    inside: Any = None
    for d, e in enumerate(edges):
        column = points.select(1, d).contiguous()
        fits = (column >= e[0]) & (column <= e[-1])
        inside = fits if inside is None else inside & fits
        at = (_f["searchsorted"](e, column, right=True) - 1).clamp_(0, max(sizes[d] - 1, 0))
        flat = at if flat is None else flat * max(sizes[d], 1) + at
    total = math.prod(sizes)
    chosen = flat[inside]
    if total == 0:
        hist = _C.zeros(sizes, dtype=input.dtype)
    elif weights is None:
        hist = _f["bincount"](chosen, minlength=total).to(input.dtype).reshape(sizes)
    else:
        hist = _f["bincount"](chosen, weights[inside].double(), minlength=total)
        hist = hist.to(input.dtype).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            width = e.diff().reshape([-1 if k == d else 1 for k in _range(dims)])
            hist = hist / width
    return hist, edges


@asks_classes
@loops_in_vmap
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> histogram_result:
    """The number (or weight) of elements in each bin, and the bins' edges.

    Args:
        input: float32 or float64, any shape.
        bins: how many equally wide bins, or a vector of their edges in ascending order.
        range: (low, high) of the outer edges when `bins` is a number; the data's range by default.
        weight: what each element counts, of the input's shape; 1 by default.
        density: give the density instead, whose integral over the range is 1.
        out: two tensors that receive the results.

    Returns:
        a named tuple (hist, bin_edges); there is no derivative.

    >>> clew.histogram(clew.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    need_bools("histogram", density=density)
    if not isinstance(input, Tensor):
        need_tensors("histogram", input=input)
    if not isinstance(bins, Tensor) and whole(bins) is None:
        raise TypeError(
            f"histogram(): argument 'bins' must be int or Tensor, not {type(bins).__name__}"
        )
    hist, edges = _histogram("histogram", input.unsqueeze(-1), bins, range, weight, density)
    edge = edges[0].clone() if isinstance(bins, Tensor) else edges[0]
    made = without_derivative("histogram", (hist, edge), input, bins, weight)
    return write_out("histogram", histogram_result(*made), out, records=True)


def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> histogramdd_result:
    """The number (or weight) of points in each cell of a grid, and the grid's edges.

    Args:
        input: float32 or float64; its last dimension holds a point's coordinates.
        bins: how many bins in each dimension (one number, or a list of them), or a list of vectors
            of edges.
        range: low and high of each dimension in turn, when `bins` are numbers.
        weight: what each point counts; 1 by default.
        density: give the density instead, whose integral over the range is 1.

    Returns:
        a named tuple (hist, bin_edges), the latter a tuple of vectors; there is no
        derivative.

    >>> x = clew.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> clew.histogramdd(x, bins=[2, 2]).hist.tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    need_bools("histogramdd", density=density)
    need_tensors("histogramdd", input=input)
    if input.ndim < 2:
        raise RuntimeError(
            f"histogramdd: input tensor should have at least 2 dimensions; got {list(input.shape)}"
        )
    hist, edges = _histogram("histogramdd", input, bins, range, weight, density)
    given = bins if isinstance(bins, (list, tuple)) else ()
    hist, *edges = without_derivative("histogramdd", (hist, *edges), input, weight, *given)
    return histogramdd_result(hist, tuple(edges))
