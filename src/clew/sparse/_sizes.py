"""Sparse tensors that are given another size in place, and those without elements."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.structured import placeholder
from clew.sparse._changes import take
from clew.sparse._rules import RULES, transpose
from clew.sparse._tensor import Coo, Pattern, _Sparse, compressed, coo

__all__ = [
    "resize_as_sparse_",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "without_elements",
]

_DATA = vars(Tensor)["data"]


def _become(x: Any, made: Any) -> Any:
    """Gives a tensor the places, the elements and the size of another one of its layout."""
    _DATA.__set__(x, placeholder(made.shape, made.dtype))
    return take(x, made)


def _need_coo(name: str, x: Any) -> None:
    if not isinstance(x, Coo):
        raise RuntimeError(
            f"{name}: expected a tensor of layout sparse_coo; got {x.layout}; convert with "
            ".to_sparse()"
        )


def _sizes_of(name: str, size: Any, sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    shape = tuple(int(n) for n in size)
    if sparse_dim < 0 or dense_dim < 0 or sparse_dim + dense_dim != len(shape):
        raise RuntimeError(
            f"{name}: size must have a number for each of the sparse and the dense dims; got "
            f"{list(shape)} for {sparse_dim} and {dense_dim}"
        )
    if any(n < 0 for n in shape):
        raise RuntimeError(f"{name}: size must not be negative; got {list(shape)}")
    return shape


def _cleared(x: Coo, shape: tuple[int, ...], sparse_dim: int) -> Coo:
    values = x._elements.detach().new_zeros((0, *shape[sparse_dim:]))
    ind = x._ind.new_zeros((sparse_dim, 0))
    return coo(ind, values.requires_grad_(x.requires_grad), shape, True)


def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Gives a sparse tensor another size in place. One that has elements keeps them: it must keep
    its number of sparse and of dense dims, and no dim may shrink.

    Args:
        size: the new size.
        sparse_dim, dense_dim: how many of its dims are sparse, and how many dense.

    Returns:
        the tensor. New places of its dense dims hold zeros.

    Raises:
        RuntimeError: the tensor has elements that do not fit.

    >>> clew.eye(2).to_sparse().sparse_resize_((2, 3), 2, 0).shape
    clew.Size([2, 3])
    """
    name = "sparse_resize_"
    _need_coo(name, self)
    shape = _sizes_of(name, size, sparse_dim, dense_dim)
    if not self._nnz():
        return _become(self, _cleared(self, shape, sparse_dim))
    if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()):
        raise RuntimeError(
            f"{name}: a tensor with elements must keep its {self.sparse_dim()} sparse and "
            f"{self.dense_dim()} dense dims; got {sparse_dim} and {dense_dim}; use "
            "sparse_resize_and_clear_() to lose the elements"
        )
    if any(new < old for new, old in zip(shape, self.shape)):
        raise RuntimeError(
            f"{name}: a tensor with elements cannot shrink, from {list(self.shape)} to "
            f"{list(shape)}; use sparse_resize_and_clear_() to lose the elements"
        )
    values = self._elements
    if shape[sparse_dim:] != tuple(values.shape[1:]):
        values = values.new_zeros((values.shape[0], *shape[sparse_dim:]))
        values[tuple(slice(0, n) for n in self._elements.shape)] = self._elements.detach()
        values.requires_grad_(self.requires_grad)
    return _become(self, coo(self._ind, values, shape, self._coalesced))


def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Gives a sparse tensor another size in place, and takes its elements away.

    Args:
        size: the new size.
        sparse_dim, dense_dim: how many of its dims are sparse, and how many dense.

    Returns:
        the tensor, all zero.

    Raises:
        RuntimeError: the numbers of dims do not fit the size.

    >>> clew.eye(2).to_sparse().sparse_resize_and_clear_((4, 3), 1, 1)._nnz()
    0
    """
    name = "sparse_resize_and_clear_"
    _need_coo(name, self)
    return _become(self, _cleared(self, _sizes_of(name, size, sparse_dim, dense_dim), sparse_dim))


def resize_as_sparse_(self: Any, the_template: Any) -> Any:
    """Gives a sparse tensor the size of another one in place, as :meth:`sparse_resize_` does.

    Args:
        the_template: a sparse tensor of the same layout.

    >>> clew.eye(2).to_sparse().resize_as_sparse_(clew.eye(3).to_sparse()).shape
    clew.Size([3, 3])
    """
    x, like = self, the_template
    if not isinstance(x, _Sparse) or not isinstance(like, _Sparse) or x.layout is not like.layout:
        raise RuntimeError(
            f"resize_as_sparse_: expected two sparse tensors of one layout; got {x.layout} and "
            f"{like.layout}"
        )
    if isinstance(x, Coo) and isinstance(like, Coo):
        if (tuple(x.shape), x.sparse_dim()) == (tuple(like.shape), like.sparse_dim()):
            return x
        return sparse_resize_(x, like.shape, like.sparse_dim(), like.dense_dim())
    if tuple(x.shape) == tuple(like.shape):
        return x
    raise NotImplementedError(
        f"resize_as_sparse_: a tensor of layout {x.layout} keeps its size; make a new one with "
        "clew.zeros_like()"
    )


def without_elements(
    name: str, layout: Any, shape: tuple[int, ...], dtype: Any, requires_grad: bool
) -> Any:
    """What clew.zeros() and clew.empty() make in a sparse layout."""
    values = clew.zeros(0, dtype=dtype, requires_grad=requires_grad)
    if layout is _dtypes.sparse_coo:
        return coo(clew.zeros((len(shape), 0), dtype=_C.int64), values, shape, True)
    if layout not in (_dtypes.sparse_csr, _dtypes.sparse_csc) or len(shape) != 2:
        raise RuntimeError(
            f"{name}: of sparse layouts, sparse_coo is offered, and sparse_csr and sparse_csc for "
            f"matrices; got layout={layout} and size {list(shape)}"
        )
    by_rows = layout is _dtypes.sparse_csr
    n, m = shape if by_rows else shape[::-1]
    none = clew.zeros(0, dtype=_C.int64)
    pattern = Pattern(clew.zeros(n + 1, dtype=_C.int64), none, (n, m))
    return compressed(pattern, values, by_rows)


def _resize_as_(x: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    return resize_as_sparse_(x, the_template)


def _turned(turn: Any) -> Any:
    """Dims of a tensor in coordinates in another order, in place."""

    def rule(x: Any, *args: Any) -> Any:
        if not isinstance(x, Coo):
            return NotImplemented
        made = turn(x, *args)
        return made if made is NotImplemented else _become(x, made)

    return rule


def _t_(x: Any) -> Any:
    if x.dim() > 2 or not isinstance(x, Coo):
        return NotImplemented
    return x if x.dim() < 2 else _become(x, transpose(x, 0, 1))


RULES.update(
    {
        "sparse_resize_": sparse_resize_,
        "sparse_resize_and_clear_": sparse_resize_and_clear_,
        "resize_as_sparse_": resize_as_sparse_,
        "resize_as_": _resize_as_,
        "t_": _t_,
        **dict.fromkeys(("transpose_", "swapaxes_", "swapdims_"), _turned(transpose)),
    }
)
