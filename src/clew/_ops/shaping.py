"""Shape functions written in Python: of many tensors, into views, in place."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew import _C
from clew._base.arguments import need_bools, need_int
from clew._base.overriding import asks_classes
from clew._base.promotion import promote_types, result_type
from clew._base.settling import settle
from clew._C import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "cartesian_prod",
    "combinations",
    "constant_pad_nd",
    "embedding",
    "meshgrid",
    "narrow_copy",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
]

_ops = _C.ops


def _written(name: str, made: Tensor, out: Tensor | None, records: bool = False) -> Tensor:
    if out is None:
        return made
    from clew._ops.primitive import write_out

    return write_out(name, made, out, records=records)


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
    if r == 0:
        return input.new_empty(0)
    n = input.shape[0]
    if r == 2:
        return input[_C.triu_indices(n, n, 0 if with_replacement else 1).t()]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.fromiter(itertools.chain.from_iterable(choose(range(n), r)), np.int64)
    return input[_C.from_numpy(places.reshape(-1, r))]


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


@asks_classes
def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """Adds elements of one value around the input; see :func:`clew.nn.functional.pad`.

    >>> clew.constant_pad_nd(clew.tensor([1]), (1, 1), 7).tolist()
    [7, 1, 7]
    """
    return _ops._constant_pad(input, pad, value)


@asks_classes
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


def _writable(input: Tensor, parts: tuple[Tensor, ...], dim: int) -> tuple[Tensor, ...]:
    """Parts that may be written to while gradients are recorded, which those of split may not."""
    if not (input.requires_grad and _C.is_grad_enabled()):
        return parts
    if input.is_leaf:  # whose memory nobody writes to then
        input = input.clone()
    made, start = [], 0
    for part in parts:
        made.append(input.narrow(dim, start, part.shape[dim]))
        start += part.shape[dim]
    return tuple(made)


# PyTorch's do not say that the parts share memory; here they say so, and are safe.
@asks_classes
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of a tensor's pieces along a dim, as `chunk` gives them.

    They may be written to where those of `split` may not: while gradients are recorded.

    Args:
        input: the tensor.
        chunks: into how many pieces; fewer where the dim is short.
        dim: along which.

    >>> [part.tolist() for part in clew.unsafe_chunk(clew.arange(3), 2)]
    [[0, 1], [2]]
    """
    return _writable(input, _ops.chunk(input, chunks, dim), dim)


@asks_classes
def unsafe_split(input: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of a tensor's pieces along a dim, as `split` gives them.

    They may be written to where those of `split` may not: while gradients are recorded.

    Args:
        input: the tensor.
        split_size: the size of a piece (the last may be smaller), or the sizes of all.
        dim: along which.

    >>> [part.tolist() for part in clew.unsafe_split(clew.arange(3), 2)]
    [[0, 1], [2]]
    """
    return _writable(input, _ops.split(input, split_size, dim), dim)


@asks_classes
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Views of a tensor's pieces of given sizes along a dim.

    They may be written to where those of `split` may not: while gradients are recorded.

    Args:
        input: the tensor.
        split_sizes: the sizes; their sum is the dim's.
        dim: along which.

    >>> [part.tolist() for part in clew.unsafe_split_with_sizes(clew.arange(3), [1, 2])]
    [[0], [1, 2]]
    """
    return _writable(input, _ops.split_with_sizes(input, split_sizes, dim), dim)


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
    "narrow_copy": narrow_copy,
    "unsafe_chunk": unsafe_chunk,
    "unsafe_split": unsafe_split,
    "unsafe_split_with_sizes": unsafe_split_with_sizes,
}
for _name in _SHAPE_ARGUMENTS:
    _METHODS[f"{_name}_"] = _shape_changer(_name)
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
