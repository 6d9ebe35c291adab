"""Orthogonal polynomials, by their recurrences

    P_0 = 1,  P_1 = s x + t,  P_k = (a x + b) P_{k-1} - c P_{k-2}

with a, b and c depending on k. Differentiating the recurrence gives every derivative in x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor
from clew._ops.primitive import Context
from clew.special._elementwise import as_they_are, elementwise, evaluate, published

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

# Their numbers in the core.
_FAMILIES = {
    name: number
    for number, name in enumerate(
        (
            "chebyshev_polynomial_t",
            "chebyshev_polynomial_u",
            "chebyshev_polynomial_v",
            "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_t",
            "shifted_chebyshev_polynomial_u",
            "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w",
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    )
}


def _gradient(c: Context, grad: Tensor) -> tuple[Tensor, None]:
    x, n = c.inputs
    order = c.attrs["derivative"] + 1
    return grad * _polynomial(x, n, family=c.attrs["family"], derivative=order), None


def _native(x: Tensor, n: Tensor, family: str, derivative: int) -> tuple[Tensor]:
    return (_C.ops._polynomial(x, n, _FAMILIES[family], derivative),)


_polynomial = elementwise("OrthogonalPolynomial", None, _gradient, native=_native)

_DOC = """{what}; 0 where n is negative.

    It has a derivative in x, and none in n.

    Args:
        x: a tensor, or a number when n is a tensor.
        n: the degree, a tensor or a number; cut to an integer.
        out: the tensor to write into.

    Returns:
        A tensor of the broadcast shape.

    Example:
        >>> clew.special.{name}(clew.tensor([0.5, 2.0]), 2)
        {example}
    """


def _public(name: str, what: str, example: str) -> Callable[..., Tensor]:
    family = _FAMILIES[name]

    def call(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
        ready = as_they_are(x, n) if out is None else None
        if ready is not None:
            return _C.ops._polynomial(*ready, family, 0)
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
