"""The linear algebra extension of the standard, and the main namespace's part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import clew
from clew import Tensor
from clew.array_api._common import Axes, axes_of, keeps, promoted, sum_dtype
from clew.array_api._manipulation import matrix_transpose


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor L with x = L Lᴴ, or its conjugate transpose."""
    return clew.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of the vectors of three elements along an axis."""
    x1, x2 = promoted("cross", x1, x2)
    return clew.linalg.cross(*clew.broadcast_tensors(x1, x2), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix."""
    return clew.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of each matrix."""
    rows, columns = x.shape[-2:]
    if offset >= columns or -offset >= rows:  # past the corners, where there is nothing
        return x.reshape(*x.shape[:-2], rows * columns)[..., :0]
    return clew.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> Any:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return clew.linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return clew.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix."""
    return clew.linalg.inv(x)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product."""
    return clew.matmul(*promoted("matmul", x1, x2))


def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Tensor:
    """The norm of each matrix."""
    if 0 in x.shape[-2:] and ord in ("fro", "nuc", 1, 2, float("inf"), None):
        return clew.zeros_like(clew.sum(x.abs(), (-2, -1), keepdims))
    return clew.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The `n`-th power of each matrix."""
    return clew.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values of each matrix exceed `rtol` times its greatest one."""
    if x.ndim < 2:
        raise ValueError(f"matrix_rank: at least two dims are needed; got {x.ndim}")
    return clew.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of an element of one vector and one of the other."""
    x1, x2 = promoted("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: two vectors are needed; got {x1.ndim} and {x2.ndim} dims")
    return x1[:, None] * x2


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The Moore-Penrose inverse of each matrix."""
    return clew.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> Any:
    """The orthogonal Q and the upper triangular R whose product is x."""
    return clew.linalg.qr(x, mode)


def slogdet(x: Tensor, /) -> Any:
    """The determinant's sign and the logarithm of its absolute value."""
    return clew.linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 @ x = x2; `x2` holds matrices, or is a single vector."""
    x1, x2 = promoted("solve", x1, x2)
    if x2.ndim == 1:
        return clew.linalg.solve(x1, x2[:, None])[..., 0]
    batch = clew.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return clew.linalg.solve(x1, x2.expand(*batch, *x2.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition x = U diag(S) Vh."""
    return clew.linalg.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix."""
    return clew.linalg.svdvals(x)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """The sum of products over pairs of axes."""
    x1, x2 = promoted("tensordot", x1, x2)
    return clew.tensordot(x1, x2, axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: clew.dtype | None = None) -> Tensor:
    """The sum of each matrix's diagonal."""
    dtype = sum_dtype(x.dtype) if dtype is None else dtype
    return clew.sum(diagonal(x, offset=offset), -1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along an axis.

    >>> clew.array_api.vecdot(clew.tensor([1, 2]), clew.tensor([3, 4]))
    tensor(11)
    """
    x1, x2 = promoted("vecdot", x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot: axis {axis} must have one size; got {x1.shape[axis]} and {x2.shape[axis]}"
        )
    return clew.sum(x1.conj() * x2, axis, dtype=x1.dtype)


def vector_norm(
    x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of the vectors along the axes, or of all elements."""
    y, axes = axes_of(x, axis)
    if ord == float("inf") or ord < 0:
        size = 1
        for a in axes:
            size *= y.shape[a]
        if size == 0:
            # A maximum of no lengths is 0; a sum of none to a negative power is infinite.
            value = 0.0 if ord >= 0 else float("inf")
            sums = clew.sum(y.abs(), axes, keeps(x, axis, keepdims))
            return clew.full_like(sums, value)
    return clew.linalg.vector_norm(y, ord, axes, keeps(x, axis, keepdims))


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
