"""Batches of sparse matrices in compressed rows or columns, all with as many elements."""

# mypy: disable-error-code="override"
from __future__ import annotations

import math
from typing import Any

import clew
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew.sparse._tensor import (
    Compressed,
    Pattern,
    _Sparse,
    compressed,
    constructors,
    index_names,
    need,
    of_numbers,
)

__all__ = ["Batched", "batched"]


class Batched(_Sparse):
    """Several matrices in compressed rows (CSR) or columns (CSC). Few operations take them: those
    of each element, products with dense matrices, and taking one matrix out.
    """

    _kind = "batches of sparse matrices"
    _mapped_in_turn = True
    _patterns: list[Pattern]  # one for each matrix; of the transposed ones if columns come first
    _ends: Tensor
    _places: Tensor
    _by_rows: bool

    layout = Compressed.layout
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: self._by_rows)

    def crow_indices(self) -> Tensor:
        """Where each row begins, and the last one ends."""
        need(self, True, "crow_indices")
        return self._ends

    def col_indices(self) -> Tensor:
        """The column of each element."""
        need(self, True, "col_indices")
        return self._places

    def ccol_indices(self) -> Tensor:
        """Where each column begins, and the last one ends."""
        need(self, False, "ccol_indices")
        return self._ends

    def row_indices(self) -> Tensor:
        """The row of each element."""
        need(self, False, "row_indices")
        return self._places

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        """How many dims each element has."""
        return int(self._elements.dim() - self._places.dim())

    def is_coalesced(self) -> bool:
        """Whether places are named once; this layout's always are."""
        return True

    def _nnz(self) -> int:
        return int(self._places.shape[-1])

    def _with(self, values: Tensor) -> Batched:
        return batched(self._patterns, self._ends, self._places, values, self._by_rows)

    def matrices(self) -> list[Compressed]:
        """Each matrix, in order."""
        batch = self._places.dim() - 1
        values = self._elements.flatten(0, batch - 1).unbind(0)
        return [compressed(p, v, self._by_rows) for p, v in zip(self._patterns, values)]

    def _saved_parts(self) -> Any:
        leaf = self._elements.detach().requires_grad_(self.requires_grad)
        parts = (self._ends, self._places, leaf, tuple(self.shape))
        return "sparse_csr" if self._by_rows else "sparse_csc", parts

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        names = index_names(self._by_rows)
        parts = (self._ends, self._places)
        return self._text([*zip(names, parts), ("values", self._elements)])

    def _reduced(self) -> Any:
        values = self._elements
        args = (self._ends, self._places, values.detach(), tuple(self.shape), self._by_rows)
        return _rebuild, (*args, values.requires_grad)


def _rebuild(
    ends: Any, places: Any, values: Any, shape: Any, by_rows: bool, requires_grad: bool
) -> Batched:
    make = constructors["csr" if by_rows else "csc"]
    made: Batched = make(ends, places, values, shape, requires_grad=requires_grad)
    return made


def batched(
    patterns: list[Pattern], ends: Tensor, places: Tensor, values: Tensor, by_rows: bool
) -> Batched:
    """A batch of parts that fit."""
    batch, (n, m) = places.shape[:-1], patterns[0].shape
    rows, columns = (n, m) if by_rows else (m, n)
    shape = (*batch, rows, columns, *values.shape[places.dim() :])
    made: Batched = Batched._over(shape, values)
    made._patterns, made._ends, made._places, made._by_rows = patterns, ends, places, by_rows
    return made


def to_dense(x: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    dense = clew.stack([m.to_dense() for m in x.matrices()]).reshape(tuple(x.shape))
    return dense if dtype is None else dense.to(dtype)


def matmul(x: Any, y: Any) -> Any:
    if not isinstance(x, Batched) or isinstance(y, _Sparse) or not isinstance(y, Tensor):
        return NotImplemented
    batch = tuple(x._places.shape[:-1])
    if x.dense_dim() or tuple(y.shape[:-2]) != batch:
        return NotImplemented
    products = [m @ d for m, d in zip(x.matrices(), y.reshape(-1, *y.shape[-2:]).unbind(0))]
    return clew.stack(products).reshape((*batch, *products[0].shape))


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    n, batch = x.dim(), x._places.dim() - 1
    if not all(-n <= d < n for d in (dim0, dim1)):
        raise IndexError(f"transpose: dims must be in [{-n}, {n - 1}]; got {dim0} and {dim1}")
    if {dim0 % n, dim1 % n} != {batch, batch + 1}:
        return NotImplemented
    return batched(x._patterns, x._ends, x._places, x._elements, not x._by_rows)


def select(x: Any, dim: int, index: int) -> Any:
    size = int(x.shape[0])
    if dim % x.dim():
        return NotImplemented
    if not -size <= index < size:
        raise IndexError(f"select: index {index} is out of range for dim 0 of size {size}")
    ends, places, values = x._ends[index], x._places[index], x._elements[index]
    if places.dim() == 1:
        return compressed(x._patterns[index], values, x._by_rows)
    each = math.prod(int(n) for n in places.shape[:-1])
    first = index % size * each
    return batched(x._patterns[first : first + each], ends, places, values, x._by_rows)


def getitem(x: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(k, int) and not isinstance(k, bool) for k in keys):
        return NotImplemented
    for k in keys:
        x = x[k] if isinstance(x, Compressed) else select(x, 0, k)
    return x


def to_layout(x: Any, *args: Any, layout: Any = None, **options: Any) -> Any:
    same = layout is x.layout and not args and all(v is None for v in options.values())
    return x if same else NotImplemented


def rules(shared: dict[str, Any], elementwise: tuple[str, ...]) -> dict[str, Any]:
    """What operations do with batches.

    Args:
        shared: those of one matrix.
        elementwise: the names of those that only look at the elements.
    """

    return {
        **{name: shared[name] for name in (*elementwise, "zero_", "detach_")},
        **of_numbers(shared),
        "to_dense": to_dense,
        "to_sparse": to_layout,
        "to_sparse_csr": lambda x: to_layout(x, layout=_dtypes.sparse_csr),
        "to_sparse_csc": lambda x: to_layout(x, layout=_dtypes.sparse_csc),
        "matmul": matmul,
        "bmm": matmul,
        "transpose": transpose,
        "select": select,
        "__getitem__": getitem,
    }
