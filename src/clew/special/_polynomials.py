"""Orthogonal polynomials, by their recurrences

    P_0 = 1,  P_1 = s x + t,  P_k = (a x + b) P_{k-1} - c P_{k-2}

with a, b and c depending on k. Differentiating the recurrence gives every derivative in x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew._C import Tensor
from clew._primitive import Context
from clew.special._elementwise import elementwise, evaluate, published

__all__ = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]

# s and t; a, b and c of k.
Rule = tuple[float, float, Callable[[int], tuple[float, float, float]]]


def _plain(k: int) -> tuple[float, float, float]:
    return 2, 0, 1


def _moved(k: int) -> tuple[float, float, float]:
    return 4, -2, 1


_RULES: dict[str, Rule] = {
    "chebyshev_polynomial_t": (1, 0, _plain),
    "chebyshev_polynomial_u": (2, 0, _plain),
    "chebyshev_polynomial_v": (2, -1, _plain),
    "chebyshev_polynomial_w": (2, 1, _plain),
    "shifted_chebyshev_polynomial_t": (2, -1, _moved),
    "shifted_chebyshev_polynomial_u": (4, -2, _moved),
    "shifted_chebyshev_polynomial_v": (4, -3, _moved),
    "shifted_chebyshev_polynomial_w": (4, -1, _moved),
    "hermite_polynomial_h": (2, 0, lambda k: (2, 0, 2 * k - 2)),
    "hermite_polynomial_he": (1, 0, lambda k: (1, 0, k - 1)),
    "laguerre_polynomial_l": (-1, 1, lambda k: (-1 / k, (2 * k - 1) / k, (k - 1) / k)),
    "legendre_polynomial_p": (1, 0, lambda k: ((2 * k - 1) / k, 0, (k - 1) / k)),
}


def _kernel(x: np.ndarray, n: np.ndarray, family: str, derivative: int) -> np.ndarray:
    """The derivative-th derivative in x of P_n(x), with n cut to an integer; 0 where n < 0."""
    s, t, rule = _RULES[family]
    x = x.astype(np.float64)
    degree = np.trunc(n.astype(np.float64))
    result = np.where(np.isnan(degree) | (degree == np.inf), np.nan, 0.0)
    top = float(np.max(degree, where=np.isfinite(degree), initial=-1))
    # Row d of older and newer is the d-th derivative of P_{k-1} and P_k.
    older = np.zeros((derivative + 1, *x.shape))
    older[0] = 1
    newer = np.zeros_like(older)
    with np.errstate(all="ignore"):
        newer[0] = s * x + t
        if derivative:
            newer[1] = s
        result = np.where(degree == 0, older[derivative], result)
        k = 1
        while k <= top:
            result = np.where(degree == k, newer[derivative], result)
            if np.isnan(newer[derivative][degree > k]).all():
                result = np.where(degree > k, np.nan, result)
                break
            k += 1
            a, b, c = rule(k)
            following = (a * x + b) * newer - c * older
            for d in range(1, derivative + 1):
                following[d] += a * d * newer[d - 1]
            older, newer = newer, following
    return result


def _gradient(c: Context, grad: Tensor) -> tuple[Tensor, None]:
    x, n = c.inputs
    order = c.attrs["derivative"] + 1
    return grad * _polynomial(x, n, family=c.attrs["family"], derivative=order), None


_polynomial = elementwise("OrthogonalPolynomial", 2, _kernel, _gradient)

_DOC = """{what}; 0 where n is negative.

    It has a derivative in x, and none in n.

    Args:
        x: a tensor, or a number when n is a tensor.
        n: the degree, a tensor or a number; cut to an integer.
        out: the tensor to write into.

    Returns:
        A tensor of the broadcast shape.

    >>> clew.special.{name}(clew.tensor([0.5, 2.0]), 2)
    {example}
    """


def _public(name: str, what: str, example: str) -> Callable[..., Tensor]:
    def call(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
        return evaluate(name, _polynomial, x, n, out=out, family=name, derivative=0)

    return published(call, __name__, name, _DOC.format(what=what, name=name, example=example))


chebyshev_polynomial_t = _public(
    "chebyshev_polynomial_t",
    "The Chebyshev polynomial of the first kind, T_n(cos a) = cos(n a)",
    "tensor([-0.5000,  7.0000])",
)
chebyshev_polynomial_u = _public(
    "chebyshev_polynomial_u",
    "The Chebyshev polynomial of the second kind, U_n(cos a) = sin((n + 1) a) / sin(a)",
    "tensor([ 0., 15.])",
)
chebyshev_polynomial_v = _public(
    "chebyshev_polynomial_v",
    "The Chebyshev polynomial of the third kind, V_n(cos a) = cos((n + 1/2) a) / cos(a / 2)",
    "tensor([-1., 11.])",
)
chebyshev_polynomial_w = _public(
    "chebyshev_polynomial_w",
    "The Chebyshev polynomial of the fourth kind, W_n(cos a) = sin((n + 1/2) a) / sin(a / 2)",
    "tensor([ 1., 19.])",
)
hermite_polynomial_h = _public(
    "hermite_polynomial_h",
    "The physicists' Hermite polynomial, orthogonal under exp(-x^2)",
    "tensor([-1., 14.])",
)
hermite_polynomial_he = _public(
    "hermite_polynomial_he",
    "The probabilists' Hermite polynomial, orthogonal under exp(-x^2 / 2)",
    "tensor([-0.7500,  3.0000])",
)
laguerre_polynomial_l = _public(
    "laguerre_polynomial_l",
    "The Laguerre polynomial, orthogonal under exp(-x) for x > 0",
    "tensor([ 0.1250, -1.0000])",
)
legendre_polynomial_p = _public(
    "legendre_polynomial_p",
    "The Legendre polynomial, orthogonal from -1 to 1",
    "tensor([-0.1250,  5.5000])",
)
shifted_chebyshev_polynomial_t = _public(
    "shifted_chebyshev_polynomial_t",
    "The Chebyshev polynomial of the first kind moved to [0, 1]: T_n(2 x - 1)",
    "tensor([-1., 17.])",
)
shifted_chebyshev_polynomial_u = _public(
    "shifted_chebyshev_polynomial_u",
    "The Chebyshev polynomial of the second kind moved to [0, 1]: U_n(2 x - 1)",
    "tensor([-1., 35.])",
)
shifted_chebyshev_polynomial_v = _public(
    "shifted_chebyshev_polynomial_v",
    "The Chebyshev polynomial of the third kind moved to [0, 1]: V_n(2 x - 1)",
    "tensor([-1., 29.])",
)
shifted_chebyshev_polynomial_w = _public(
    "shifted_chebyshev_polynomial_w",
    "The Chebyshev polynomial of the fourth kind moved to [0, 1]: W_n(2 x - 1)",
    "tensor([-1., 41.])",
)
