"""Elements found and put by index, and tensors of which a part is replaced."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, wrapped_dim
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.shaping import _written

__all__ = [
    "as_strided_scatter",
    "diagonal_scatter",
    "index_put",
    "index_put_",
    "index_reduce",
    "nonzero",
    "select_scatter",
    "slice_scatter",
    "unravel_index",
]

_ops = _C.ops


@asks_classes
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Where the elements are not zero.

    Args:
        input: any tensor.
        out: receives the result, which must not be a tuple then.
        as_tuple: give one vector of indices for each dimension instead of one row for each element.

    Returns: int64, one row for each nonzero element in row-major order; or a tuple of vectors.

    >>> clew.nonzero(clew.tensor([0, 5, 6])).tolist()
    [[1], [2]]
    """
    if as_tuple is not False:
        need_bools("nonzero", as_tuple=as_tuple)
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero: out goes with as_tuple=False; got as_tuple=True")
        return _ops.nonzero(input, as_tuple=True)
    return _ops.nonzero(input) if out is None else _ops.nonzero(input, out=out)


def _index_arguments(name: str, indices: Any, values: Any) -> tuple[Any, Tensor]:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): indices must be a tuple of Tensors; got {type(indices).__name__}"
        )
    if not isinstance(values, Tensor):
        raise TypeError(f"{name}(): values must be a Tensor; got {type(values).__name__}")
    for t in indices:
        if isinstance(t, Tensor) and t.dtype is _dtypes.uint8:
            warnings.warn(
                "indexing with dtype clew.uint8 is now deprecated, please use a dtype clew.bool "
                "instead.",
                stacklevel=3,
            )
    return tuple(indices), values


@asks_classes
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """The input with values written where index tensors say.

    Args:
        input: any tensor.
        indices: a tuple of index tensors or masks, None for a whole dimension.
        values: of the input's dtype, broadcast to what is indexed.
        accumulate: add instead of replacing; repeated indices then add up.

    >>> clew.zeros(3).index_put((clew.tensor([0, 2]),), clew.tensor([1.0, 2.0])).tolist()
    [1.0, 0.0, 2.0]
    """
    indices, values = _index_arguments("index_put", indices, values)
    return _ops._index_put_at(input, values, indices, accumulate)


def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Writes values where index tensors say; see :func:`index_put`.

    >>> clew.zeros(2).index_put_((clew.tensor([1]),), clew.tensor(5.0)).tolist()
    [0.0, 5.0]
    """
    indices, values = _index_arguments("index_put_", indices, values)
    _ops._index_put_into(input, values, indices, accumulate)
    return input


_REDUCTIONS = ("prod", "mean", "amax", "amin")


@asks_classes
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Reduces the parts of a source that share an index.

    Args:
        input: any tensor.
        dim: the dimension the indices count in.
        index: int64 or int32, one dimension.
        source: its size along `dim` is that of the index.
        reduce: 'prod', 'mean', 'amax' or 'amin'.
        include_self: whether the input's own elements take part.
        out: receives the result.

    Returns:
        a new tensor.

    >>> clew.ones(2).index_reduce(0, clew.tensor([0, 0]), clew.tensor([2.0, 3.0]), "prod").tolist()
    [6.0, 1.0]
    """
    at = _rows_to_reduce(input, dim, index, source, reduce)
    made = input.scatter_reduce(dim, at, source, reduce, include_self=include_self)
    return _written("index_reduce", made, out)


def _rows_to_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """The index of every element of the source."""
    name = "index_reduce"
    if not isinstance(reduce, str):
        raise TypeError(f"{name}(): argument 'reduce' must be str, not {type(reduce).__name__}")
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"{name}: reduce must be one of {_REDUCTIONS}; got {reduce!r}")
    if index.ndim > 1:
        raise IndexError(f"{name}: index must be a vector")
    if index.dtype not in (_dtypes.int64, _dtypes.int32):
        raise RuntimeError(f"{name}: index must be int64 or int32; got {index.dtype}")
    if source.dtype != input.dtype:
        raise RuntimeError(
            f"{name}: source must have the input's dtype; got {source.dtype} for {input.dtype}"
        )
    at = wrapped_dim(name, dim, input.ndim)
    count = index.numel()
    if source.ndim == 0 and count != 1:
        raise IndexError(f"{name}: a source without dimensions takes one index; got {count}")
    fitting = (*input.shape[:at], count, *input.shape[at + 1 :]) if input.ndim else ()
    if tuple(source.shape) != fitting:
        raise RuntimeError(
            f"{name}: source must have the input's shape with one part for each index along dim "
            f"{at}, {list(fitting)}; got {list(source.shape)}"
        )
    size = input.shape[at] if input.ndim else 1
    # The core's scatter_reduce would raise RuntimeError. Samples of vmap have no values to read.
    if count and not index.is_meta and not _C._vmap_depth():
        for number in (int(index.min()), int(index.max())):
            if not 0 <= number < size:
                raise IndexError(
                    f"{name}: index {number} is out of bounds for dimension {at} with size {size}"
                )
    shape = [-1 if d == at else 1 for d in range(source.ndim)]
    return index.long().reshape(shape).expand(source.shape)


def index_reduce_(
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """The same as :func:`index_reduce`, written into the tensor itself.

    >>> clew.ones(2).index_reduce_(0, clew.tensor([1]), clew.tensor([5.0]), "prod")
    tensor([1., 5.])
    """
    at = _rows_to_reduce(self, dim, index, source, reduce)
    return self.scatter_reduce_(dim, at, source, reduce, include_self=include_self)


def _scattered(name: str, input: Tensor, src: Tensor, pick: Callable[[Tensor], Tensor]) -> Tensor:
    out = input.clone()
    if _C._vmap_depth():
        # Samples of src need a copy each, even if they share the input.
        out = _ops.where(src.detach().isnan().any(), out, out)
    part = pick(out)
    if part.shape != src.shape:
        raise RuntimeError(f"{name}: src must have shape {list(part.shape)}; got {list(src.shape)}")
    part.copy_(src)
    return out


@asks_classes
def select_scatter(
    input: Tensor, src: Tensor, dim: int, index: int, *, out: Tensor | None = None
) -> Tensor:
    """The input with src at one index of a dimension.

    Args:
        input: the tensor.
        src: what is put in.
        dim: the dimension.
        index: where along dim.

    Returns:
        a new tensor.

    >>> clew.zeros(2, 2).select_scatter(clew.ones(2), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    made = _scattered("select_scatter", input, src, lambda t: t.select(dim, index))
    return _written("select_scatter", made, out, records=True)


@asks_classes
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The input with src in a slice of a dimension.

    Args:
        input: the tensor.
        src: what is put in.
        dim: the dimension.
        start: the first index; 0 when None.
        end: the index after the last; the size when None.
        step: from one index to the next.

    Returns:
        a new tensor.

    >>> clew.zeros(4).slice_scatter(clew.ones(2), 0, 1, 3).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    first, last = 0 if start is None else start, 2**62 if end is None else min(end, 2**62)
    made = _scattered("slice_scatter", input, src, lambda t: _ops._slice(t, dim, first, last, step))
    return _written("slice_scatter", made, out, records=True)


@asks_classes
def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The input with src on a diagonal.

    Args:
        input: the tensor.
        src: what is put in.
        offset: which diagonal: 0 the main one, 1 the one above.
        dim1: the first dimension of the planes.
        dim2: the second one.

    Returns:
        a new tensor.

    >>> clew.zeros(2, 2).diagonal_scatter(clew.ones(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    made = _scattered("diagonal_scatter", input, src, lambda t: t.diagonal(offset, dim1, dim2))
    return _written("diagonal_scatter", made, out, records=True)


@asks_classes
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Any,
    stride: Any,
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The input with src where a strided view of it would lie.

    Args:
        input: the tensor.
        src: what is put in.
        size: the shape of the view.
        stride: its steps, in elements.
        storage_offset: its first element's place; the input's when None.

    Returns:
        a new tensor.

    >>> clew.zeros(4).as_strided_scatter(clew.ones(2), (2,), (2,)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    made = _scattered(
        "as_strided_scatter", input, src, lambda t: t.as_strided(size, stride, storage_offset)
    )
    return _written("as_strided_scatter", made, out, records=True)


@asks_classes
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of a shape that flat indices stand for.

    Args:
        indices: integers, of any shape; negative ones count from the end.
        shape: the sizes, or one size.

    Returns:
        an int64 tensor for each dim, of the shape of indices.

    Raises:
        TypeError: the indices are not integers.
        ValueError: a size is negative.

    >>> [i.tolist() for i in clew.unravel_index(clew.tensor([5, 0]), (2, 3))]
    [[1, 0], [2, 0]]
    """
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(hasattr(s, "__index__") for s in sizes):
        raise TypeError(f"unravel_index: shape must be an int or a sequence of ints; got {shape!r}")
    sizes = tuple(sizes)
    if any(s < 0 for s in sizes):
        raise ValueError(f"unravel_index: sizes must not be negative; got {sizes}")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _C.bool:
        raise TypeError(f"unravel_index: indices must be integers; got {indices.dtype}")
    out = []
    indices = indices.long()
    for size in reversed(sizes):
        out.append(indices % size)
        indices = indices.div(size, rounding_mode="floor")
    return tuple(reversed(out))
