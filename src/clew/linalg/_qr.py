"""The QR factorization and products of reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew import _C
from clew._base.arguments import need_bools, need_string
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.results import shown_as
from clew._C import Tensor, eye
from clew._ops.primitive import Context, primitive, write_out

from ._common import QR, check_matrix, check_same, check_tensor, conj_transpose, show
from ._lapack import loaded, native
from ._triangular import triangular

_MODES = ("reduced", "complete", "r")


def _qr_shapes(a: Tensor, *, mode: str) -> Any:
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    return [((*batch, m, k) if mode != "r" else (0,), a.dtype), ((*batch, k, n), a.dtype)]


def _qr_kernel(a: np.ndarray, *, mode: str) -> Any:
    *batch, m, n = a.shape
    if a.size == 0:
        k = m if mode == "complete" else min(m, n)
        q = np.zeros((*batch, m, k), a.dtype)
        q[..., :, :] = np.eye(m, k, dtype=a.dtype)
        r = np.zeros((*batch, k, n), a.dtype)
        return np.zeros(0, a.dtype) if mode == "r" else q, r
    if mode == "r":
        return np.zeros(0, a.dtype), np.linalg.qr(a, mode="r")
    q, r = np.linalg.qr(a, mode=mode)  # type: ignore[call-overload]
    return q, r


def _qr_gradient(c: Context, gq: Any, gr: Any) -> Any:
    (a,), (q, r), mode = c.inputs, c.outputs, c.attrs["mode"]
    m, n = a.shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
            "Please use linalg.qr(A, mode='reduced') if you are going to differentiate through "
            "linalg.qr."
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols; "
            f"got {show(a)}"
        )
    if gq is None:
        gq = q.new_zeros(q.shape)
    rest = None
    if m < n:
        # The first columns decide Q; of the others R has Q^H A.
        if gr is not None:
            gq = gq + a[..., m:] @ gr[..., m:].mH
            rest = q @ gr[..., m:]
            gr = gr[..., :m]
        r = r[..., :m]
    # With C = dA R^-1 and X = Q^H C: dQ = C - Q X + Q skew(X), dR = (X - skew(X)) R, where
    # skew takes the part below the diagonal and the diagonal's imaginary part.
    k = q.mH @ gq
    if gr is not None:
        k = k - gr @ r.mH
    skew = (k - k.mH).tril(-1)
    if k.is_complex():
        diagonal = k.diagonal(0, -2, -1)
        skew = skew + ((diagonal - diagonal.conj()) * 0.5).diag_embed()
    inner = gq + q @ (skew - k)
    ga = triangular(r, inner.mH, upper=True).mH  # inner R^-H
    if m < n:
        if rest is None:
            rest = a.new_zeros((*a.shape[:-1], n - m))
        ga = _C.functions["cat"]([ga, rest], -1)
    return ga


def _qr_native(a: Tensor, *, mode: str) -> Any:
    return _C.ops._qr(a, mode == "complete", mode != "r")[:2]


_qr = primitive(
    "Qr",
    shapes=_qr_shapes,
    kernel=_qr_kernel,
    gradient=_qr_gradient,
    native=native(_qr_native),
)


@asks_classes
@in_float32
def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> QR:
    """The factors of A = Q R with orthonormal columns of Q and upper triangular R.

    Args:
        A: (*, m, n).
        mode: "reduced" (k = min(m, n) columns of Q), "complete" (m of them), or "r" (Q is empty).
        out: a pair of tensors that receive the result.

    Returns:
        (Q, R), (*, m, k) and (*, k, n).

    Example:
        >>> clew.linalg.qr(clew.tensor([[3.0], [4.0]])).R.abs()
        tensor([[5.]])
    """
    return _factors("linalg.qr", A, mode, out)


def _factors(name: str, a: Tensor, mode: Any, out: Any) -> Any:
    check_matrix(name, a)
    need_string(name, "mode", mode)
    if mode not in _MODES:
        raise RuntimeError(
            f"{name}: qr received unrecognized mode {mode!r} but expected one of 'reduced' "
            "(default), 'r', or 'complete'"
        )
    return write_out(name, QR(*_qr(a, mode=mode)), out)


@shown_as("geqrf")
class Geqrf(NamedTuple):
    """Reflections below the diagonal, R above, and the reflections' factors."""

    a: Tensor
    tau: Tensor


def _geqrf_shapes(a: Tensor) -> Any:
    return [(a.shape, a.dtype), ((*a.shape[:-2], min(a.shape[-2:])), a.dtype)]


def _geqrf_kernel(a: np.ndarray) -> Any:
    if a.size == 0:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    h, tau = np.linalg.qr(a, mode="raw")
    return np.swapaxes(h, -2, -1), tau


_geqrf = primitive(
    "Geqrf",
    shapes=_geqrf_shapes,
    kernel=_geqrf_kernel,
    gradient=None,
    native=native(lambda a: _C.ops._geqrf(a)[:2]),
)


@asks_classes
@in_float32
def geqrf(input: Tensor, *, out: Any = None) -> Geqrf:
    """LAPACK's compact form of the QR factorization.

    Args:
        input: (*, m, n).
        out: a pair of tensors that receive the result.

    Returns:
        (a, tau): R in and above the diagonal of a, the reflections below it; tau (*, min(m, n)).

    Example:
        >>> clew.geqrf(clew.eye(2)).tau.shape
        clew.Size([2])
    """
    check_matrix("geqrf", input, "input")
    return write_out("geqrf", Geqrf(*_geqrf(input)), out, converts=True)


def _check_reflections(name: str, a: Any, tau: Any, argument: str) -> None:
    check_matrix(name, a, argument)
    check_tensor(name, "tau", tau)
    check_same(name, a, tau)
    if tau.shape[:-1] != a.shape[:-2] or tau.ndim != a.ndim - 1:
        raise RuntimeError(
            f"{name}: tau must have the batch dimensions of {argument} and one more; got "
            f"{show(a)} and {show(tau)}"
        )


def _reflect(v: Tensor, tau: Tensor, x: Tensor) -> Tensor:
    """x - tau v (v^H x): the reflection of x's columns."""
    return x - (tau.unsqueeze(-1).unsqueeze(-1) * v) @ (v.mH @ x)


def _vector(a: Tensor, k: int) -> Tensor:
    """The k-th reflection's vector: zeros, a one, what stands below the diagonal."""
    m = a.shape[-2]
    column = a[..., k + 1 :, k : k + 1]
    one = column.new_ones((*a.shape[:-2], 1, 1))
    zeros = column.new_zeros((*a.shape[:-2], k, 1))
    return _C.functions["cat"]([zeros, one, column] if m else [column], -2)


@asks_classes
@in_float32
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of the product of the reflections I - tau_i v_i v_i^H.

    Args:
        input: (*, m, n), m >= n; v_i stands below the diagonal in column i.
        tau: (*, k), k <= n.
        out: a tensor that receives the result.

    Returns:
        (*, m, n).

    Example:
        >>> a, tau = clew.geqrf(clew.tensor([[3.0], [4.0]]))
        >>> clew.linalg.householder_product(a, tau).abs()
        tensor([[0.6000],
                [0.8000]])
    """
    name = "linalg.householder_product"
    _check_reflections(name, input, tau, "input")
    m, n = input.shape[-2:]
    if m < n or tau.shape[-1] > n:
        raise RuntimeError(
            f"{name}: input must have at least as many rows as columns, and tau at most as many "
            f"elements as there are columns; got {show(input)} and {show(tau)}"
        )
    if loaded and _C._plain(input, tau):
        return write_out(name, _C.ops._householder_product(input, tau)[0], out, converts=True)
    q = eye(m, n, dtype=input.dtype, device=input.device).expand(input.shape)
    for k in range(tau.shape[-1] - 1, -1, -1):
        q = _reflect(_vector(input, k), tau[..., k], q)
    if not tau.shape[-1]:
        q = _C.ops.where(_C.tensor(False), input, q)  # recorded; values of the input do not get in
    return write_out(name, q, out, converts=True)


@asks_classes
@in_float32
def ormqr(
    input: Tensor,
    input2: Tensor,
    input3: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The product of other and the full orthogonal matrix that reflections make.

    Args:
        input: (*, m, k), the reflections as geqrf gives them.
        input2: (*, k).
        input3: (*, m, n), or (*, n, m) when left is False.
        left: multiply from the left.
        transpose: multiply with the conjugate transpose.
        out: a tensor that receives the result.

    Returns:
        the shape of other.

    Example:
        >>> a, tau = clew.geqrf(clew.tensor([[3.0], [4.0]]))
        >>> clew.ormqr(a, tau, clew.tensor([[3.0], [4.0]]), transpose=True)[0].abs()
        tensor([5.])
    """
    _check_reflections("ormqr", input, input2, "input")
    check_matrix("ormqr", input3, "other")
    need_bools("ormqr", left=left, transpose=transpose)
    check_same("ormqr", input, input3)
    if (
        input3.shape[:-2] != input.shape[:-2]
        or input3.shape[-2 if left else -1] != input.shape[-2]
        or input2.shape[-1] > min(input.shape[-2:])
    ):
        raise RuntimeError(
            "ormqr: other must have the batch dimensions of input and as many "
            f"{'rows' if left else 'columns'} as input has rows, and tau at most min(m, k) "
            f"elements; got {show(input)}, {show(input2)} and {show(input3)}"
        )
    if loaded and _C._plain(input, input2, input3):
        x = _C.ops._ormqr(input, input2, input3, bool(left), bool(transpose))[0]
        return write_out("ormqr", x, out)
    # x Q is (Q^H x^H)^H.
    x = input3 if left else input3.mH
    adjoint = transpose == left
    steps = range(input2.shape[-1])
    for k in steps if adjoint else reversed(steps):
        factor = input2[..., k].conj() if adjoint else input2[..., k]
        x = _reflect(_vector(input, k), factor, x)
    if not left:
        x = conj_transpose(x)
    return write_out("ormqr", x if input2.shape[-1] else x.clone(), out)
