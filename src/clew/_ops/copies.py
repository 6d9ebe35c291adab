"""The view operations in a form that copies: each result has memory of its own."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_tensors
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import write_out

__all__ = [
    "alias_copy",
    "as_strided_copy",
    "detach_copy",
    "diagonal_copy",
    "expand_copy",
    "permute_copy",
    "select_copy",
    "slice_copy",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "t_copy",
    "transpose_copy",
    "unbind_copy",
    "unfold_copy",
    "unsqueeze_copy",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
]

_f = _C.functions


def _copied(name: str, view: Any, out: Any) -> Any:
    if isinstance(view, Tensor):
        made: Any = view.clone(memory_format=_dtypes.contiguous_format)
    else:
        made = tuple(v.clone(memory_format=_dtypes.contiguous_format) for v in view)
        if out is not None:
            write_out(name, made, out, records=True)
            return None
    return write_out(name, made, out, records=True)


def sliced(
    self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Every step-th part of a range of a dimension; None leaves an end open."""
    first, last = 0 if start is None else start, 2**62 if end is None else min(end, 2**62)
    return _C.ops._slice(self, dim, first, last, step)


@asks_classes
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input, copied.

    >>> clew.alias_copy(clew.tensor([1, 2]))
    tensor([1, 2])
    """
    need_tensors("alias_copy", input=input)
    return _copied("alias_copy", input, out)


@asks_classes
def as_strided_copy(
    input: Tensor,
    size: Any,
    stride: Any,
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The elements that lie at strides, copied.

    Args:
        input: the tensor.
        size: the shape.
        stride: the steps, in elements.
        storage_offset: the first element's place; the input's when None.

    >>> clew.as_strided_copy(clew.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    need_tensors("as_strided_copy", input=input)
    return _copied("as_strided_copy", input.as_strided(size, stride, storage_offset), out)


@asks_classes
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The input without history, copied.

    >>> clew.detach_copy(clew.ones(2, requires_grad=True))
    tensor([1., 1.])
    """
    need_tensors("detach_copy", input=input)
    return _copied("detach_copy", input.detach(), out)


@asks_classes
def diagonal_copy(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Tensor | None = None
) -> Tensor:
    """A diagonal, copied.

    Args:
        input: the tensor.
        offset: which diagonal: 0 the main one, 1 the one above.
        dim1: the first dimension of the planes.
        dim2: the second one.

    >>> clew.diagonal_copy(clew.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    need_tensors("diagonal_copy", input=input)
    return _copied("diagonal_copy", input.diagonal(offset, dim1, dim2), out)


@asks_classes
def expand_copy(
    input: Tensor, size: Any, *, implicit: bool = False, out: Tensor | None = None
) -> Tensor:
    """The input with dimensions of size 1 repeated, copied.

    >>> clew.expand_copy(clew.tensor([[1], [2]]), (2, 2)).tolist()
    [[1, 1], [2, 2]]
    """
    need_tensors("expand_copy", input=input)
    return _copied("expand_copy", input.expand(size), out)


@asks_classes
def permute_copy(input: Tensor, dims: Any, *, out: Tensor | None = None) -> Tensor:
    """The input with its dimensions in another order, copied.

    >>> clew.permute_copy(clew.ones(2, 3), (1, 0)).shape
    clew.Size([3, 2])
    """
    need_tensors("permute_copy", input=input)
    return _copied("permute_copy", input.permute(dims), out)


@asks_classes
def select_copy(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor:
    """One index of a dimension, copied.

    Args:
        input: the tensor.
        dim: the dimension.
        index: where along dim.

    >>> clew.select_copy(clew.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    need_tensors("select_copy", input=input)
    return _copied("select_copy", input.select(dim, index), out)


@asks_classes
def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A range of a dimension, copied.

    Args:
        input: the tensor.
        dim: the dimension.
        start: the first index; 0 when None.
        end: the index after the last; the size when None.
        step: from one index to the next.

    >>> clew.slice_copy(clew.arange(4), 0, 1, 3)
    tensor([1, 2])
    """
    need_tensors("slice_copy", input=input)
    return _copied("slice_copy", sliced(input, dim, start, end, step), out)


@asks_classes
def squeeze_copy(input: Tensor, dim: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The input without dimensions of size 1, copied.

    >>> clew.squeeze_copy(clew.ones(1, 2))
    tensor([1., 1.])
    """
    need_tensors("squeeze_copy", input=input)
    return _copied("squeeze_copy", input.squeeze() if dim is None else input.squeeze(dim), out)


@asks_classes
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The transposed matrix, copied.

    >>> clew.t_copy(clew.tensor([[1, 2]])).tolist()
    [[1], [2]]
    """
    need_tensors("t_copy", input=input)
    return _copied("t_copy", input.t(), out)


@asks_classes
def transpose_copy(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor:
    """The input with two dimensions exchanged, copied.

    Args:
        input: the tensor.
        dim0: one dimension.
        dim1: the other.

    >>> clew.transpose_copy(clew.tensor([[1, 2]]), 0, 1).tolist()
    [[1], [2]]
    """
    need_tensors("transpose_copy", input=input)
    return _copied("transpose_copy", input.transpose(dim0, dim1), out)


@asks_classes
def unfold_copy(
    input: Tensor, dimension: int, size: int, step: int, *, out: Tensor | None = None
) -> Tensor:
    """Windows along a dimension, copied.

    Args:
        input: the tensor.
        dimension: the dimension to slide along.
        size: the size of a window.
        step: from one window to the next.

    Returns:
        a new tensor, with a last dimension of that size more.

    >>> clew.unfold_copy(clew.arange(3), 0, 2, 1).tolist()
    [[0, 1], [1, 2]]
    """
    need_tensors("unfold_copy", input=input)
    return _copied("unfold_copy", input.unfold(dimension, size, step), out)


@asks_classes
def unsqueeze_copy(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """The input with a new dimension of size 1, copied.

    >>> clew.unsqueeze_copy(clew.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """
    need_tensors("unsqueeze_copy", input=input)
    return _copied("unsqueeze_copy", input.unsqueeze(dim), out)


@asks_classes
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Pairs as complex numbers, copied.

    >>> clew.view_as_complex_copy(clew.tensor([1.0, 2.0]))
    tensor(1.+2.j)
    """
    need_tensors("view_as_complex_copy", input=input)
    return _copied("view_as_complex_copy", _f["view_as_complex"](input), out)


@asks_classes
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers as pairs, copied.

    >>> clew.view_as_real_copy(clew.tensor(1 + 2j))
    tensor([1., 2.])
    """
    need_tensors("view_as_real_copy", input=input)
    return _copied("view_as_real_copy", _f["view_as_real"](input), out)


@asks_classes
def view_copy(input: Tensor, size: Any, *, out: Tensor | None = None) -> Tensor:
    """The input in another shape (or read as another dtype), copied.

    >>> clew.view_copy(clew.arange(4), (2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    need_tensors("view_copy", input=input)
    if isinstance(size, _C.dtype):
        return _copied("view_copy", input.view(size), out)
    return _copied("view_copy", input.reshape(size), out)


@asks_classes
def split_copy(
    input: Tensor, split_size: Any, dim: int = 0, *, out: Any = None
) -> tuple[Tensor, ...] | None:
    """Pieces of a dimension, copied; nothing when they go to ``out``.

    Args:
        input: the tensor.
        split_size: the size of a piece.
        dim: the dimension.

    >>> [p.tolist() for p in clew.split_copy(clew.arange(3), 2)]
    [[0, 1], [2]]
    """
    need_tensors("split_copy", input=input)
    return _copied("split_copy", input.split(split_size, dim), out)


@asks_classes
def split_with_sizes_copy(
    input: Tensor, split_sizes: Any, dim: int = 0, *, out: Any = None
) -> tuple[Tensor, ...] | None:
    """Pieces of a dimension, of given sizes, copied; nothing when they go to ``out``.

    Args:
        input: the tensor.
        split_sizes: the size of each piece.
        dim: the dimension.

    >>> [p.tolist() for p in clew.split_with_sizes_copy(clew.arange(3), [1, 2])]
    [[0], [1, 2]]
    """
    need_tensors("split_with_sizes_copy", input=input)
    return _copied("split_with_sizes_copy", input.split_with_sizes(split_sizes, dim), out)


@asks_classes
def unbind_copy(input: Tensor, dim: int = 0, *, out: Any = None) -> tuple[Tensor, ...] | None:
    """The parts along a dimension, copied; nothing when they go to ``out``.

    Args:
        input: the tensor.
        dim: the dimension.

    >>> [p.tolist() for p in clew.unbind_copy(clew.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    need_tensors("unbind_copy", input=input)
    return _copied("unbind_copy", input.unbind(dim), out)
