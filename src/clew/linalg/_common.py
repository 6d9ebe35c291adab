"""What the families of linear algebra share: checks, errors, result types, small matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.results import shown_as
from clew._C import Tensor, eye

_COMPUTED = (_dtypes.float32, _dtypes.float64, _dtypes.complex64, _dtypes.complex128)
_LOW_PRECISION = (_dtypes.float16, _dtypes.bfloat16)


class LinAlgError(RuntimeError):
    """Raised when a matrix is not of the kind that an operation requires: singular, not positive
    definite, not finite.
    """


@shown_as("linalg_cholesky_ex")
class CholeskyEx(NamedTuple):
    """The factor of linalg.cholesky_ex and the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor


@shown_as("linalg_inv_ex")
class InvEx(NamedTuple):
    """The inverse of linalg.inv_ex and the index of the first zero pivot."""

    inverse: Tensor
    info: Tensor


@shown_as("linalg_solve_ex")
class SolveEx(NamedTuple):
    """The solution of linalg.solve_ex and the index of the first zero pivot."""

    result: Tensor
    info: Tensor


@shown_as("linalg_slogdet")
class SlogDet(NamedTuple):
    """Sign and logarithm of the absolute value of a determinant."""

    sign: Tensor
    logabsdet: Tensor


@shown_as("linalg_eigh")
class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@shown_as("linalg_qr")
class QR(NamedTuple):
    """An orthogonal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


@shown_as("linalg_svd")
class SVD(NamedTuple):
    """The factors of linalg.svd."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def conj_transpose(x: Tensor) -> Tensor:
    """What ``x.mH`` holds, as a tensor that may be written to: for results."""
    return x.mT.conj_physical() if x.is_complex() else x.mT


def check_tensor(name: str, argument: str, t: Any) -> None:
    """Raises TypeError unless ``t`` is a tensor."""
    if not isinstance(t, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(t).__name__}")


def check_inexact(name: str, t: Tensor, *, low: bool = False) -> None:
    """Raises unless ``t`` is of a floating point or complex dtype that LAPACK has; ``low`` lets
    float16 and bfloat16 pass.
    """
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input; got {show(t)}"
        )
    if not low and t.dtype in _LOW_PRECISION:
        raise NotImplementedError(f"{name}: Low precision dtypes not supported; got {show(t)}")


def check_matrix(name: str, t: Any, argument: str = "A", *, square: bool = False) -> None:
    """Raises unless ``t`` is a batch of (square) matrices of a dtype that LAPACK has."""
    if not isinstance(t, Tensor):
        check_tensor(name, argument, t)
    shape = t.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions; got {show(t)}"
        )
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are "
            f"{shape[-2]} by {shape[-1]} matrices; got {show(t)}"
        )
    if t.dtype not in _COMPUTED:
        check_inexact(name, t)


def check_same(name: str, first: Tensor, second: Tensor) -> None:
    """Raises unless both have the same dtype and device."""
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"{name}: Expected both tensors to have the same dtype; got {show(first)} and "
            f"{show(second)}"
        )
    if first.is_meta is not second.is_meta:
        raise RuntimeError(
            f"{name}: Expected all tensors to be on the same device; got {first.device} and "
            f"{second.device}"
        )


def show(t: Tensor) -> str:
    """A tensor's dtype and shape, for messages."""
    return f"{t.dtype.name}{list(t.shape)}"


def real_dtype(dtype: _C.dtype) -> _C.dtype:
    """The dtype of absolute values."""
    return dtype.to_real() if dtype.is_complex else dtype


def complex_dtype(dtype: _C.dtype) -> _C.dtype:
    """The dtype of square roots."""
    return dtype if dtype.is_complex else dtype.to_complex()


def eps_of(dtype: _C.dtype) -> float:
    """The distance from 1 to the next number of a dtype."""
    return float(_dtypes.finfo(dtype).eps)


def eye_like(t: Tensor, n: int | None = None) -> Tensor:
    """The identity matrix of the size of ``t``'s last dim (or n), in its dtype."""
    return eye(t.shape[-1] if n is None else n, dtype=t.dtype, device=t.device)


def diag(t: Tensor) -> Tensor:
    """Diagonal matrices of vectors."""
    return _C.functions["diag_embed"](t)


def mask_diagonal(t: Tensor) -> Tensor:
    """Square matrices with zeros on their diagonals (also where these were not finite)."""
    return t.tril(-1) + t.triu(1)


def every(t: Tensor) -> bool:
    """Whether all elements are true; inside vmap, of all samples."""
    t = t.detach()
    return bool(_C._show_levels(t, _C._levels(t)).all())


def batch_index(index: Sequence[int], shape: Sequence[int]) -> str:
    """The words that name one matrix of a batch in a message; empty when there is only one."""
    if not shape:
        return ""
    return f"(Batch element {int(np.ravel_multi_index(tuple(index), tuple(shape)))}): "


def report(name: str, info: np.ndarray, text: Callable[[int], str]) -> None:
    """Raises LinAlgError for the first matrix of a batch whose info is not zero."""
    for row in np.argwhere(info != 0):
        index = tuple(int(i) for i in row)
        raise LinAlgError(f"{name}: {batch_index(index, info.shape)}{text(int(info[index]))}")


def lapack(name: str, run: Callable[..., Any], a: np.ndarray, reason: str) -> Any:
    """``run(a)``; when LAPACK does not converge, LinAlgError names the first matrix at fault."""
    try:
        return run(a)
    except np.linalg.LinAlgError:
        batch = a.shape[:-2]
        for index in np.ndindex(*batch):
            try:
                run(a[index])
            except np.linalg.LinAlgError:
                where = batch_index(index, batch)
                raise LinAlgError(f"{name}: {where}{reason}") from None
        raise LinAlgError(f"{name}: {reason}") from None


def without_infinite(name: str, a: np.ndarray, reason: str) -> tuple[np.ndarray, np.ndarray]:
    """Matrices with zeros for those with infinities, with which LAPACK may not end; and which those
    are, (*, 1, 1). Raises LinAlgError for the first one with nan.
    """
    nan = np.isnan(a).any((-2, -1))
    report(name, nan, lambda _: reason)
    lost = ~np.isfinite(a).all((-2, -1), keepdims=True)
    return np.where(lost, 0, a).astype(a.dtype), lost


def per_matrix(batch: Sequence[int], run: Callable[..., Any], *arrays: np.ndarray) -> list[Any]:
    """``run`` of each matrix of a batch by itself, in order."""
    return [run(*(a[index] for a in arrays)) for index in np.ndindex(*tuple(batch))]
