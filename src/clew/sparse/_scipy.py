"""Sparse matrices of SciPy's as clew's, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew._C import Tensor
from clew.sparse._construct import sparse_coo_tensor, sparse_csc_tensor, sparse_csr_tensor
from clew.sparse._products import need_tensors
from clew.sparse._tensor import Compressed, Coo


def from_scipy(matrix: Any) -> Tensor:
    """A sparse matrix over the memory of one of SciPy's.

    CSR and CSC matrices share indices and values; of a COO matrix the values are shared and the
    indices copied. Other formats are converted to CSR by SciPy.

    Args:
        matrix: a sparse matrix or array of SciPy's.

    Returns:
        the matrix, in the same layout; in coordinates if it has not two dims.

    Raises:
        TypeError: it is no sparse matrix.

    >>> import scipy.sparse
    >>> clew.sparse.from_scipy(scipy.sparse.eye_array(2, format="csr")).to_dense()
    tensor([[1., 0.],
            [0., 1.]], dtype=clew.float64)
    """
    layout = getattr(matrix, "format", None)
    if layout is None or not hasattr(matrix, "tocsr"):
        raise TypeError(f"from_scipy: expected a sparse matrix; got {type(matrix).__name__}")
    if len(matrix.shape) != 2:
        matrix, layout = matrix.tocoo(), "coo"
    if layout == "coo":
        coords = getattr(matrix, "coords", None) or (matrix.row, matrix.col)
        ind = clew.from_numpy(np.stack(coords).astype(np.int64))
        return sparse_coo_tensor(ind, clew.from_numpy(matrix.data), matrix.shape)
    if layout not in ("csr", "csc"):
        matrix, layout = matrix.tocsr(), "csr"
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    make = sparse_csr_tensor if layout == "csr" else sparse_csc_tensor
    starts, places = clew.from_numpy(matrix.indptr), clew.from_numpy(matrix.indices)
    return make(starts, places, clew.from_numpy(matrix.data), matrix.shape)


def to_scipy(tensor: Any) -> Any:
    """A sparse array of SciPy's over the memory of a sparse matrix, without its history.

    Args:
        tensor: a sparse matrix; in coordinates also of other numbers of dims, where SciPy has them.

    Returns:
        a coo_array, csr_array or csc_array.

    Raises:
        TypeError: the tensor is not sparse, or its elements are not numbers.

    >>> clew.sparse.to_scipy(clew.eye(2).to_sparse_csr()).nnz
    2
    """
    need_tensors("to_scipy", tensor=tensor)
    from clew._ops.primitive import scipy

    sparse = scipy("sparse", "to_scipy")
    shape = tuple(tensor.shape)
    if isinstance(tensor, Coo) and shape and not tensor.dense_dim():
        ind, values = tensor._ind.numpy(), tensor._elements.detach().numpy()
        return sparse.coo_array((values, tuple(ind)), shape=shape)
    if isinstance(tensor, Compressed) and len(shape) == 2:
        p = tensor._pattern
        make = sparse.csr_array if tensor._by_rows else sparse.csc_array
        parts = (tensor._elements.detach().numpy(), p.col.numpy(), p.crow.numpy())
        return make(parts, shape=shape, copy=False)
    raise TypeError(
        f"to_scipy: expected a sparse matrix of numbers; got {type(tensor).__name__} of shape "
        f"{list(shape)}"
    )
