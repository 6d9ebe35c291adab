"""Numerical calculus: trapezoid sums and finite differences of sampled functions."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import (
    need_int,
    need_number,
    need_tensors,
    numpy_names,
    wrapped_dim,
)
from clew._base.overriding import asks_classes
from clew._C import Tensor

__all__ = ["cumulative_trapezoid", "gradient", "trapezoid", "trapz"]

_f = _C.functions


_HALVES = (_dtypes.float16, _dtypes.bfloat16)


def _wide(t: Tensor) -> Tensor:
    """The tensor in a dtype that sums of many elements fit into."""
    if t.dtype in _HALVES:
        return t.to(_dtypes.float32)
    return t if t.is_floating_point() or t.is_complex() else t.to(_dtypes.int64)


def _as_given(result: Tensor, y: Tensor, x: Tensor | None) -> Tensor:
    """The result in the dtype that halves ask for."""
    given = _C._result_type(y, y if x is None else x)
    return result.to(given) if given in _HALVES else result


def _points(
    function: str, y: Tensor, x: Tensor | None, dx: Any, dim: int
) -> tuple[Tensor, Any, int]:
    """The values, the distance of neighbours where it is a number, and the dimension, from the
    end.
    """
    need_tensors(function, y=y)
    if x is not None:
        need_tensors(function, x=x)
        if dx is not None:
            raise TypeError(f"{function}(): give x or dx, not both")
    for name, t in (("y", y), ("x", x)):
        if t is not None and t.dtype is _dtypes.bool:
            raise RuntimeError(
                f"{function}: received a bool input for `{name}`, but bool is not supported"
            )
    if y.ndim == 0:
        raise IndexError(f"{function}: dimension {dim} is asked for, but y has no dimensions")
    axis = wrapped_dim(function, dim, y.ndim) - y.ndim  # from the end: x may have more dimensions
    return _wide(y), 1 if dx is None else need_number(function, "dx", dx), axis


def _sums(y: Tensor, axis: int) -> Tensor:
    """Of neighbours."""
    n = max(y.shape[axis] - 1, 0)
    return y.narrow(axis, 0, n) + y.narrow(axis, y.shape[axis] - n, n)


def _steps(function: str, y: Tensor, x: Tensor, axis: int) -> Tensor:
    """The distances of neighbours."""
    x = _wide(x)
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError(
                f"{function}: There must be one `x` value for each sample point; got "
                f"{x.shape[0]} for {y.shape[axis]}"
            )
        x = x.reshape([-1] + [1] * (-1 - axis))
    elif x.ndim < y.ndim:
        x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
    m = max(x.shape[axis] - 1, 0)
    return x.narrow(axis, x.shape[axis] - m, m) - x.narrow(axis, 0, m)


@asks_classes
@numpy_names
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """The integral along ``dim`` of a function sampled at points, by the trapezoid rule.

    Args:
        y: the function's values.
        x: where they were sampled: a vector, or a shape that broadcasts with y's.
        dx: the distance of neighbours when x is not given; 1 by default.
        dim: the dimension of the samples.

    >>> clew.trapezoid(clew.tensor([1.0, 5.0, 10.0]), clew.tensor([1.0, 3.0, 6.0]))
    tensor(28.5000)
    """
    values, step, axis = _points("trapezoid", y, x, dx, dim)
    steps = step if x is None else _steps("trapezoid", values, x, axis)
    if y.shape[axis] == 0:
        return y.new_zeros([n for d, n in enumerate(y.shape, -y.ndim) if d != axis])
    if x is None:
        ends = values.select(axis, 0) + values.select(axis, -1)
        return _as_given((values.sum(axis) - ends / 2) * steps, y, x)
    return _as_given((_sums(values, axis) * steps).sum(axis) / 2, y, x)


@asks_classes
@numpy_names
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along ``dim`` by the trapezoid rule; another name of :func:`trapezoid`.

    >>> clew.trapz(clew.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@asks_classes
@numpy_names
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """The integrals from the first point to each later one, by the trapezoid rule.

    Args:
        y: the function's values.
        x: where they were sampled: a vector, or a shape that broadcasts with y's.
        dx: the distance of neighbours when x is not given; 1 by default.
        dim: the dimension of the samples; the result has one element less there.

    >>> clew.cumulative_trapezoid(clew.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    values, step, axis = _points("cumulative_trapezoid", y, x, dx, dim)
    steps = step if x is None else _steps("cumulative_trapezoid", values, x, axis)
    sums = _sums(values, axis)
    return _as_given((sums * steps).cumsum(axis) / 2, y, x)


def _slope_even(f: Tensor, at: int, h: float, edge_order: int) -> Tensor:
    n = f.shape[at]

    def part(start: int, length: int) -> Tensor:
        return f.narrow(at, start, length)

    inner = (part(2, n - 2) - part(0, n - 2)) / (2 * h)
    if edge_order == 1:
        first, last = (part(1, 1) - part(0, 1)) / h, (part(n - 1, 1) - part(n - 2, 1)) / h
    else:
        first = (4 * part(1, 1) - 3 * part(0, 1) - part(2, 1)) / (2 * h)
        last = (3 * part(n - 1, 1) - 4 * part(n - 2, 1) + part(n - 3, 1)) / (2 * h)
    return _f["cat"]([first, inner, last], at)


def _slope(f: Tensor, at: int, x: Tensor, edge_order: int) -> Tensor:
    """The slopes where the samples lie at x, a vector."""
    n = f.shape[at]
    shape = [-1 if d == at else 1 for d in range(f.ndim)]
    h = (x.narrow(0, 1, n - 1) - x.narrow(0, 0, n - 1)).reshape(shape)
    steps = (f.narrow(at, 1, n - 1) - f.narrow(at, 0, n - 1)) / h

    def ends(a: Tensor, k: int) -> Tensor:
        return a.narrow(at, k % a.shape[at], 1)

    # An inner slope is the mean of the two neighbouring ones, the nearer one weighing more.
    left, right = h.narrow(at, 0, n - 2), h.narrow(at, 1, n - 2)
    inner = (right * steps.narrow(at, 0, n - 2) + left * steps.narrow(at, 1, n - 2)) / (
        left + right
    )
    first, last = ends(steps, 0), ends(steps, -1)
    if edge_order == 2:
        # The parabola through the three outermost points.
        first = first - (ends(steps, 1) - first) * (ends(h, 0) / (ends(h, 0) + ends(h, 1)))
        last = last + (last - ends(steps, -2)) * (ends(h, -1) / (ends(h, -1) + ends(h, -2)))
    return _f["cat"]([first, inner, last], at)


@asks_classes
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes of a sampled function along dimensions, from differences of its neighbours.

    Args:
        input: the function's values.
        spacing: the distance of neighbours: a number for all dimensions, a number for each, or a
            vector of coordinates for each.
        dim: a dimension or several; all when None.
        edge_order: 1 or 2, the accuracy at the ends.

    Returns:
        a tuple with a tensor of the input's shape for each dimension.

    >>> clew.gradient(clew.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    need_tensors("gradient", input=input)
    if isinstance(dim, (tuple, list)):
        dims = list(dim)
    else:
        dims = list(range(input.ndim)) if dim is None else [need_int("gradient", "dim", dim)]
    axes = [wrapped_dim("gradient", d, input.ndim) for d in dims]
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"gradient: a dim appears multiple times in the list of dims {dims}")
    if edge_order not in (1, 2):
        raise RuntimeError(
            f"gradient: torch.gradient only supports edge_order=1 and edge_order=2; got "
            f"{edge_order!r}"
        )
    if isinstance(spacing, Tensor):
        raise TypeError("gradient(): argument 'spacing' must be a number or a list, not Tensor")
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(axes):
            raise RuntimeError(
                f"gradient: expected spacing to be unspecified, a scalar, or a list of length "
                f"{len(axes)}, one for each dimension; got a list of length {len(spacing)}"
            )
        steps = list(spacing)
    else:
        steps = [1 if spacing is None else spacing] * len(axes)
    if input.ndim == 0:
        return ()
    out = []
    for at, step in zip(axes, steps):
        if input.shape[at] < edge_order + 1:
            raise RuntimeError(
                f"gradient: expected each dimension size to be at least edge_order+1; got "
                f"{list(input.shape)}"
            )
        if isinstance(step, Tensor) and step.ndim:
            if list(step.shape) != [input.shape[at]]:
                raise RuntimeError(
                    f"gradient: expected one coordinate for each of the {input.shape[at]} samples "
                    f"along dim {at}; got {list(step.shape)}"
                )
            out.append(_slope(input, at, step, edge_order))
        else:
            h = need_number("gradient", "spacing", step, may_be_complex=True)
            out.append(_slope_even(input, at, h, edge_order))
    return tuple(out)
