"""The linear algebra extension of the standard, and the main namespace's part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import clew
from clew import Tensor
from clew.array_api._common import Axes, axes_of, keeps, promoted, sum_dtype
from clew.array_api._manipulation import matrix_transpose


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular factor L with x = L Lᴴ, or its conjugate transpose.

    Args:
        x: positive definite matrices, (..., n, n).
        upper: give the conjugate transpose of L.

    >>> clew.array_api.linalg.cholesky(clew.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return clew.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of the vectors of three elements along an axis.

    Args:
        x1, x2: arrays whose shapes broadcast.
        axis: the axis, of size 3.

    >>> x, y = clew.tensor([1, 0, 0]), clew.tensor([0, 1, 0])
    >>> clew.array_api.linalg.cross(x, y)
    tensor([0, 0, 1])
    """
    x1, x2 = promoted("cross", x1, x2)
    return clew.linalg.cross(*clew.broadcast_tensors(x1, x2), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix.

    Args:
        x: matrices, (..., n, n).

    >>> clew.array_api.linalg.det(clew.tensor([[2.0, 0.0], [5.0, 3.0]]))
    tensor(6.)
    """
    return clew.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of each matrix.

    Args:
        x: matrices, (..., n, m).
        offset: which diagonal; positive ones lie above the main one.

    >>> clew.array_api.linalg.diagonal(clew.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    rows, columns = x.shape[-2:]
    if offset >= columns or -offset >= rows:  # past the corners, where there is nothing
        return x.reshape(*x.shape[:-2], rows * columns)[..., :0]
    return clew.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> Any:
    """Eigenvalues in ascending order, and eigenvectors, of symmetric or Hermitian matrices.

    Args:
        x: matrices, (..., n, n).

    Returns:
        `eigenvalues`, (..., n), and `eigenvectors`, (..., n, n), in columns.

    >>> clew.array_api.linalg.eigh(clew.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return clew.linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order.

    Args:
        x: matrices, (..., n, n).

    >>> clew.array_api.linalg.eigvalsh(clew.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return clew.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix.

    Args:
        x: matrices, (..., n, n).

    >>> clew.array_api.linalg.inv(clew.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return clew.linalg.inv(x)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product.

    Args:
        x1: matrices, (..., n, k), or a vector, (k,).
        x2: matrices, (..., k, m), or a vector, (k,).

    >>> clew.array_api.matmul(clew.tensor([[1, 2], [3, 4]]), clew.tensor([1, 1]))
    tensor([3, 7])
    """
    return clew.matmul(*promoted("matmul", x1, x2))


def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Tensor:
    """The norm of each matrix.

    Args:
        x: matrices, (..., n, m).
        keepdims: keep the last two axes, with size one.
        ord: "fro" for the root of the sum of squares, "nuc" for the sum of singular values, 1 or -1
            for the greatest or smallest sum of a column's absolute values, inf or -inf for a row's,
            2 or -2 for the greatest or smallest singular value.

    >>> clew.array_api.linalg.matrix_norm(clew.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if 0 in x.shape[-2:] and ord in ("fro", "nuc", 1, 2, float("inf"), None):
        return clew.zeros_like(clew.sum(x.abs(), (-2, -1), keepdims))
    return clew.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The `n`-th power of each matrix.

    Args:
        x: matrices, (..., m, m).
        n: an int; negative ones are powers of the inverse.

    >>> clew.array_api.linalg.matrix_power(clew.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return clew.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values of each matrix exceed `rtol` times its greatest one.

    Args:
        x: matrices, (..., n, m).
        rtol: the tolerance; max(n, m) times the dtype's epsilon if None.

    >>> clew.array_api.linalg.matrix_rank(clew.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_rank: at least two dims are needed; got {x.ndim}")
    return clew.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of an element of one vector and one of the other.

    Args:
        x1: a vector, (n,).
        x2: a vector, (m,).

    >>> clew.array_api.linalg.outer(clew.tensor([1, 2]), clew.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    x1, x2 = promoted("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: two vectors are needed; got {x1.ndim} and {x2.ndim} dims")
    return x1[:, None] * x2


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The Moore-Penrose inverse of each matrix.

    Args:
        x: matrices, (..., n, m).
        rtol: singular values up to `rtol` times the greatest one count as zero; max(n, m) times the
            dtype's epsilon if None.

    Returns:
        Matrices, (..., m, n).

    >>> clew.array_api.linalg.pinv(clew.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return clew.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> Any:
    """The orthogonal Q and the upper triangular R whose product is x.

    Args:
        x: matrices, (..., n, m).
        mode: "reduced" for a Q of min(n, m) columns, "complete" for one of n.

    Returns:
        `Q` and `R`.

    >>> q, r = clew.array_api.linalg.qr(clew.tensor([[0.0, 2.0], [3.0, 4.0]]))
    >>> clew.allclose(q @ r, clew.tensor([[0.0, 2.0], [3.0, 4.0]]), atol=1e-6)
    True
    """
    return clew.linalg.qr(x, mode)


def slogdet(x: Tensor, /) -> Any:
    """The determinant's sign and the logarithm of its absolute value.

    Args:
        x: matrices, (..., n, n).

    Returns:
        `sign` and `logabsdet`.

    >>> clew.array_api.linalg.slogdet(clew.tensor([[-1.0, 0.0], [0.0, 1.0]])).sign
    tensor(-1.)
    """
    return clew.linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 @ x = x2.

    Args:
        x1: matrices, (..., n, n).
        x2: matrices, (..., n, k), or a single vector, (n,).

    >>> clew.array_api.linalg.solve(clew.tensor([[2.0, 0.0], [0.0, 4.0]]), clew.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    x1, x2 = promoted("solve", x1, x2)
    if x2.ndim == 1:
        return clew.linalg.solve(x1, x2[:, None])[..., 0]
    batch = clew.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return clew.linalg.solve(x1, x2.expand(*batch, *x2.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition x = U diag(S) Vh.

    Args:
        x: matrices, (..., n, m).
        full_matrices: whether U is (..., n, n) and Vh (..., m, m); else both have min(n, m)
            vectors.

    Returns:
        `U`, `S` in descending order, and `Vh`.

    >>> clew.array_api.linalg.svd(clew.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return clew.linalg.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix, in descending order.

    Args:
        x: matrices, (..., n, m).

    >>> clew.array_api.linalg.svdvals(clew.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    return clew.linalg.svdvals(x)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """The sum of products over pairs of axes.

    Args:
        x1, x2: arrays.
        axes: how many last axes of `x1` and first ones of `x2` are summed over, or a pair of lists
            of axes.

    >>> clew.array_api.tensordot(clew.tensor([1, 2]), clew.tensor([3, 4]), axes=1)
    tensor(11)
    """
    x1, x2 = promoted("tensordot", x1, x2)
    return clew.tensordot(x1, x2, axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: clew.dtype | None = None) -> Tensor:
    """The sum of each matrix's diagonal.

    Args:
        x: matrices, (..., n, m).
        offset: which diagonal; positive ones lie above the main one.
        dtype: of the result; that of `x`, or its 64-bit integers, if None.

    >>> clew.array_api.linalg.trace(clew.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    dtype = sum_dtype(x.dtype) if dtype is None else dtype
    return clew.sum(diagonal(x, offset=offset), -1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along an axis.

    Args:
        x1, x2: arrays whose shapes broadcast.
        axis: the axis, of one size in both.

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
    """The norm of the vectors along the axes, or of all elements.

    Args:
        x: an array of floating-point numbers.
        axis: the axis or axes; None for all.
        keepdims: keep them, with size one.
        ord: p of the p-norm, (sum |x|^p)^(1/p); inf and -inf are the greatest and the smallest
            absolute value, 0 counts nonzero elements.

    >>> clew.array_api.linalg.vector_norm(clew.tensor([3.0, 4.0]))
    tensor(5.)
    """
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
