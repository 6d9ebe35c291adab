"""Manipulation and indexing functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import clew
from clew import Tensor

from ._common import promoted, tensor_of


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays, each seen in the shape that they have in common.

    Args:
        arrays: arrays whose shapes broadcast.

    >>> clew.array_api.broadcast_arrays(clew.tensor([1, 2]), clew.tensor([[3]]))
    (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    return tuple(clew.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that the shapes have in common.

    Args:
        shapes: tuples of ints.

    >>> clew.array_api.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return tuple(clew.broadcast_shapes(*shapes))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The array seen in another shape, without a copy.

    Args:
        x: an array.
        shape: the shape, which its own broadcasts to.

    >>> clew.array_api.broadcast_to(clew.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return clew.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after another along an axis.

    Args:
        arrays: arrays of one shape but for the axis; of one dtype, or promoted to one.
        axis: the axis; None flattens the arrays first.

    >>> clew.array_api.concat([clew.ones(2, 1), clew.zeros(2, 1)], axis=1)
    tensor([[1., 0.],
            [1., 0.]])
    """
    parts = promoted("concat", *arrays)
    if axis is None:
        parts, axis = [clew.flatten(p) for p in parts], 0
    shapes = [p.ndim for p in parts]
    if min(shapes) != max(shapes):
        raise ValueError(f"concat: the arrays must have as many dims each; got {shapes}")
    # An empty vector is no joker here, as it is for cat.
    if len({(*p.shape[:axis], *p.shape[axis:][1:]) for p in parts}) > 1:
        raise ValueError(f"concat: shapes must agree but for axis {axis}")
    return clew.cat(parts, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """The array with a new axis of size one in the given place (or places).

    Args:
        x: an array.
        axis: the place, or a tuple of places, in the result.

    >>> clew.array_api.expand_dims(clew.zeros(2, 3), 1).shape
    clew.Size([2, 1, 3])
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    n = x.ndim + len(axes)
    places = {a % n for a in axes if -n <= a < n}
    if len(places) < len(axes):
        error = ValueError if all(-n <= a < n for a in axes) else IndexError
        raise error(f"expand_dims: axes {axes} are repeated or out of range for {n} dims")
    for a in sorted(places):
        x = clew.unsqueeze(x, a)
    return x


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The array in reverse order along the axes, or along all.

    Args:
        x: an array.
        axis: the axis or axes; None for all.

    >>> clew.array_api.flip(clew.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    if axis is None:
        axis = tuple(range(x.ndim))
    return clew.flip(x, axis if isinstance(axis, tuple) else (axis,))


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """The array with axes moved to other places; the others keep their order.

    Args:
        x: an array.
        source: the axis or axes.
        destination: their new places.

    >>> clew.array_api.moveaxis(clew.zeros(2, 3, 4), 0, 2).shape
    clew.Size([3, 4, 2])
    """
    return clew.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The array with its axes in another order.

    Args:
        x: an array.
        axes: all axes, in the new order.

    >>> clew.array_api.permute_dims(clew.zeros(2, 3, 4), (2, 0, 1)).shape
    clew.Size([4, 2, 3])
    """
    return clew.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times in a row, along an axis or of the flattened array.

    Args:
        x: an array.
        repeats: how often, for all elements or for each.
        axis: the axis; None for the flattened array.

    >>> clew.array_api.repeat(clew.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if axis is None:
        x, axis = clew.flatten(x), 0
    if isinstance(repeats, Tensor):
        repeats = repeats.to(clew.int64)
        if repeats.ndim < 2 and repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(x.shape[axis]).contiguous()
    return clew.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The array in another shape.

    Args:
        x: an array.
        shape: the shape, of as many elements; one size may be -1.
        copy: True always copies; False raises where a copy is needed; None copies where needed.

    >>> clew.array_api.reshape(clew.tensor([1, 2, 3, 4]), (2, -1))
    tensor([[1, 2],
            [3, 4]])
    """
    if copy:
        return clew.reshape(tensor_of("reshape", x).clone(), shape)
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: shape {shape} needs a copy, or does not fit") from error
    return clew.reshape(x, shape)


def roll(
    x: Tensor,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Tensor:
    """The array moved along the axes; what leaves at one end enters at the other.

    Args:
        x: an array.
        shift: by how many places, for all axes or for each.
        axis: the axis or axes; None moves the flattened array.

    >>> clew.array_api.roll(clew.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if axis is None:
        return clew.roll(x, shift)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    return clew.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """The array without the given axes, which must have size one.

    Args:
        x: an array.
        axis: the axis or axes.

    >>> clew.array_api.squeeze(clew.zeros(1, 3), 0).shape
    clew.Size([3])
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} must have size 1; got shape {list(x.shape)}")
    return clew.squeeze(x, axes) if axes else x


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays side by side along a new axis.

    Args:
        arrays: arrays of one shape.
        axis: the place of the new axis.

    >>> clew.array_api.stack([clew.tensor([1, 2]), clew.tensor([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return clew.stack(promoted("stack", *arrays), axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements of an axis at `indices`, in that order.

    Args:
        x: an array.
        indices: an array of integers; negative ones count from the end.
        axis: the axis; not needed for a vector.

    >>> clew.array_api.take(clew.tensor([10, 20, 30]), clew.tensor([2, 0]))
    tensor([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis is needed for an array of {x.ndim} dims")
        axis = 0
    axis = axis % x.ndim if -x.ndim <= axis < x.ndim else axis
    places = _places(indices, x, axis)
    out = clew.index_select(x, axis, places.reshape(-1))
    return out.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of each line along an axis at that line's `indices`.

    Args:
        x: an array.
        indices: an array of integers, of the shape of `x` but for the axis; negative ones count
            from the end.
        axis: the axis.

    >>> x = clew.tensor([[10, 20], [30, 40]])
    >>> clew.array_api.take_along_axis(x, clew.tensor([[1], [0]]), axis=1)
    tensor([[20],
            [30]])
    """
    return clew.take_along_dim(x, _places(indices, x, axis), axis)


def _places(indices: Tensor, x: Tensor, axis: int) -> Tensor:
    """int64 indices that count from the front."""
    places = indices.to(clew.int64)
    return clew.where(places < 0, places + x.shape[axis], places)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array beside itself, so many times along each axis.

    Args:
        x: an array.
        repetitions: how often, for each axis.

    >>> clew.array_api.tile(clew.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    return clew.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of an array along an axis.

    Args:
        x: an array.
        axis: the axis.

    Returns:
        A tuple of arrays without the axis.

    >>> clew.array_api.unstack(clew.tensor([[1, 2], [3, 4]]), axis=1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    return tuple(clew.unbind(x, axis))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Each matrix (of the last two axes) transposed.

    Args:
        x: matrices, (..., n, m).

    Returns:
        A view, (..., m, n).

    >>> clew.array_api.matrix_transpose(clew.zeros(4, 2, 3)).shape
    clew.Size([4, 3, 2])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: at least two dims are needed; got {x.ndim}")
    return x.mT


__all__: list[Any] = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "unstack",
]
