"""Determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context, primitive, write_out

from ._common import SlogDet, check_matrix, every, eye_like, real_dtype
from ._lapack import native
from ._solve import inverse_or_nan

_SMALL = 8  # sizes up to which the characteristic polynomial is accurate


def _det_gradient(c: Context, g: Tensor) -> Tensor:
    (a,), (value,) = c.inputs, c.outputs
    return g.unsqueeze(-1).unsqueeze(-1) * cofactors(a, value)


def cofactors(a: Tensor, value: Tensor) -> Tensor:
    """The conjugate matrices of cofactors, det(a) a^-H, also of singular matrices.

    Args:
        a: (*, n, n).
        value: (*), the determinants.
    """
    n = a.shape[-1]
    if n == 1:
        return a.new_ones(a.shape)
    if a.device.type == "meta" or every(value != 0):
        return value.conj().unsqueeze(-1).unsqueeze(-1) * inverse_or_nan(a).mH
    h = a.mH
    if n <= _SMALL:
        # The adjugate is a polynomial of the matrix: right with all its derivatives.
        one = eye_like(a)
        m = one.expand(a.shape)
        for k in range(1, n):
            product = h @ m
            trace = product.diagonal(0, -2, -1).sum(-1)
            m = product - (trace / k).unsqueeze(-1).unsqueeze(-1) * one
        return m if n % 2 else -m
    from ._svd import svd

    u, s, vh = svd(a)
    sign = (det(u) * det(vh)).conj().unsqueeze(-1)
    others = (
        _C.functions["cat"]([s.unsqueeze(-2)] * n, -2)
        .masked_fill(eye_like(s, n) == 1, 1.0)
        .prod(-1)
    )
    return (u * (sign * others).unsqueeze(-2)) @ vh


def _det_kernel(a: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.det(a), a.dtype)


_det = primitive(
    "Det",
    shapes=lambda a: [(a.shape[:-2], a.dtype)],
    kernel=_det_kernel,
    gradient=_det_gradient,
    native=native(lambda a: (_C.ops._det(a),)),
)


@asks_classes
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of matrices.

    Args:
        A: (*, n, n).
        out: a tensor that receives the result.

    Returns:
        (*); the derivative is right for singular matrices too.

    Example:
        >>> clew.linalg.det(clew.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(8.)
    """
    check_matrix("linalg.det", A, square=True)
    return write_out("linalg.det", _det(A), out)


def _slogdet_gradient(c: Context, gs: Any, gl: Any) -> Any:
    # With t = tr(A^-1 dA): d log|det| = Re t, d sign = i sign Im t.
    (a,), (sign, _) = c.inputs, c.outputs
    if not a.is_complex():
        factor = gl
    else:
        factor = _C.functions["complex"](
            _zeros(sign) if gl is None else gl,
            _zeros(sign) if gs is None else -(gs.conj() * sign).imag,
        )
    if factor is None:
        return None
    return factor.unsqueeze(-1).unsqueeze(-1) * inverse_or_nan(a).mH


def _zeros(t: Tensor) -> Tensor:
    return t.new_zeros(t.shape, dtype=real_dtype(t.dtype))


_slogdet = primitive(
    "Slogdet",
    shapes=lambda a: [(a.shape[:-2], a.dtype), (a.shape[:-2], real_dtype(a.dtype))],
    kernel=lambda a: tuple(np.linalg.slogdet(a)),
    gradient=_slogdet_gradient,
    native=native(lambda a: _C.ops._slogdet(a)),
)


@asks_classes
def slogdet(A: Tensor, *, out: Any = None) -> SlogDet:
    """The sign of the determinant and the logarithm of its absolute value.

    Args:
        A: (*, n, n).
        out: a pair of tensors that receive the result.

    Returns:
        (sign, logabsdet), both (*): det(A) = sign * exp(logabsdet); 0 and -inf when A is singular.

    Example:
        >>> clew.linalg.slogdet(-clew.eye(3))[0]
        tensor(-1.)
    """
    check_matrix("linalg.slogdet", A, square=True)
    return write_out("linalg.slogdet", SlogDet(*_slogdet(A)), out)


@asks_classes
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan when it is negative.

    Args:
        input: (*, n, n).

    Returns:
        (*).

    Example:
        >>> clew.logdet(clew.eye(3))
        tensor(0.)
    """
    check_matrix("logdet", input, square=True)
    sign, log = _slogdet(input)
    if input.is_complex():
        return sign.log() + log
    return log.masked_fill(sign == -1, float("nan"))
