"""Eigenvalues and eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._base.arguments import need_string
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context, primitive, write_out

from ._common import (
    Eigen,
    check_matrix,
    complex_dtype,
    eye_like,
    lapack,
    mask_diagonal,
    real_dtype,
    without_infinite,
)
from ._lapack import check, native
from ._solve import inverse_or_nan

_NOT_CONVERGED = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
    "many repeated eigenvalues."
)


def _gauge_kernel(a: np.ndarray, *, message: str) -> np.ndarray:
    if not np.allclose(a, 0, rtol=1e-2, atol=1e-2):
        raise RuntimeError(message)
    return a


_gauge = primitive(
    "GaugeCheck",
    shapes=lambda a, message: [(a.shape, a.dtype)],
    kernel=_gauge_kernel,
    gradient=lambda c, g: g,
)


def require_no_phase(diagonal: Tensor, what: str, name: str) -> None:
    """Raises when a gradient depends on the phases of complex vectors, which are arbitrary.

    Args:
        diagonal: the imaginary numbers that must be zero.
        what: the kind of vectors.
        name: who asks.
    """
    _gauge(
        diagonal.detach().imag,
        message=(
            f"{name}: The {what} in the complex case are specified up to multiplication by "
            "e^{i phi}. The specified loss function depends on this quantity, so it is "
            "ill-defined."
        ),
    )


def differences(values: Tensor) -> Tensor:
    """The matrix of values_j - values_i, with ones on the diagonal."""
    return values.unsqueeze(-2) - values.unsqueeze(-1) + eye_like(values)


def _eigh_gradient(c: Context, gl: Any, gv: Any) -> Any:
    # With X = V^H dA V: dL = diag X, dV = V (X / E), E_ij = L_j - L_i off the diagonal.
    values, vectors = c.outputs
    if gv is None:
        return (vectors * gl.unsqueeze(-2)) @ vectors.mH
    inner = vectors.mH @ gv
    if inner.is_complex():
        require_no_phase(inner.diagonal(0, -2, -1), "eigenvectors", "linalg_eigh_backward")
    # X is hermitian, so only the skew part counts.
    inner = mask_diagonal(0.5 * (inner - inner.mH)) / differences(values)
    if gl is not None:
        inner = inner + gl.diag_embed()
    return vectors @ inner @ vectors.mH


def hermitian_factors(a: np.ndarray, uplo: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors; nan where a matrix is infinite."""
    seen, lost = without_infinite(name, np.tril(a) if uplo == "L" else np.triu(a), _NOT_CONVERGED)
    made = lapack(name, lambda x: tuple(np.linalg.eigh(x, uplo)), seen, _NOT_CONVERGED)
    return np.where(lost[..., 0], np.nan, made[0]), np.where(lost, np.nan, made[1])


def hermitian_native(a: Tensor, uplo: str, name: str, vectors: bool) -> tuple[Tensor, Tensor]:
    """The same by the core; without vectors the second is empty."""
    values, made, info = _C.ops._eigh(a, uplo == "U", vectors)
    check(name, info, lambda k: f"{_NOT_CONVERGED[:-1]} (error code: {k}).")
    return values, made


_eigh = primitive(
    "Eigh",
    shapes=lambda a, **_: [(a.shape[:-1], real_dtype(a.dtype)), (a.shape, a.dtype)],
    kernel=lambda a, uplo, name: hermitian_factors(a, uplo, name),
    gradient=_eigh_gradient,
    native=native(lambda a, uplo, name: hermitian_native(a, uplo, name, True)),
)
_eigvalsh = primitive(
    "Eigvalsh",
    shapes=lambda a, **_: [(a.shape[:-1], real_dtype(a.dtype))],
    kernel=lambda a, uplo, name: hermitian_factors(a, uplo, name)[0],
    gradient=None,
    native=native(lambda a, uplo, name: hermitian_native(a, uplo, name, False)[:1]),
)


def _uplo(name: str, A: Any, UPLO: Any) -> str:
    check_matrix(name, A, square=True)
    need_string(name, "UPLO", UPLO)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"{name}: Expected UPLO argument to be 'L' or 'U', but got {UPLO!r}")
    return UPLO.upper()


@asks_classes
@in_float32
def eigh(input: Tensor, UPLO: str = "L", *, out: Any = None) -> Eigen:
    """The eigenvalues and eigenvectors of hermitian matrices, A = V diag(L) V^H.

    Args:
        input: A, (*, n, n); the triangle that UPLO names is read.
        UPLO: "L" (lower) or "U" (upper).
        out: a pair of tensors that receive the result.

    Returns:
        (eigenvalues, eigenvectors): (*, n), real and ascending; (*, n, n), columns. Where
        eigenvalues are equal, the eigenvectors' derivative does not exist.

    Example:
        >>> clew.linalg.eigh(clew.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    uplo = _uplo("linalg.eigh", input, UPLO)
    return write_out("linalg.eigh", Eigen(*_eigh(input, uplo=uplo, name="linalg.eigh")), out)


@asks_classes
@in_float32
def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of hermitian matrices, ascending.

    Args:
        input: (*, n, n); the triangle that UPLO names is read.
        UPLO: "L" (lower) or "U" (upper).
        out: a tensor that receives the result.

    Returns:
        (*, n), real.

    Example:
        >>> clew.linalg.eigvalsh(clew.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    uplo = _uplo("linalg.eigvalsh", input, UPLO)
    if input.requires_grad and _C.is_grad_enabled():
        values = _eigh(input, uplo=uplo, name="linalg.eigvalsh")[0]
    else:
        values = _eigvalsh(input, uplo=uplo, name="linalg.eigvalsh")
    return write_out("linalg.eigvalsh", values, out)


def _finite(name: str, a: np.ndarray) -> None:
    if not np.isfinite(a).all():
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")


def _eig_kernel(a: np.ndarray, *, name: str) -> Any:
    _finite(name, a)
    if a.shape[-1] == 0:
        return np.zeros(a.shape[:-1]), a
    return lapack(name, lambda x: tuple(np.linalg.eig(x)), a, _NOT_CONVERGED)


def _eigvals_kernel(a: np.ndarray, *, name: str) -> Any:
    _finite(name, a)
    if a.shape[-1] == 0:
        return np.zeros(a.shape[:-1])
    return lapack(name, np.linalg.eigvals, a, _NOT_CONVERGED)


def _eig_native(a: Tensor, *, name: str, vectors: bool) -> Any:
    if not (a.is_meta or a.isfinite().all()):
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")
    values, made, info = _C.ops._eig(a, vectors)
    check(name, info, lambda k: f"{_NOT_CONVERGED[:-1]} (error code: {k}).")
    return values, made


def _eig_gradient(c: Context, gl: Any, gv: Any) -> Any:
    # With X = V^-1 dA V: dL = diag X, dV = V (X / E) less what keeps the columns' lengths.
    (a,), (values, vectors) = c.inputs, c.outputs
    inner = None
    if gv is not None:
        inner = vectors.mH @ gv
        diagonal = inner.diagonal(0, -2, -1)
        require_no_phase(diagonal, "eigenvectors", "linalg_eig_backward")
        inner = inner - (vectors.mH @ vectors) * diagonal.real.unsqueeze(-2)
        inner = mask_diagonal(inner) / differences(values).conj()
    if gl is not None:
        inner = gl.diag_embed() if inner is None else inner + gl.diag_embed()
    # Solved with V itself: V^-H (inner V^H).
    ga = inverse_or_nan(vectors).mH @ inner @ vectors.mH
    return ga if a.is_complex() else ga.real


_eig = primitive(
    "Eig",
    shapes=lambda a, **_: [
        (a.shape[:-1], complex_dtype(a.dtype)),
        (a.shape, complex_dtype(a.dtype)),
    ],
    kernel=_eig_kernel,
    gradient=_eig_gradient,
    native=native(lambda a, name: _eig_native(a, name=name, vectors=True)),
)
_eigvals = primitive(
    "Eigvals",
    shapes=lambda a, **_: [(a.shape[:-1], complex_dtype(a.dtype))],
    kernel=_eigvals_kernel,
    gradient=None,
    native=native(lambda a, name: _eig_native(a, name=name, vectors=False)[:1]),
)


@asks_classes
@in_float32
def eig(input: Tensor, *, out: Any = None) -> Eigen:
    """The eigenvalues and eigenvectors of square matrices, A = V diag(L) V^-1.

    Args:
        input: A, (*, n, n).
        out: a pair of tensors that receive the result.

    Returns:
        (eigenvalues, eigenvectors), complex: (*, n), in no particular order; (*, n, n), columns of
        length 1.

    Example:
        >>> clew.linalg.eig(clew.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.abs()
        tensor([1., 1.])
    """
    check_matrix("linalg.eig", input, square=True)
    return write_out("linalg.eig", Eigen(*_eig(input, name="linalg.eig")), out, converts=True)


@asks_classes
@in_float32
def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of square matrices.

    Args:
        input: (*, n, n).
        out: a tensor that receives the result.

    Returns:
        (*, n), complex, in no particular order.

    Example:
        >>> clew.linalg.eigvals(clew.tensor([[2.0, 1.0], [0.0, 2.0]]))
        tensor([2.+0.j, 2.+0.j])
    """
    check_matrix("linalg.eigvals", input, square=True)
    if input.requires_grad and _C.is_grad_enabled():
        values = _eig(input, name="linalg.eigvals")[0]
    else:
        values = _eigvals(input, name="linalg.eigvals")
    return write_out("linalg.eigvals", values, out, converts=True, records=True)
