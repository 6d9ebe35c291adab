"""Linear algebra: factorizations, systems, eigenvalues, norms and products of matrices.

Kernels are NumPy's LAPACK, gradients stand beside each operation. All functions take batches:
leading dims are so many matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import _namespace
from clew._ops.einsum import multi_dot

from ._cholesky import cholesky, cholesky_ex
from ._common import LinAlgError
from ._det import det, slogdet
from ._eigen import eig, eigh, eigvals, eigvalsh
from ._ldl import ldl_factor, ldl_factor_ex, ldl_solve
from ._lstsq import lstsq
from ._lu import lu, lu_factor, lu_factor_ex, lu_solve
from ._norms import cond, matrix_norm, norm, vector_norm
from ._products import cross, diagonal, matmul, matrix_exp, matrix_power, vander, vecdot
from ._qr import householder_product, qr
from ._solve import inv, inv_ex, solve, solve_ex, tensorinv, tensorsolve
from ._svd import matrix_rank, pinv, svd, svdvals
from ._triangular import solve_triangular

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
