"""The singular value decomposition and what is computed with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_string
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context, primitive, write_out

from ._common import (
    SVD,
    check_inexact,
    check_matrix,
    eps_of,
    lapack,
    mask_diagonal,
    real_dtype,
    without_infinite,
)
from ._eigen import (
    differences,
    eigvalsh,
    hermitian_factors,
    hermitian_native,
    require_no_phase,
)
from ._lapack import check, native

_NOT_FINITE = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)
_ILL = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
    "many repeated singular values."
)


def _svd_shapes(a: Tensor, *, full: bool, name: str) -> Any:
    *batch, m, n = a.shape
    k = min(m, n)
    return [
        ((*batch, m, m if full else k), a.dtype),
        ((*batch, k), real_dtype(a.dtype)),
        ((*batch, n if full else k, n), a.dtype),
    ]


def _decomposed(a: np.ndarray, full: bool, name: str) -> Any:
    *batch, m, n = a.shape
    if a.size == 0:
        k = min(m, n)
        u = np.zeros((*batch, m, m if full else k), a.dtype) + np.eye(
            m, m if full else k, dtype=a.dtype
        )
        vh = np.zeros((*batch, n if full else k, n), a.dtype) + np.eye(
            n if full else k, n, dtype=a.dtype
        )
        return u, np.zeros((*batch, k), a.real.dtype), vh
    seen, lost = without_infinite(name, a, _NOT_FINITE)
    u, s, vh = lapack(name, lambda x: tuple(np.linalg.svd(x, full_matrices=full)), seen, _ILL)
    return np.where(lost, np.nan, u), np.where(lost[..., 0], np.nan, s), np.where(lost, np.nan, vh)


def _why(code: int) -> str:
    if code < 0:
        return _NOT_FINITE
    return f"{_ILL[:-1]} (error code: {code})."


def _native(a: Tensor, *, full: bool, name: str, vectors: bool = True) -> Any:
    u, s, vh, info = _C.ops._svd(a, full, vectors)
    check(name, info, _why)
    return u, s, vh


def _svd_gradient(c: Context, gu: Any, gs: Any, gvh: Any) -> Any:
    u, s, vh = c.outputs
    k = s.shape[-1]
    m, n = c.inputs[0].shape[-2:]
    if c.attrs["full"]:
        # The columns beyond min(m, n) are any basis of a complement: they have no gradient.
        u, vh = u[..., :k], vh[..., :k, :]
        gu = None if gu is None else gu[..., :k]
        gvh = None if gvh is None else gvh[..., :k, :]
    if gu is None and gvh is None:
        return (u * gs.unsqueeze(-2)) @ vh
    row, column = s.unsqueeze(-2), s.unsqueeze(-1)
    ratio = differences(s * s)
    inner: Any = 0.0
    phase: Any = 0.0
    if gu is not None:
        x = u.mH @ gu
        skew = x - x.mH
        inner = mask_diagonal(skew) / ratio * row
        phase = skew.diagonal(0, -2, -1)
        if x.is_complex():
            # Its diagonal is imaginary: the common phase of both vectors.
            inner = inner + (phase / (2 * s)).diag_embed()
    if gvh is not None:
        x = vh @ gvh.mH
        skew = x - x.mH
        inner = inner + mask_diagonal(skew) / ratio * column
        phase = phase + skew.diagonal(0, -2, -1)
    if phase.is_complex():
        require_no_phase(phase, "singular vectors", "svd_backward")
    if gs is not None:
        inner = inner + gs.diag_embed()
    ga = u @ inner
    if gu is not None and m > k:
        scaled = gu / row
        ga = ga + scaled - u @ (u.mH @ scaled)
    ga = ga @ vh
    if gvh is not None and n > k:
        scaled = gvh / column
        ga = ga + u @ (scaled - (scaled @ vh.mH) @ vh)
    return ga


_svd = primitive(
    "Svd",
    shapes=_svd_shapes,
    kernel=_decomposed,
    gradient=_svd_gradient,
    native=native(_native),
)


_svdvals = primitive(
    "Svdvals",
    shapes=lambda a, **_: [((*a.shape[:-2], min(a.shape[-2:])), real_dtype(a.dtype))],
    kernel=lambda a, name: _decomposed(a, False, name)[1],
    gradient=None,
    native=native(lambda a, name: (_native(a, full=False, name=name, vectors=False)[1],)),
)


def _check_driver(name: str, driver: Any) -> None:
    if driver is not None:
        need_string(name, "driver", driver)
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs; got {driver!r}"
        )


@asks_classes
@in_float32
def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> SVD:
    """The singular value decomposition A = U diag(S) Vh.

    Args:
        A: (*, m, n).
        full_matrices: U and Vh are square; else they have k = min(m, n) columns and rows.
        driver: None; others belong to CUDA.
        out: three tensors that receive the result.

    Returns:
        (U, S, Vh): S, (*, k), is real and descending; with full_matrices U and Vh are (*, m, m) and
        (*, n, n), else (*, m, k) and (*, k, n). Where singular values are equal or zero, the
        vectors' derivative does not exist.

    Example:
        >>> clew.linalg.svd(clew.tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    check_matrix("linalg.svd", A)
    if full_matrices is not True:
        need_bools("linalg.svd", full_matrices=full_matrices)
    _check_driver("linalg.svd", driver)
    made = _svd(A, full=bool(full_matrices), name="linalg.svd")
    return write_out("linalg.svd", SVD(*made), out)


@asks_classes
@in_float32
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, descending.

    Args:
        A: (*, m, n).
        driver: None; others belong to CUDA.
        out: a tensor that receives the result.

    Returns:
        (*, min(m, n)), real.

    Example:
        >>> clew.linalg.svdvals(clew.tensor([[0.0, 2.0], [1.0, 0.0]]))
        tensor([2., 1.])
    """
    check_matrix("linalg.svdvals", A)
    _check_driver("linalg.svdvals", driver)
    return write_out("linalg.svdvals", singular_values(A, "linalg.svdvals"), out)


def singular_values(a: Tensor, name: str) -> Tensor:
    """The singular values; errors name ``name``."""
    check_inexact(name, a)
    if a.requires_grad and _C.is_grad_enabled():
        return _svd(a, full=False, name=name)[1]
    return _svdvals(a, name=name)


def _tolerances(name: str, a: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """The absolute and the relative limit as real tensors, one number or one a matrix."""
    if rtol is None:
        default = eps_of(a.dtype) * max(a.shape[-2:])
        if isinstance(atol, Tensor):
            rtol = (atol <= 0).to(real_dtype(a.dtype)) * default
        else:
            rtol = 0.0 if atol is not None and atol > 0 else default
    limits = []
    for word, value in (("atol", 0.0 if atol is None else atol), ("rtol", rtol)):
        if isinstance(value, Tensor):
            if value.is_complex():
                raise RuntimeError(f"{name}: {word} tensor of complex type is not supported.")
            limits.append(value.detach().to(real_dtype(a.dtype)))
        elif isinstance(value, (int, float)):
            limits.append(a.new_full((), value, dtype=real_dtype(a.dtype)))
        else:
            raise TypeError(
                f"{name}(): {word} must be a number or a Tensor; got {type(value).__name__}"
            )
    return limits[0], limits[1]


def _magnitudes(a: Tensor, hermitian: bool, name: str) -> Tensor:
    return eigvalsh(a).abs() if hermitian else singular_values(a, name)


@asks_classes
@in_float32
def matrix_rank(
    input: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The number of singular values greater than max(atol, rtol * the largest).

    Args:
        input: A, (*, m, n).
        tol: the older name of atol, with rtol 0.
        hermitian: A is hermitian; eigenvalues are used.
        atol: 0 by default; a number or a tensor.
        rtol: max(m, n) * eps by default, 0 when atol is given; a number or a tensor.
        out: a tensor that receives the result.

    Returns:
        (*), int64.

    Example:
        >>> clew.linalg.matrix_rank(clew.ones(3, 3))
        tensor(1)
    """
    name = "linalg.matrix_rank"
    need_bools(name, hermitian=hermitian)
    check_matrix(name, input, square=hermitian and input.numel() > 0)
    input = input.detach()
    if tol is not None:
        if atol is not None or rtol is not None:
            raise TypeError(f"{name}(): tol cannot be given together with atol or rtol")
        atol, rtol = tol, 0.0
    if min(input.shape[-2:]) == 0:
        made = input.new_zeros(input.shape[:-2], dtype=_dtypes.int64)
        return write_out(name, made, out, converts=True)
    sizes = _magnitudes(input, hermitian, name)
    absolute, relative = _tolerances(name, input, atol, rtol)
    limit = _C.functions["maximum"](absolute, relative * sizes.amax(-1))
    return write_out(name, (sizes > limit.unsqueeze(-1)).sum(-1), out, converts=True)


def _pinv_kernel(
    a: np.ndarray, atol: np.ndarray, rtol: np.ndarray, *, hermitian: bool, name: str
) -> np.ndarray:
    if hermitian:
        values, v = hermitian_factors(a, "L", name)
        u, vh = v, np.swapaxes(v, -2, -1).conj()
    else:
        u, values, vh = _decomposed(a, False, name)
    sizes = np.abs(values)
    keep = sizes > np.maximum(atol, rtol * sizes.max(-1, keepdims=True))
    inverse = np.where(keep, 1 / np.where(keep, values, 1), 0).astype(values.dtype)
    return (np.swapaxes(vh, -2, -1).conj() * inverse[..., None, :]) @ np.swapaxes(u, -2, -1).conj()


def _pinv_native(a: Tensor, atol: Tensor, rtol: Tensor, *, hermitian: bool, name: str) -> Any:
    if hermitian:
        values, v = hermitian_native(a, "L", name, True)
        sizes, uh = values.abs(), v.mH
    else:
        u, values, vh = _native(a, full=False, name=name)
        sizes, v, uh = values, vh.mH, u.mH
    limit = _C.functions["maximum"](atol, rtol * sizes.amax(-1, keepdim=True))
    inverse = values.reciprocal().masked_fill(sizes <= limit, 0.0)
    return ((v * inverse.unsqueeze(-2)) @ uh,)


def pinv_gradient(a: Tensor, p: Tensor, g: Tensor) -> Tensor:
    """The gradient of A for a gradient of P = pinv(A), at constant rank (Golub and Pereyra)."""
    ph, gh = p.mH, g.mH
    left, right = gh @ p, p @ gh
    first = left - a @ (p @ left)
    second = ph @ (right - (right @ p) @ a)
    return -(ph @ g @ ph) + first @ ph + second


def _pinv_gradient(c: Context, g: Tensor) -> Any:
    return pinv_gradient(c.inputs[0], c.outputs[0], g), None, None


_pinv = primitive(
    "Pinv",
    shapes=lambda a, *_, **__: [((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)],
    kernel=_pinv_kernel,
    gradient=_pinv_gradient,
    native=native(_pinv_native),
)


@asks_classes
def pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose pseudo-inverse.

    Args:
        input: A, (*, m, n).
        rcond: the older name of rtol.
        hermitian: A is hermitian; eigenvalues are used.
        atol: singular values up to max(atol, rtol * the largest) count as zero; 0 by default.
        rtol: max(m, n) * eps by default, 0 when atol is given.
        out: a tensor that receives the result.

    Returns:
        (*, n, m); differentiable where the rank is constant.

    Example:
        >>> clew.linalg.pinv(clew.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    if rcond is not None:
        if atol is not None or rtol is not None:
            raise TypeError("linalg.pinv(): rcond cannot be given together with atol or rtol")
        rtol = rcond
    return _pseudo_inverse("linalg.pinv", input, atol, rtol, hermitian, out)


def _pseudo_inverse(name: str, a: Any, atol: Any, rtol: Any, hermitian: bool, out: Any) -> Any:
    need_bools(name, hermitian=hermitian)
    check_matrix(name, a, square=hermitian and a.numel() > 0)
    if a.numel() == 0:
        made = a.mH * 1  # keeps the graph
        return write_out(name, made, out, converts=True, records=True)
    limits = (t.expand(a.shape[:-2]).unsqueeze(-1) for t in _tolerances(name, a, atol, rtol))
    made = _pinv(a, *limits, hermitian=hermitian, name=name)
    return write_out(name, made, out, converts=True, records=True)
