"""Sparse tensors: coordinates (COO), compressed rows and columns (CSR, CSC), also of blocks (BSR,
BSC).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew import _namespace
from clew.sparse import _changes as _changes
from clew.sparse import _names as _names
from clew.sparse import _rules as _rules
from clew.sparse import _sizes as _sizes
from clew.sparse import _triangular as _triangular
from clew.sparse._construct import (
    check_sparse_tensor_invariants as check_sparse_tensor_invariants,
)
from clew.sparse._construct import sparse_bsc_tensor as sparse_bsc_tensor
from clew.sparse._construct import sparse_bsr_tensor as sparse_bsr_tensor
from clew.sparse._construct import sparse_compressed_tensor as sparse_compressed_tensor
from clew.sparse._construct import sparse_coo_tensor as sparse_coo_tensor
from clew.sparse._construct import sparse_csc_tensor as sparse_csc_tensor
from clew.sparse._construct import sparse_csr_tensor as sparse_csr_tensor
from clew.sparse._construct import spdiags as spdiags
from clew.sparse._products import addmm as addmm
from clew.sparse._products import dsmm as dsmm
from clew.sparse._products import hspmm as hspmm
from clew.sparse._products import mm as mm
from clew.sparse._products import sampled_addmm as sampled_addmm
from clew.sparse._products import smm as smm
from clew.sparse._products import sspaddmm as sspaddmm
from clew.sparse._reductions import log_softmax as log_softmax
from clew.sparse._reductions import softmax as softmax
from clew.sparse._reductions import sum as sum
from clew.sparse._scipy import from_scipy as from_scipy
from clew.sparse._scipy import to_scipy as to_scipy

__all__ = [
    "addmm",
    "check_sparse_tensor_invariants",
    "from_scipy",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
    "to_scipy",
]
if not TYPE_CHECKING:  # else checkers take any name to be there
    _find = _namespace.module_getattr(__name__, globals())

    def __getattr__(name: str) -> Any:
        if name.endswith("Tensor"):
            from clew._ops import legacy

            return legacy.sparse_type(name)
        return _find(name)
