"""Methods of dense tensors: conversions to sparse layouts, and what only sparse ones have."""

from __future__ import annotations

from typing import Any

import clew
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.structured import of_own_class
from clew.sparse._batched import Batched, batched
from clew.sparse._blocked import Blocked, blocks_of
from clew.sparse._tensor import Compressed, Coo, compressed, coo


@of_own_class
def to_sparse_coo(self: Tensor, sparse_dim: int | None = None) -> Coo:
    """The tensor's nonzero elements in coordinates.

    Args:
        sparse_dim: how many dims, the first ones, are sparse; default: all.

    >>> clew.eye(2).to_sparse_coo()
    tensor(indices=tensor([[0, 1],
                           [0, 1]]),
           values=tensor([1., 1.]),
           size=(2, 2), nnz=2, layout=clew.sparse_coo)
    """
    dims = self.dim() if sparse_dim is None else int(sparse_dim)
    if not 0 <= dims <= self.dim() or (dims == 0 and self.dim()):
        raise RuntimeError(
            f"to_sparse: sparse_dim must be in [1, {self.dim()}] for a tensor of "
            f"{self.dim()} dims; got {dims}"
        )
    shown = self.detach() != 0
    if dims < self.dim():
        shown = shown.flatten(dims).any(-1)
    ind = shown.nonzero().t().contiguous()
    values = self[tuple(ind.unbind(0))] if dims else self.reshape(1)[: ind.shape[1]]
    return coo(ind, values, tuple(self.shape), True)


@of_own_class
def to_sparse(
    self: Tensor,
    *args: Any,
    layout: Any = None,
    sparse_dim: int | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """The tensor's nonzero elements, in a sparse layout.

    Args:
        args: the number of sparse dims, for the COO layout.
        layout: clew.sparse_coo (default), clew.sparse_csr, clew.sparse_csc, clew.sparse_bsr or
            clew.sparse_bsc.
        sparse_dim: the same as the first of args.
        blocksize: rows and columns of a block, for layouts of blocks.
        dense_dim: how many dims, the last ones, are those of each element.

    >>> clew.eye(2).to_sparse(layout=clew.sparse_csr).crow_indices()
    tensor([0, 1, 2])
    """
    if layout in (_dtypes.sparse_bsr, _dtypes.sparse_bsc):
        if blocksize is None:
            raise RuntimeError(f"to_sparse: give blocksize for layout {layout}")
        return blocks_of("to_sparse", self, blocksize, dense_dim, layout is _dtypes.sparse_bsr)
    if blocksize is not None:
        raise RuntimeError(f"to_sparse: blocksize is for layouts of blocks; got layout {layout}")
    if layout is None or layout is _dtypes.sparse_coo:
        if dense_dim is not None:
            if args or sparse_dim is not None:
                raise RuntimeError("to_sparse: give sparse_dim or dense_dim, not both")
            sparse_dim = self.dim() - int(dense_dim)
        return self.to_sparse_coo(
            *args, **({} if sparse_dim is None else {"sparse_dim": sparse_dim})
        )
    if layout is _dtypes.sparse_csr:
        return self.to_sparse_csr(dense_dim)
    if layout is _dtypes.sparse_csc:
        return self.to_sparse_csc(dense_dim)
    raise NotImplementedError(
        "to_sparse: layout must be clew.sparse_coo, clew.sparse_csr, clew.sparse_csc, "
        f"clew.sparse_bsr or clew.sparse_bsc; got {layout}"
    )


def _matrix(self: Tensor, name: str, dense_dim: int | None) -> Coo:
    inner = 0 if dense_dim is None else int(dense_dim)
    if inner < 0 or self.dim() != 2 + inner:
        raise RuntimeError(
            f"{name}: expected a matrix, of elements of {inner} dims; got shape {list(self.shape)}"
        )
    return to_sparse_coo(self, 2)


def _batch(self: Tensor, name: str, inner: int, by_rows: bool) -> Batched:
    """Several matrices, which must have as many elements each."""
    outer = self.dim() - 2 - inner
    batch = tuple(self.shape[:outer])
    convert = to_sparse_csr if by_rows else to_sparse_csc
    made: list[Any] = [convert(one, inner) for one in self.flatten(0, outer - 1).unbind(0)]
    counts = [m._nnz() for m in made]
    if not made or len(set(counts)) > 1:
        raise RuntimeError(
            f"{name}: a batch must have at least one matrix, and its matrices as many elements "
            f"each; got {counts[:8]}"
        )

    def joined(parts: list[Tensor]) -> Tensor:
        return clew.stack(parts).unflatten(0, batch)

    patterns = [m._pattern for m in made]
    ends, places = joined([p.crow for p in patterns]), joined([p.col for p in patterns])
    return batched(patterns, ends, places, joined([m._elements for m in made]), by_rows)


@of_own_class
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Compressed | Batched:
    """A matrix's nonzero elements in compressed rows; those of each of a batch of matrices.

    Args:
        dense_dim: how many dims, the last ones, are those of each element; default: none.

    >>> clew.eye(2).to_sparse_csr().col_indices()
    tensor([0, 1])
    """
    if self.dim() - (dense_dim or 0) > 2:
        return _batch(self, "to_sparse_csr", int(dense_dim or 0), True)
    found = _matrix(self, "to_sparse_csr", dense_dim)
    return compressed(found.pattern(), found._elements, True)


@of_own_class
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Compressed | Batched:
    """A matrix's nonzero elements in compressed columns; those of each of a batch of matrices.

    Args:
        dense_dim: how many dims, the last ones, are those of each element; default: none.

    >>> clew.eye(2).to_sparse_csc().row_indices()
    tensor([0, 1])
    """
    if self.dim() - (dense_dim or 0) > 2:
        return _batch(self, "to_sparse_csc", int(dense_dim or 0), False)
    turned = self.transpose(0, 1) if self.dim() > 1 else self
    found = _matrix(turned, "to_sparse_csc", dense_dim)
    return compressed(found.pattern(), found._elements, False)


@of_own_class
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Blocked:
    """Those blocks of a matrix that have an element other than 0, in compressed rows of blocks.

    Args:
        blocksize: rows and columns of a block, which divide the matrix's.
        dense_dim: None or 0.

    >>> clew.eye(4).to_sparse_bsr((2, 2)).values().shape
    clew.Size([2, 2, 2])
    """
    return blocks_of("to_sparse_bsr", self, blocksize, dense_dim, True)


@of_own_class
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Blocked:
    """Those blocks of a matrix that have an element other than 0, in compressed columns of blocks.

    Args:
        blocksize: rows and columns of a block, which divide the matrix's.
        dense_dim: None or 0.

    >>> clew.eye(4).to_sparse_bsc((2, 2)).row_indices()
    tensor([0, 1])
    """
    return blocks_of("to_sparse_bsc", self, blocksize, dense_dim, False)


@of_own_class
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, which is dense already, in a dtype.

    Args:
        dtype: of the result.
        masked_grad: without effect.

    >>> clew.ones(1).to_dense()
    tensor([1.])
    """
    return self if dtype is None else self.to(dtype)


@of_own_class
def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements of a dense tensor at the places of a sparse one.

    Args:
        mask: a sparse tensor of the same shape.

    >>> clew.ones(2, 2).sparse_mask(clew.eye(2).to_sparse())._nnz()
    2
    """
    if not isinstance(mask, (Coo, Compressed, Blocked)):
        raise TypeError(f"sparse_mask: mask must be a sparse tensor; got {mask.layout}")
    if tuple(mask.shape) != tuple(self.shape):
        raise RuntimeError(
            f"sparse_mask: the tensor and the mask must have one shape; got {list(self.shape)} "
            f"and {list(mask.shape)}"
        )
    return mask._with(at_places(self, mask))


def at_places(dense: Tensor, places: Any) -> Tensor:
    """The elements of a dense tensor at a sparse one's places."""
    if isinstance(places, Coo):
        return dense[tuple(places._ind.unbind(0))]
    if isinstance(places, Blocked):
        (a, b), at = places.block(), places.places()
        n, m, *rest = dense.shape
        return dense.reshape(n // a, a, m // b, b, *rest).transpose(1, 2)[at]
    p = places._pattern
    row, col = (p.rows(), p.col.long()) if places._by_rows else (p.col.long(), p.rows())
    return dense[row, col]


def _needs_sparse(name: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{name}: expected a sparse tensor; got a dense one (clew.strided); convert with "
            ".to_sparse()"
        )

    method.__name__ = name
    method.__doc__ = "Of sparse tensors only; see clew.sparse."
    return of_own_class(method)


coalesce, is_coalesced, indices, values, _nnz, _indices = map(
    _needs_sparse, "coalesce is_coalesced indices values _nnz _indices".split()
)


@of_own_class
def sparse_dim(self: Tensor) -> int:
    """How many dims are sparse: none of a dense tensor.

    >>> clew.ones(2, 3).sparse_dim()
    0
    """
    return 0


@of_own_class
def dense_dim(self: Tensor) -> int:
    """How many dims are dense: all of a dense tensor.

    >>> clew.ones(2, 3).dense_dim()
    2
    """
    return self.dim()


crow_indices, col_indices, ccol_indices, row_indices = map(
    _needs_sparse, "crow_indices col_indices ccol_indices row_indices".split()
)
