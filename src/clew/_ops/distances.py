"""Distances between rows of matrices."""

from __future__ import annotations

import math
from typing import Any

from clew import _C
from clew._base.arguments import need_number
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.functions import broadcast_shapes
from clew._ops.twofold import twofold

__all__ = ["cdist"]

_ops: Any = _C.ops

_MM_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)
# Differences of so few elements take no longer than their product, and are exact near zero.
_SHORT = 16


@asks_classes
@in_float32
def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances between all rows of two batches of matrices.

    Args:
        x1: (..., P, M).
        x2: (..., R, M).
        p: the norm of a difference; 0 counts differing elements, inf takes the greatest.
        compute_mode: whether Euclidean distances may be computed through a matrix product.

    Returns:
        (..., P, R).

    >>> clew.cdist(clew.tensor([[0., 0.]]), clew.tensor([[3., 4.]]))
    tensor([[5.]])
    """
    if compute_mode not in _MM_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    shape1, shape2 = x1.shape, x2.shape
    if len(shape1) < 2 or len(shape2) < 2:
        raise RuntimeError(
            f"cdist: both inputs must have at least 2 dimensions; got shapes {tuple(shape1)} "
            f"and {tuple(shape2)}"
        )
    if shape1[-1] != shape2[-1]:
        raise RuntimeError(
            f"cdist: both inputs must have rows of one size; got shapes {tuple(shape1)} "
            f"and {tuple(shape2)}"
        )
    if not (x1.is_floating_point() and x2.is_floating_point()):
        raise RuntimeError(f"cdist: inputs must be floating point; got {x1.dtype} and {x2.dtype}")
    p = need_number("cdist", "p", p)
    if p < 0:
        raise RuntimeError(f"cdist: p must be at least 0; got {p}")
    rows, others = shape1[-2], shape2[-2]
    if p == 2 and (
        compute_mode == _MM_MODES[1]
        or (compute_mode == _MM_MODES[0] and (rows > 25 or others > 25) and shape1[-1] > _SHORT)
    ):
        return _euclidean(x1, x2)
    if len(shape1) == 2 == len(shape2):
        return _distances(x1.unsqueeze(0), x2.unsqueeze(0), float(p)).squeeze(0)
    batch = broadcast_shapes(shape1[:-2], shape2[:-2])
    count = math.prod(batch)
    one = x1.expand(*batch, *shape1[-2:]).reshape(count, *shape1[-2:])
    two = x2.expand(*batch, *shape2[-2:]).reshape(count, *shape2[-2:])
    return _distances(one, two, float(p)).reshape(*batch, rows, others)


def _euclidean(x1: Any, x2: Any) -> Any:
    a, b = (x1 * x1).sum(-1, True), (x2 * x2).sum(-1, True)
    square = a + b.transpose(-2, -1) - 2 * _ops.matmul(x1, x2.transpose(-2, -1))
    return _root(square)


def _root(square: Any) -> Any:
    # A distance of zero gets the gradient zero: the root never sees it.
    apart = ~(square <= 0)  # NaN is
    return _ops.where(apart, _ops.where(apart, square, 1.0).sqrt(), 0.0)


def _norm(difference: Any, p: float) -> Any:
    if p == 0:
        return difference.sign().abs().sum(-1)  # a count, whose derivative is zero
    size = difference.abs()
    if p == 1:
        return size.sum(-1)
    if p == math.inf:
        return _greatest(size) if size.shape[-1] else size.sum(-1)
    if p == 2:
        return _root((difference * difference).sum(-1))
    return _power(_power(size, p).sum(-1), 1.0 / p)


def _power(size: Any, exponent: float) -> Any:
    apart = ~(size <= 0)
    return _ops.where(apart, _ops.where(apart, size, 1.0) ** exponent, 0.0)


def _greatest(size: Any) -> Any:
    # Each element that is the greatest gets the whole gradient, as in the native form.
    top = size.detach().amax(-1, True)
    own = size - size.detach()
    reached = ((size == top) & (own == 0)) | size.isnan()
    return top.squeeze(-1) + _ops.where(reached, own, 0.0).sum(-1)


_DIFFERENCES = 1 << 18  # elements of differences that pdist makes at a time: 1 MB of float32


@asks_classes
def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Distances between every pair of rows, each pair once.

    Args:
        input: (N, M).
        p: the norm of a difference, as in cdist.

    Returns:
        N * (N - 1) / 2 distances: those of row 0 to rows 1, 2, ..., then those of row 1, and so on.

    >>> clew.nn.functional.pdist(clew.tensor([[0.], [1.], [3.]]))
    tensor([1., 3., 2.])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist: input must have 2 dimensions; got shape {tuple(input.shape)}")
    if not input.is_floating_point():
        raise RuntimeError(f"pdist: input must be floating point; got {input.dtype}")
    p = need_number("pdist", "p", p)
    if p < 0:
        raise RuntimeError(f"pdist: p must be at least 0; got {p}")
    return _own_distances(input, float(p))


def _composed_own_distances(input: Any, p: float) -> Any:
    from clew._ops.creation import triu_indices

    n, width = input.shape
    parts = []
    begin = 0
    while begin < n - 1:
        # Some rows with all that come after them, as far as their differences are not many.
        end, pairs = begin, 0
        while end < n - 1 and (pairs == 0 or (pairs + n - 1 - end) * width <= _DIFFERENCES):
            pairs += n - 1 - end
            end += 1
        row, other = triu_indices(end - begin, n - begin, 1) + begin
        parts.append(_norm(input.index_select(0, other) - input.index_select(0, row), p))
        begin = end
    return _ops.cat(parts, 0) if parts else input.reshape(-1)[:0]


def _composed_distances(x1: Any, x2: Any, p: float) -> Any:
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


_distances = twofold(
    "Cdist",
    native=lambda x1, x2, p: (_ops._cdist(x1, x2, p),),
    gradient=lambda grad, made, args, _: (*_ops._cdist_backward(grad, *made, *args), None),
    composed=_composed_distances,
)
_own_distances = twofold(
    "Pdist",
    native=lambda x, p: (_ops._pdist(x, p),),
    gradient=lambda grad, made, args, _: (_ops._pdist_backward(grad, *made, *args), None),
    composed=_composed_own_distances,
)
