"""The Cholesky factorization and what is solved with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context, broadcast_batch, primitive, write_out

from ._common import CholeskyEx, check_matrix, check_same, eye_like, per_matrix, report, show
from ._lapack import check as check_info
from ._lapack import native
from ._triangular import solve_kernel, triangular


def _shapes(a: Tensor, **attrs: Any) -> Any:
    return [(a.shape, a.dtype), (a.shape[:-2], _dtypes.int32)]


def _lower(a: np.ndarray, upper: bool) -> np.ndarray:
    """The matrix whose lower triangle is to be read; or the upper factor of a lower one."""
    return np.swapaxes(a, -1, -2).conj() if upper else a


def _failing(a: np.ndarray) -> tuple[np.ndarray, int]:
    """The factor of one matrix up to the first minor that is not positive, and its order."""
    out = np.tril(a)
    for k in range(len(a)):
        pivot = out[k, k].real - np.sum(np.abs(out[k, :k]) ** 2)
        out[k, k] = pivot
        if not pivot > 0:
            return out, k + 1
        out[k, k] = np.sqrt(pivot)
        out[k + 1 :, k] -= out[k + 1 :, :k] @ out[k, :k].conj()
        out[k + 1 :, k] /= out[k, k]
    return out, 0


def _kernel(a: np.ndarray, *, upper: bool, name: str, check: bool) -> Any:
    a = _lower(a, upper)
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        factor = np.linalg.cholesky(a)
        if not np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any():
            return _lower(factor, upper), info
    except np.linalg.LinAlgError:
        pass
    pairs = per_matrix(a.shape[:-2], _failing, a)
    factor = np.stack([p[0] for p in pairs]).reshape(a.shape)
    info = np.array([p[1] for p in pairs], np.int32).reshape(a.shape[:-2])
    if check:
        report(name, info, _not_positive)
    return _lower(factor, upper), info


def _not_positive(k: int) -> str:
    return (
        "The factorization could not be completed because the input is not "
        f"positive-definite (the leading minor of order {k} is not positive-definite)."
    )


def _native(a: Tensor, *, upper: bool, name: str, check: bool) -> Any:
    made = _C.ops._cholesky(a, upper)
    if check:
        check_info(name, made[1], _not_positive)
    return made


def _gradient(c: Context, g: Any, _: Any) -> Any:
    # A = L L^H: L^-1 dL is the lower triangle of L^-1 dA L^-H with half its diagonal. The
    # diagonal of dA is real; as in PyTorch, an imaginary part that meets it stays in the gradient.
    if g is None:
        return None
    factor = c.outputs[0]
    if c.attrs["upper"]:
        factor, g = factor.mH, g.mH
    phi = (factor.mH @ g).tril()
    phi = 0.5 * (phi + phi.tril(-1).mH)
    inner = triangular(factor.mH, phi, upper=True)
    return triangular(factor.mH, inner.mH, upper=True).mH


_factor = primitive(
    "Cholesky", shapes=_shapes, kernel=_kernel, gradient=_gradient, native=native(_native)
)


@asks_classes
@in_float32
def cholesky_ex(
    input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None
) -> CholeskyEx:
    """The Cholesky factor, with a number that tells whether it exists instead of an error.

    Args:
        input: A, (*, n, n), hermitian positive definite matrices; one triangle is read.
        upper: give the upper factor U, A = U^H U.
        check_errors: raise as cholesky does.
        out: a pair of tensors that receive the result.

    Returns:
        (L, info), (*, n, n) and int32 (*); info is 0, or the order of the leading minor that is not
        positive definite.

    Example:
        >>> clew.linalg.cholesky_ex(-clew.eye(2)).info
        tensor(1, dtype=clew.int32)
    """
    check_matrix("linalg.cholesky_ex", input, square=True)
    if not (isinstance(upper, bool) and isinstance(check_errors, bool)):
        need_bools("linalg.cholesky_ex", upper=upper, check_errors=check_errors)
    made = _factor(input, upper=bool(upper), name="linalg.cholesky_ex", check=check_errors)
    return write_out("linalg.cholesky_ex", CholeskyEx(*made), out)


@asks_classes
@in_float32
def cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular L of A = L L^H.

    Args:
        input: A, (*, n, n), floating point or complex, hermitian and positive definite; one
            triangle is read.
        upper: give the upper factor U, A = U^H U.
        out: a tensor that receives the result.

    Returns:
        (*, n, n).

    Raises:
        LinAlgError: a matrix is not positive definite.

    Example:
        >>> clew.linalg.cholesky(clew.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    return _cholesky("linalg.cholesky", input, upper, out)


def _cholesky(name: str, a: Tensor, upper: bool, out: Any) -> Any:
    check_matrix(name, a, square=True)
    if not isinstance(upper, bool):
        need_bools(name, upper=upper)
    factor, _ = _factor(a, upper=bool(upper), name=name, check=True)
    return write_out(name, factor, out, converts=name == "cholesky")


def _solved(low: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(L L^H)^-1 b; one triangle is read."""
    half = solve_kernel(low, b, upper=False)
    return solve_kernel(np.swapaxes(low, -1, -2).conj(), half, upper=True)


def _factor_gradient(factor: Tensor, ga: Tensor, upper: bool) -> Tensor:
    """The gradient of a factor from that of A = L L^H. As in PyTorch, the triangle that is not
    read gets a gradient too, that of the product of full matrices.
    """
    both = ga + ga.mH
    return factor @ both if upper else both @ factor


def _inverse_kernel(a: np.ndarray, *, upper: bool) -> np.ndarray:
    one = np.zeros_like(a) + np.eye(a.shape[-1], dtype=a.dtype)
    return _solved(_lower(a, upper), one)


def _inverse_native(a: Tensor, *, upper: bool) -> Any:
    return (_C.ops._cholesky_solve(eye_like(a).expand(a.shape), a, upper),)


def _inverse_gradient(c: Context, g: Tensor) -> Tensor:
    x = c.outputs[0]
    return _factor_gradient(c.inputs[0], -(x @ g @ x), c.attrs["upper"])


_inverse = primitive(
    "CholeskyInverse",
    shapes=lambda a, upper: [(a.shape, a.dtype)],
    kernel=_inverse_kernel,
    gradient=_inverse_gradient,
    native=native(_inverse_native),
)


def _solve_gradient(c: Context, g: Tensor) -> Any:
    factor, upper = c.inputs[1], c.attrs["upper"]
    gb = _solve(g, factor, upper=upper)
    if not c.needs[1]:
        return gb, None
    return gb, _factor_gradient(factor, -(gb @ c.outputs[0].mH), upper)


_solve = primitive(
    "CholeskySolve",
    shapes=lambda b, a, upper: [(b.shape, b.dtype)],
    kernel=lambda b, a, upper: _solved(_lower(a, upper), b),
    gradient=_solve_gradient,
    native=native(lambda b, a, upper: (_C.ops._cholesky_solve(b, a, upper),)),
)


@asks_classes
@in_float32
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A from its Cholesky factor.

    Args:
        input: (*, n, n), the factor.
        upper: the factor is the upper one.
        out: a tensor that receives the result.

    Returns:
        (*, n, n), (L L^H)^-1 or (L^H L)^-1.

    Example:
        >>> clew.cholesky_inverse(2 * clew.eye(2))
        tensor([[0.2500, 0.0000],
                [0.0000, 0.2500]])
    """
    check_matrix("cholesky_inverse", input, "L", square=True)
    need_bools("cholesky_inverse", upper=upper)
    return write_out("cholesky_inverse", _inverse(input, upper=bool(upper)), out, converts=True)


@asks_classes
@in_float32
def cholesky_solve(
    input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The solution X of A X = B from the Cholesky factor of A.

    Args:
        input: B, (*, n, k).
        input2: (*, n, n), the factor of A.
        upper: the factor is the upper one.
        out: a tensor that receives the result.

    Returns:
        (*, n, k).

    Example:
        >>> clew.cholesky_solve(clew.ones(2, 1), 2 * clew.eye(2))
        tensor([[0.2500],
                [0.2500]])
    """
    check_matrix("cholesky_solve", input, "B")
    check_matrix("cholesky_solve", input2, "L", square=True)
    check_same("cholesky_solve", input, input2)
    need_bools("cholesky_solve", upper=upper)
    if input.shape[-2] != input2.shape[-1]:
        raise RuntimeError(
            f"cholesky_solve: Incompatible matrix sizes: the rows of B must be as many as L has; "
            f"got {show(input)} and {show(input2)}"
        )
    input, input2 = broadcast_batch("cholesky_solve", input, input2, core=(2, 2))
    return write_out("cholesky_solve", _solve(input, input2, upper=bool(upper)), out, converts=True)
