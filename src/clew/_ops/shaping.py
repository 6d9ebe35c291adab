"""Shape functions written in Python: of many tensors, into views, in place."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_int
from clew._base.overriding import asks_classes
from clew._base.promotion import promote_types, result_type
from clew._base.settling import settle
from clew._C import Tensor

__all__ = [
    "as_strided_scatter",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "cartesian_prod",
    "combinations",
    "constant_pad_nd",
    "diagonal_scatter",
    "embedding",
    "index_put",
    "index_put_",
    "index_reduce",
    "meshgrid",
    "narrow_copy",
    "nonzero",
    "select_scatter",
    "slice_scatter",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
]

_ops = _C.ops


def _written(name: str, made: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return made
    from clew._ops.primitive import write_out

    return write_out(name, made, out)


def _one_list(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    return (
        tuple(tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list))
        else tensors
    )


def _require_tensors(name: str, tensors: Sequence[Any]) -> None:
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): element {i} must be a Tensor; got {type(t).__name__}")


def _at_least(name: str, tensors: tuple[Any, ...], one: Callable[[Tensor], Tensor]) -> Any:
    single = len(tensors) == 1 and isinstance(tensors[0], Tensor)
    tensors = _one_list(tensors)
    _require_tensors(name, tensors)
    return one(tensors[0]) if single else tuple(one(t) for t in tensors)


@asks_classes
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one dimension.

    Args:
        tensors: one tensor, or several, or a list of them.

    Returns: a view for one tensor, else a tuple of them.

    >>> clew.atleast_1d(clew.tensor(3.0)).tolist()
    [3.0]
    """
    return _at_least("atleast_1d", tensors, lambda t: t.reshape(1) if t.ndim == 0 else t)


@asks_classes
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two dimensions, a vector becoming a row.

    Args:
        tensors: one tensor, or several, or a list of them.

    Returns: a view for one tensor, else a tuple of them.

    >>> clew.atleast_2d(clew.tensor([1, 2])).tolist()
    [[1, 2]]
    """
    return _at_least("atleast_2d", tensors, _with_rows)


def _with_rows(t: Tensor) -> Tensor:
    return t.reshape(1, 1) if t.ndim == 0 else t.unsqueeze(0) if t.ndim == 1 else t


@asks_classes
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three dimensions.

    Args:
        tensors: one tensor, or several, or a list of them.

    Returns: a view for one tensor, else a tuple of them.

    >>> list(clew.atleast_3d(clew.ones(2, 3)).shape)
    [2, 3, 1]
    """

    def one(t: Tensor) -> Tensor:
        if t.ndim == 0:
            return t.reshape(1, 1, 1)
        if t.ndim == 1:
            return t.unsqueeze(0).unsqueeze(-1)
        return t.unsqueeze(-1) if t.ndim == 2 else t

    return _at_least("atleast_3d", tensors, one)


def _dtype_of_blocks(tensors: Sequence[Tensor]) -> _C.dtype:
    """The dtype of an operation on all of them: 0-d tensors change no more than the kind."""
    shaped, single = (
        [t.dtype for t in tensors if (t.ndim > 0) is has_dims] for has_dims in (True, False)
    )
    found = [functools.reduce(promote_types, dtypes) for dtypes in (shaped, single) if dtypes]
    if len(found) == 1:
        return found[0]
    return result_type(_C.zeros(1, dtype=found[0]), _C.zeros((), dtype=found[1]))


@asks_classes
def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with the given matrices along its diagonal and zeros elsewhere.

    Args:
        tensors: matrices; vectors count as rows, 0-d tensors as 1x1.

    >>> clew.block_diag(clew.tensor([[1, 2]]), clew.tensor(3)).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    tensors = _one_list(tensors)
    _require_tensors("block_diag", tensors)
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                f"block_diag: tensors must have at most 2 dimensions; got {list(t.shape)} at {i}"
            )
    if len({t.dtype for t in tensors}) > 1:
        dtype = _dtype_of_blocks(tensors)
        tensors = tuple(t.to(dtype) for t in tensors)
    blocks = [_with_rows(t) for t in tensors]
    widths = [b.shape[1] for b in blocks]
    rows, before, behind = [], 0, sum(widths)
    for b, width in zip(blocks, widths):
        behind -= width
        rows.append(_ops._constant_pad(b, (before, behind)))
        before += width
    return _ops.cat(rows) if rows else _C.zeros(1, 0)


@asks_classes
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids: each vector spread over a dimension of its own.

    Args:
        tensors: vectors of one dtype, or a list of them.
        indexing: 'ij', or 'xy' to exchange the first two dimensions.

    Returns: a tuple of views, one for each vector.

    >>> [g.tolist() for g in clew.meshgrid(clew.tensor([1, 2]), clew.tensor([3]), indexing='ij')]
    [[[1], [2]], [[3], [3]]]
    """
    return _ops.meshgrid(_one_list(tensors), indexing=indexing)


@asks_classes
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, a row each.

    >>> clew.cartesian_prod(clew.tensor([1, 2]), clew.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    tensors = _one_list(tensors)
    _require_tensors("cartesian_prod", tensors)
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(
                f"cartesian_prod: tensors must have one dimension; got shape {list(t.shape)}"
            )
    if len(tensors) == 1:
        return tensors[0]
    return _ops.stack([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


def _check_combinations(n: int, r: int, with_replacement: bool) -> None:
    """Raises where there are more than memory could hold, before the first is made."""
    items = n + r - 1 if with_replacement else n
    if r == 0 or n == 0 or items < r:
        return
    few = min(r, items - r)
    digits, top = 0.0, math.log(2**40 / r)  # of the number of rows, added up to what is too many
    for k in range(few):
        digits += math.log((items - k) / (k + 1))
        if digits > top:
            raise RuntimeError(
                f"combinations: {n} elements have too many combinations of {r}; choose fewer"
            )


@asks_classes
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to choose r elements of a vector, a row each.

    Args:
        input: a vector.
        r: how many are chosen.
        with_replacement: whether an element may be chosen again.

    >>> clew.combinations(clew.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if input.ndim != 1:
        raise RuntimeError(
            f"combinations: input must have one dimension; got shape {list(input.shape)}"
        )
    r = need_int("combinations", "r", r)
    need_bools("combinations", with_replacement=with_replacement)
    if r < 0:
        raise RuntimeError(f"combinations: r must not be negative; got {r}")
    _check_combinations(input.shape[0], r, with_replacement)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [list(c) for c in choose(range(input.shape[0]), r)]
    if r == 0:
        return input.new_empty(0)
    return input[_C.tensor(rows, dtype=_dtypes.int64).reshape(len(rows), r)]


@asks_classes
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Where the elements are not zero.

    Args:
        input: any tensor.
        out: receives the result.
        as_tuple: give one vector of indices for each dimension instead of one row for each element.

    Returns: int64, one row for each nonzero element in row-major order; or a tuple of vectors.

    >>> clew.nonzero(clew.tensor([0, 5, 6])).tolist()
    [[1], [2]]
    """
    if as_tuple:
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
    at = _rows_to_reduce(dim, index, source, reduce)
    made = input.scatter_reduce(dim, at, source, reduce, include_self=include_self)
    return _written("index_reduce", made, out)


def _rows_to_reduce(dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """The index of every element of the source."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"index_reduce: reduce must be one of {_REDUCTIONS}; got {reduce!r}")
    if index.ndim > 1:
        raise IndexError("index_reduce: index must be a vector")
    if index.dtype not in (_dtypes.int64, _dtypes.int32):
        raise RuntimeError(f"index_reduce: index must be int64 or int32; got {index.dtype}")
    shape = [-1 if d == dim % max(source.ndim, 1) else 1 for d in range(source.ndim)]
    return index.long().reshape(shape).expand(source.shape)


def _index_reduce_(
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
    at = _rows_to_reduce(dim, index, source, reduce)
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
    return _written("select_scatter", made, out)


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
    return _written("slice_scatter", made, out)


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
    return _written("diagonal_scatter", made, out)


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
    return _written("as_strided_scatter", made, out)


@asks_classes
def narrow_copy(
    input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None
) -> Tensor:
    """A range of a dimension, copied.

    Args:
        input: the tensor.
        dim: the dimension.
        start: the first index.
        length: how many.

    Returns:
        a new tensor.

    >>> clew.arange(4).narrow_copy(0, 1, 2).tolist()
    [1, 2]
    """
    return _written("narrow_copy", _ops._contiguous(input.narrow(dim, start, length)), out)


def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """Adds elements of one value around the input; see :func:`clew.nn.functional.pad`.

    >>> clew.constant_pad_nd(clew.tensor([1]), (1, 1), 7).tolist()
    [7, 1, 7]
    """
    return _ops._constant_pad(input, pad, value)


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table that indices name; see :func:`clew.nn.functional.embedding`.

    >>> clew.embedding(clew.tensor([[1.0], [2.0]]), clew.tensor([1, 0])).tolist()
    [[2.0], [1.0]]
    """
    if sparse:
        raise NotImplementedError(
            "embedding: sparse=True is not supported; leave it out for a dense gradient"
        )
    return _ops._embedding(weight, indices, padding_idx, scale_grad_by_freq)


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
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
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


# PyTorch's do not say that the parts share memory; here they say so, and are safe.
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of a tensor's pieces along a dim, as `chunk` gives them.

    Args:
        input: the tensor.
        chunks: into how many pieces; fewer where the dim is short.
        dim: along which.

    >>> [part.tolist() for part in clew.unsafe_chunk(clew.arange(3), 2)]
    [[0, 1], [2]]
    """
    parts: tuple[Tensor, ...] = _ops.chunk(input, chunks, dim)
    return parts


def unsafe_split(input: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of a tensor's pieces along a dim, as `split` gives them.

    Args:
        input: the tensor.
        split_size: the size of a piece (the last may be smaller), or the sizes of all.
        dim: along which.

    >>> [part.tolist() for part in clew.unsafe_split(clew.arange(3), 2)]
    [[0, 1], [2]]
    """
    parts: tuple[Tensor, ...] = _ops.split(input, split_size, dim)
    return parts


def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Views of a tensor's pieces of given sizes along a dim.

    Args:
        input: the tensor.
        split_sizes: the sizes; their sum is the dim's.
        dim: along which.

    >>> [part.tolist() for part in clew.unsafe_split_with_sizes(clew.arange(3), [1, 2])]
    [[0], [1, 2]]
    """
    parts: tuple[Tensor, ...] = _ops.split_with_sizes(input, split_sizes, dim)
    return parts


# Methods that change the shape in place, with the arguments of their examples.
_SHAPE_ARGUMENTS = {
    "squeeze": "0",
    "unsqueeze": "0",
    "t": "",
    "transpose": "0, 1",
    "swapaxes": "0, 1",
    "swapdims": "0, 1",
    "as_strided": "(2,), (1,)",
}


def _shape_changer(name: str) -> Callable[..., Tensor]:
    view = getattr(_ops, name)

    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        settle(self)
        return _ops._adopt(self, view(self, *args, **kwargs))

    change.__name__ = change.__qualname__ = f"{name}_"
    change.__doc__ = f"""The same as `{name}` in place: the tensor itself gets the new shape.

    >>> x = clew.ones(1, 2)
    >>> x.{name}_({_SHAPE_ARGUMENTS[name]}) is x
    True
    """
    return change


_METHODS: dict[str, Any] = {
    "nonzero": nonzero,
    "index_put": index_put,
    "index_put_": index_put_,
    "index_reduce": index_reduce,
    "index_reduce_": _index_reduce_,
    "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
    "diagonal_scatter": diagonal_scatter,
    "as_strided_scatter": as_strided_scatter,
    "narrow_copy": narrow_copy,
    "unsafe_chunk": unsafe_chunk,
    "unsafe_split": unsafe_split,
    "unsafe_split_with_sizes": unsafe_split_with_sizes,
}
for _name in _SHAPE_ARGUMENTS:
    _METHODS[f"{_name}_"] = _shape_changer(_name)
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
