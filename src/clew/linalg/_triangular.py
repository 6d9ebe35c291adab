"""Triangular systems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew import _C
from clew._base.arguments import need_bools
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.results import shown_as
from clew._C import Tensor
from clew._ops.primitive import Context, broadcast_batch, primitive, write_out

from ._common import check_matrix, check_same, show
from ._lapack import native

_LEAF = 64


def substitute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solves upper triangular systems with an arbitrary lower part; zeros on the diagonal give
    what division by zero gives.
    """
    n = a.shape[-1]
    if n == 0:
        return b
    if n > _LEAF:
        half = n // 2
        low = substitute(a[..., half:, half:], b[..., half:, :])
        rest = b[..., :half, :] - a[..., :half, half:] @ low
        return np.concatenate([substitute(a[..., :half, :half], rest), low], axis=-2)
    if np.diagonal(a, axis1=-2, axis2=-1).all():
        # Elimination with row exchanges leaves an upper triangular matrix as it is.
        return np.linalg.solve(np.triu(a), b)
    x = np.array(
        np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    )
    with np.errstate(all="ignore"):
        for k in range(n - 1, -1, -1):
            x[..., k, :] /= a[..., k, k, None]
            x[..., :k, :] -= a[..., :k, k, None] * x[..., None, k, :]
    return x


def _shapes(a: Tensor, b: Tensor, **attrs: Any) -> Any:
    return [(b.shape, b.dtype)]


def solve_kernel(
    a: np.ndarray, b: np.ndarray, *, upper: bool, unitriangular: bool = False
) -> np.ndarray:
    """Solves triangular systems; the other triangle is not read."""
    if unitriangular:
        a = np.triu(a, 1) if upper else np.tril(a, -1)
        a = a + np.eye(a.shape[-1], dtype=a.dtype)
    if upper:
        return substitute(a, b)
    # Both orders reversed, a lower triangular matrix is an upper one.
    return substitute(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]


def _gradient(c: Context, g: Tensor) -> Any:
    a, _ = c.inputs
    (x,) = c.outputs
    upper, unit = c.attrs["upper"], c.attrs["unitriangular"]
    gb = triangular(a.mH, g, upper=not upper, unitriangular=unit)
    ga = None
    if c.needs[0]:
        ga = -(gb @ x.mH)
        ga = ga.triu(int(unit)) if upper else ga.tril(-int(unit))
    return ga, gb


def _native(a: Tensor, b: Tensor, *, upper: bool, unitriangular: bool) -> Any:
    return (_C.ops._solve_triangular(a, b, upper, unitriangular),)


_solve = primitive(
    "SolveTriangular",
    shapes=_shapes,
    kernel=solve_kernel,
    gradient=_gradient,
    native=native(_native),
)


def triangular(a: Tensor, b: Tensor, *, upper: bool, unitriangular: bool = False) -> Tensor:
    """a^-1 b of triangular matrices whose batch dims are alike."""
    return _solve(a, b, upper=bool(upper), unitriangular=bool(unitriangular))


@asks_classes
def solve_triangular(
    input: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The solution X of A X = B (or X A = B) with triangular A.

    Args:
        input: A, (*, n, n); only the triangle that is asked for is read.
        B: (*, n, k), or (*, k, n) when left is False.
        upper: A is upper triangular, else lower.
        left: A stands on the left.
        unitriangular: take the diagonal of A as ones, without reading it.
        out: a tensor that receives the result.

    Returns:
        X, of the shape of B with the batch dims of both. A zero on the diagonal gives infinities
        and nans.

    Example:
        >>> A = clew.tensor([[2.0, 0.0], [1.0, 1.0]])
        >>> clew.linalg.solve_triangular(A, clew.tensor([[2.0], [3.0]]), upper=False)
        tensor([[1.],
                [2.]])
    """
    name = "linalg.solve_triangular"
    if not (isinstance(upper, bool) and isinstance(left, bool) and unitriangular is False):
        need_bools(name, upper=upper, left=left, unitriangular=unitriangular)
    check_matrix(name, input, square=True)
    check_matrix(name, B, "B")
    check_same(name, input, B)
    if input.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'}; got {show(input)} and {show(B)}"
        )
    input, B = broadcast_batch(name, input, B, core=(2, 2))
    if left:
        x = triangular(input, B, upper=upper, unitriangular=unitriangular)
    else:
        x = triangular(input.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    return write_out(name, x, out)


@shown_as("triangular_solve")
class TriangularSolve(NamedTuple):
    """The solution, and the matrix as it was given."""

    solution: Tensor
    cloned_coefficient: Tensor


@asks_classes
@in_float32
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> TriangularSolve:
    """The solution of A X = b with triangular A; the older form of linalg.solve_triangular.

    Args:
        input: b, (*, n, k).
        A: (*, n, n).
        upper: A is upper triangular.
        transpose: solve with the transposed A.
        unitriangular: take the diagonal of A as ones.
        out: a pair of tensors that receive the result.

    Returns:
        (solution, cloned_coefficient).

    Example:
        >>> clew.triangular_solve(clew.ones(2, 1), 2 * clew.eye(2)).solution
        tensor([[0.5000],
                [0.5000]])
    """
    check_matrix("triangular_solve", input, "b")
    check_matrix("triangular_solve", A, square=True)
    check_same("triangular_solve", input, A)
    if not (isinstance(upper, bool) and isinstance(transpose, bool) and unitriangular is False):
        need_bools(
            "triangular_solve", upper=upper, transpose=transpose, unitriangular=unitriangular
        )
    if A.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            "triangular_solve: the rows of b must be as many as A has; got "
            f"{show(input)} and {show(A)}"
        )
    input, A = broadcast_batch("triangular_solve", input, A, core=(2, 2))
    matrix, up = (A.mT, not upper) if transpose else (A, upper)
    x = triangular(matrix, input, upper=up, unitriangular=unitriangular)
    return write_out("triangular_solve", TriangularSolve(x, A.clone()), out)
