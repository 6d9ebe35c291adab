"""Sparse matrices of dense blocks, in compressed rows or columns of blocks (BSR, BSC)."""

# mypy: disable-error-code="override"
from __future__ import annotations

from typing import Any

import clew
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew.sparse._products import in_region, need_matrices, of_batch, scaled
from clew.sparse._tensor import (
    Coo,
    Pattern,
    _Sparse,
    compressed,
    constructors,
    coo,
    of_numbers,
    text_of_rows,
)

__all__ = ["Blocked", "blocked", "blocks_of", "rules"]


class Blocked(_Sparse):
    """A matrix of blocks of one size, of which some are there. Few operations take it: those of
    each element, products with dense matrices, and conversions.
    """

    _kind = "sparse tensors (clew.sparse_bsr, clew.sparse_bsc)"
    _pattern: Pattern  # of the blocks; of the transposed matrix where columns are compressed
    _by_rows: bool

    layout = property(lambda self: _dtypes.sparse_bsr if self._by_rows else _dtypes.sparse_bsc)
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: False)

    def _need(self, by_rows: bool, name: str) -> Pattern:
        if self._by_rows is not by_rows:
            wanted = "sparse_bsr" if by_rows else "sparse_bsc"
            raise RuntimeError(
                f"{name}: expected a tensor of layout {wanted}; got {self.layout}; convert with "
                f".to_{wanted}()"
            )
        return self._pattern

    def crow_indices(self) -> Tensor:
        """Where each row of blocks begins, and the last one ends."""
        return self._need(True, "crow_indices").crow

    def col_indices(self) -> Tensor:
        """The column of each block."""
        return self._need(True, "col_indices").col

    def ccol_indices(self) -> Tensor:
        """Where each column of blocks begins, and the last one ends."""
        return self._need(False, "ccol_indices").crow

    def row_indices(self) -> Tensor:
        """The row of each block."""
        return self._need(False, "row_indices").col

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        """How many dims each element has; blocks are no elements."""
        return int(self._elements.dim()) - 3

    def is_coalesced(self) -> bool:
        """Whether places are named once; this layout's always are."""
        return True

    def _with(self, values: Tensor) -> Blocked:
        return blocked(self._pattern, values, self._by_rows)

    def places(self) -> tuple[Tensor, Tensor]:
        """The row and the column of each block."""
        p = self._pattern
        return (p.rows(), p.col.long()) if self._by_rows else (p.col.long(), p.rows())

    def block(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return int(self._elements.shape[1]), int(self._elements.shape[2])

    def _saved_parts(self) -> Any:
        leaf = self._elements.detach().requires_grad_(self.requires_grad)
        parts = (self._pattern.crow, self._pattern.col, leaf, tuple(self.shape))
        return "sparse_bsr" if self._by_rows else "sparse_bsc", parts

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return text_of_rows(self)

    def _reduced(self) -> Any:
        p, values = self._pattern, self._elements
        args = (p.crow, p.col, values.detach(), tuple(self.shape), self._by_rows)
        return _rebuild, (*args, values.requires_grad)


def _rebuild(
    crow: Any, col: Any, values: Any, shape: Any, by_rows: bool, requires_grad: bool
) -> Blocked:
    make = constructors["bsr" if by_rows else "bsc"]
    made: Blocked = make(crow, col, values, shape, requires_grad=requires_grad)
    return made


def blocked(pattern: Pattern, values: Tensor, by_rows: bool) -> Blocked:
    """A matrix of blocks, of parts that fit."""
    rows, columns = pattern.shape if by_rows else pattern.shape[::-1]
    shape = (rows * values.shape[1], columns * values.shape[2], *values.shape[3:])
    made: Blocked = Blocked._over(shape, values)
    made._pattern, made._by_rows = pattern, by_rows
    return made


def _block_size(name: str, shape: Any, blocksize: Any) -> tuple[int, int]:
    if isinstance(blocksize, int) and not isinstance(blocksize, bool):
        blocksize = (blocksize, blocksize)
    sizes = tuple(int(n) for n in blocksize)
    if len(sizes) != 2 or min(sizes) < 1:
        raise RuntimeError(f"{name}: blocksize must be two positive numbers; got {list(sizes)}")
    if shape[0] % sizes[0] or shape[1] % sizes[1]:
        raise RuntimeError(
            f"{name}: tensor sparse size ({shape[0]},{shape[1]}) must be divisible by given "
            f"blocksize ({sizes[0]},{sizes[1]})"
        )
    return sizes[0], sizes[1]


def blocks_of(name: str, dense: Tensor, blocksize: Any, dense_dim: Any, by_rows: bool) -> Blocked:
    """Those blocks of a dense matrix that have an element other than 0.

    Args:
        name: of the operation, for errors.
        dense: the matrix.
        blocksize: rows and columns of a block.
        dense_dim: how many dims, the last ones, are those of each element; None for none.
        by_rows: compress rows of blocks, not columns.
    """
    inner = 0 if dense_dim is None else int(dense_dim)
    if inner < 0 or dense.dim() != 2 + inner:
        raise NotImplementedError(
            f"{name}: expected a matrix of elements of {inner} dims; got shape "
            f"{list(dense.shape)}; convert matrix by matrix"
        )
    a, b = _block_size(name, dense.shape, blocksize)
    n, m, *rest = dense.shape
    grid = dense.reshape(n // a, a, m // b, b, *rest).transpose(1, 2)
    convert: Any = grid.to_sparse_csr if by_rows else grid.to_sparse_csc
    found = convert(dense_dim=2 + inner)
    return blocked(found._pattern, found._elements, by_rows)


def _blocks_of_coo(name: str, x: Coo, blocksize: Any, by_rows: bool) -> Blocked:
    """Those blocks of a matrix in coordinates that have an element."""
    x = x.coalesce()
    a, b = _block_size(name, x.shape, blocksize)
    n, m = int(x.shape[0]) // a, int(x.shape[1]) // b
    row, column = x._ind.unbind(0)
    first, second, (rows, columns) = row // a, column // b, (n, m)
    if not by_rows:
        first, second, rows, columns = second, first, m, n
    places, block = clew.unique(first * max(columns, 1) + second, return_inverse=True)
    zeros = x._elements.new_zeros((places.shape[0], a, b, *x._elements.shape[1:]))
    values = zeros.index_put((block, row % a, column % b), x._elements)
    counts = clew.bincount(places // max(columns, 1), minlength=rows)
    crow = clew.cat([counts.new_zeros(1), counts.cumsum(0)])
    return blocked(Pattern(crow, places % max(columns, 1), (rows, columns)), values, by_rows)


def to_dense(x: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    grid = compressed(x._pattern, x._elements, x._by_rows).to_dense(dtype)
    return grid.transpose(1, 2).reshape(tuple(x.shape))


def to_coo(x: Any, sparse_dim: Any = None) -> Any:
    """Every element of the blocks that are there, zeros among them."""
    if sparse_dim not in (None, 2):
        return NotImplemented
    return coo(places_of(x), x._elements.flatten(0, 2), tuple(x.shape), False).coalesce()


def places_of(x: Blocked) -> Tensor:
    """The coordinates of the elements, block by block."""
    (a, b), (row, column) = x.block(), x.places()
    rows = row[:, None, None] * a + clew.arange(a)[:, None]
    columns = column[:, None, None] * b + clew.arange(b)
    rows, columns = clew.broadcast_tensors(rows, columns)
    return clew.stack([rows.flatten(), columns.flatten()])


def to_layout(
    x: Any,
    *args: Any,
    layout: Any = None,
    blocksize: Any = None,
    sparse_dim: Any = None,
    dense_dim: Any = None,
) -> Any:
    if dense_dim not in (None, x.dense_dim()) or len(args) > 1:
        return NotImplemented
    if layout is None or layout is _dtypes.sparse_coo:
        return to_coo(x, *(args or (sparse_dim,))) if blocksize is None else NotImplemented
    if layout is _dtypes.strided:
        return to_dense(x)
    if layout in (_dtypes.sparse_bsr, _dtypes.sparse_bsc):
        return _to_blocks(x, blocksize, layout is _dtypes.sparse_bsr)
    if blocksize is not None or layout not in (_dtypes.sparse_csr, _dtypes.sparse_csc):
        return NotImplemented
    return to_coo(x).to_sparse(layout=layout)


def _to_blocks(x: Any, blocksize: Any, by_rows: bool) -> Any:
    name = "to_sparse_bsr" if by_rows else "to_sparse_bsc"
    size = x.block() if blocksize is None else _block_size(name, x.shape, blocksize)
    if size != x.block():
        raise RuntimeError(
            f"{name}: conversion from {x.layout} with blocksize changed from {list(x.block())} to "
            f"{list(size)} is not supported; convert with .to_dense() first"
        )
    if x._by_rows is by_rows:
        return x
    turned, order = x._pattern.turned()
    return blocked(turned, x._elements.index_select(0, order), by_rows)


def matmul(x: Any, y: Any) -> Any:
    """The product with a dense vector, matrix or batch of matrices."""
    if not isinstance(y, Blocked) and isinstance(x, Blocked) and not isinstance(y, _Sparse):
        if not y.dim() or x.dense_dim():
            return NotImplemented
        if y.dim() > 2:
            return of_batch(matmul, x, y)
        if y.shape[0] != x.shape[1]:
            raise RuntimeError(
                f"matmul: shapes do not fit; got {list(x.shape)} and {list(y.shape)}"
            )
        if y.dim() == 1:
            return matmul(x, y.unsqueeze(1)).squeeze(1)
        (a, b), (row, column) = x.block(), x.places()
        parts = y.reshape(y.shape[0] // b, b, y.shape[1]).index_select(0, column)
        products = x._elements @ parts
        zeros = products.new_zeros((x.shape[0] // a, a, y.shape[1]))
        return zeros.index_add(0, row, products).reshape(x.shape[0], y.shape[1])
    if isinstance(y, Blocked) and not isinstance(x, _Sparse) and not y.dense_dim():
        if x.dim() == 1:
            return matmul(transpose(y), x)
        if x.dim() > 2:
            return of_batch(matmul, x, y)
        return matmul(transpose(y), x.t()).t() if x.dim() == 2 else NotImplemented
    return NotImplemented


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if isinstance(input, _Sparse):
        return NotImplemented
    need_matrices(input, mat1, mat2)
    product = matmul(mat1, mat2)
    if product is NotImplemented:
        return product
    product = scaled(product, alpha)
    return product if beta == 0 else scaled(in_region(input)[0], beta) + product


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if isinstance(input, Blocked) and not isinstance(weight, _Sparse):
        out = matmul(input, weight.t())
        return out if bias is None else out + in_region(bias)[0]
    if isinstance(input, _Sparse) or not isinstance(weight, Blocked):
        return NotImplemented
    out = matmul(input, transpose(weight))
    return out if bias is None else out + in_region(bias)[0]


def transpose(x: Any, dim0: int = 0, dim1: int = 1) -> Any:
    n = x.dim()
    if not all(-n <= d < n for d in (dim0, dim1)):
        raise IndexError(f"transpose: dims must be in [{-n}, {n - 1}]; got {dim0} and {dim1}")
    if dim0 % n == dim1 % n:
        return x
    if {dim0 % n, dim1 % n} != {0, 1}:
        return NotImplemented
    return blocked(x._pattern, x._elements.transpose(1, 2), not x._by_rows)


def total(x: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
    return NotImplemented if args or options else x._elements.sum(dtype=dtype)


def adjoint(x: Any) -> Any:
    made = transpose(x)
    return made._with(made._elements.conj()) if x.is_complex() else made


def copy_(x: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(x, Blocked) or not x._has_places_of(source) or x.block() != source.block():
        return NotImplemented
    x._elements.copy_(source._elements)
    return x


def rules(shared: dict[str, Any], elementwise: tuple[str, ...]) -> dict[str, Any]:
    """What operations do with matrices of blocks.

    Args:
        shared: those of one compressed matrix.
        elementwise: the names of those that only look at the elements.
    """

    def of_same(sign: int) -> Any:
        def rule(x: Any, y: Any, *, alpha: Any = 1) -> Any:
            if not isinstance(x, Blocked) or not isinstance(y, Blocked):
                return NotImplemented
            if not x._has_places_of(y) or x.block() != y.block():
                return NotImplemented
            if sign < 0:
                return x._with(x._elements.sub(y._elements, alpha=alpha))
            return x._with(x._elements.add(y._elements, alpha=alpha))

        return rule

    def of_dims(name: str, first: int, second: int) -> Any:
        def rule(x: Any, y: Any) -> Any:
            if (x.dim(), y.dim()) != (first, second):
                raise RuntimeError(
                    f"{name}: operands must have {first} and {second} dimensions; got shapes "
                    f"{list(x.shape)} and {list(y.shape)}"
                )
            return matmul(x, y)

        return rule

    return {
        **{name: shared[name] for name in (*elementwise, "zero_", "detach_")},
        **of_numbers(shared),
        "add": of_same(1),
        "sub": of_same(-1),
        "sum": total,
        "to_dense": to_dense,
        "to_sparse": to_layout,
        "to_sparse_coo": to_coo,
        "to_sparse_csr": lambda x, dense_dim=None: to_layout(
            x, layout=_dtypes.sparse_csr, dense_dim=dense_dim
        ),
        "to_sparse_csc": lambda x, dense_dim=None: to_layout(
            x, layout=_dtypes.sparse_csc, dense_dim=dense_dim
        ),
        **block_rules(),
        "matmul": matmul,
        "__rmatmul__": lambda x, y: matmul(y, x),
        "mm": of_dims("mm", 2, 2),
        "mv": of_dims("mv", 2, 1),
        "addmm": addmm,
        "linear": linear,
        "transpose": transpose,
        "swapaxes": transpose,
        "t": transpose,
        "adjoint": adjoint,
        "copy_": copy_,
    }


def block_rules() -> dict[str, Any]:
    """Conversions to blocks of all sparse matrices."""

    def rule(by_rows: bool) -> Any:
        name = "to_sparse_bsr" if by_rows else "to_sparse_bsc"

        def convert(x: Any, blocksize: Any, dense_dim: Any = None) -> Any:
            if isinstance(x, Blocked):
                same = dense_dim in (None, x.dense_dim())
                return _to_blocks(x, blocksize, by_rows) if same else NotImplemented
            if x.sparse_dim() != 2 or dense_dim not in (None, x.dense_dim()):
                return NotImplemented
            return _blocks_of_coo(name, x.to_sparse_coo(), blocksize, by_rows)

        return convert

    return {"to_sparse_bsr": rule(True), "to_sparse_bsc": rule(False)}
