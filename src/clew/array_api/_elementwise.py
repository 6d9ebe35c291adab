"""Elementwise functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor

from ._common import Number, promoted, tensor_of


def _unary(name: str, of: str, doc: str) -> Callable[[Tensor], Tensor]:
    op: Any = getattr(clew, of)

    def function(x: Tensor, /) -> Tensor:
        return op(tensor_of(name, x))

    return _named(function, name, doc)


def _binary(name: str, of: str, doc: str) -> Callable[..., Tensor]:
    op: Any = getattr(clew, of)

    def function(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
        return op(*promoted(name, x1, x2))

    return _named(function, name, doc)


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Elementwise."
    return function


abs = _unary("abs", "abs", "The absolute value.")
acos = _unary("acos", "acos", "The arc cosine.")
acosh = _unary("acosh", "acosh", "The inverse hyperbolic cosine.")
asin = _unary("asin", "asin", "The arc sine.")
asinh = _unary("asinh", "asinh", "The inverse hyperbolic sine.")
atan = _unary("atan", "atan", "The arc tangent.")
atanh = _unary("atanh", "atanh", "The inverse hyperbolic tangent.")
bitwise_invert = _unary("bitwise_invert", "bitwise_not", "All bits inverted; for bool, not.")
ceil = _unary("ceil", "ceil", "The smallest whole number that is not less.")
conj = _unary("conj", "conj", "The complex conjugate.")
cos = _unary("cos", "cos", "The cosine.")
cosh = _unary("cosh", "cosh", "The hyperbolic cosine.")
exp = _unary("exp", "exp", "The exponential.")
expm1 = _unary("expm1", "expm1", "exp(x) - 1, accurate near zero.")
floor = _unary("floor", "floor", "The greatest whole number that is not more.")
isfinite = _unary("isfinite", "isfinite", "Whether it is neither infinite nor NaN.")
isinf = _unary("isinf", "isinf", "Whether it is infinite.")
isnan = _unary("isnan", "isnan", "Whether it is NaN.")
log = _unary("log", "log", "The natural logarithm.")
log10 = _unary("log10", "log10", "The logarithm of base 10.")
log1p = _unary("log1p", "log1p", "log(1 + x), accurate near zero.")
log2 = _unary("log2", "log2", "The logarithm of base 2.")
logical_not = _unary("logical_not", "logical_not", "Whether it is zero.")
negative = _unary("negative", "neg", "The number with the other sign.")
positive = _unary("positive", "positive", "The number itself.")
reciprocal = _unary("reciprocal", "reciprocal", "1 / x.")
signbit = _unary("signbit", "signbit", "Whether the sign bit is set.")
sin = _unary("sin", "sin", "The sine.")
sinh = _unary("sinh", "sinh", "The hyperbolic sine.")
sqrt = _unary("sqrt", "sqrt", "The square root.")
square = _unary("square", "square", "The square.")
tan = _unary("tan", "tan", "The tangent.")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent.")
trunc = _unary("trunc", "trunc", "The whole number next to it towards zero.")

add = _binary("add", "add", "x1 + x2.")
atan2 = _binary("atan2", "atan2", "The angle of the point (x2, x1).")
bitwise_and = _binary("bitwise_and", "bitwise_and", "The bits that both have.")
bitwise_left_shift = _binary(
    "bitwise_left_shift", "bitwise_left_shift", "The bits of x1 moved up by x2."
)
bitwise_or = _binary("bitwise_or", "bitwise_or", "The bits that either has.")
bitwise_right_shift = _binary(
    "bitwise_right_shift", "bitwise_right_shift", "The bits of x1 moved down by x2."
)
bitwise_xor = _binary("bitwise_xor", "bitwise_xor", "The bits that one of both has.")
copysign = _binary("copysign", "copysign", "x1 with the sign of x2.")
divide = _binary("divide", "true_divide", "x1 / x2.")
equal = _binary("equal", "eq", "Whether x1 == x2.")
floor_divide = _binary("floor_divide", "floor_divide", "x1 / x2, rounded down.")
greater = _binary("greater", "gt", "Whether x1 > x2.")
greater_equal = _binary("greater_equal", "ge", "Whether x1 >= x2.")
hypot = _binary("hypot", "hypot", "sqrt(x1**2 + x2**2) without overflow.")
less = _binary("less", "lt", "Whether x1 < x2.")
less_equal = _binary("less_equal", "le", "Whether x1 <= x2.")
logaddexp = _binary("logaddexp", "logaddexp", "log(exp(x1) + exp(x2)) without overflow.")
logical_and = _binary("logical_and", "logical_and", "Whether both are nonzero.")
logical_or = _binary("logical_or", "logical_or", "Whether one of both, or both, are nonzero.")
logical_xor = _binary("logical_xor", "logical_xor", "Whether exactly one is nonzero.")
maximum = _binary("maximum", "maximum", "The greater one; NaN if one is NaN.")
minimum = _binary("minimum", "minimum", "The smaller one; NaN if one is NaN.")
multiply = _binary("multiply", "mul", "x1 * x2.")
nextafter = _binary("nextafter", "nextafter", "The next floating point number from x1 towards x2.")
not_equal = _binary("not_equal", "ne", "Whether x1 != x2.")
pow = _binary("pow", "pow", "x1 to the power of x2.")
remainder = _binary("remainder", "remainder", "What floor division leaves; it has the sign of x2.")
subtract = _binary("subtract", "sub", "x1 - x2.")


def clip(
    x: Tensor,
    /,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
) -> Tensor:
    """Each element moved into [min, max]; the dtype stays.

    >>> clew.array_api.clip(clew.tensor([-3, 2, 9]), 0, 5)
    tensor([0, 2, 5])
    """
    bounds = [b if isinstance(b, Tensor) or b is None else _bound(b, x) for b in (min, max)]
    if all(b is None for b in bounds):
        return tensor_of("clip", x).clone()
    low, high = (b.to(x.dtype) if isinstance(b, Tensor) else b for b in bounds)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        out = x
        for bound, op in ((low, clew.maximum), (high, clew.minimum)):
            if bound is not None:
                value = bound if isinstance(bound, Tensor) else clew.tensor(bound, dtype=x.dtype)
                out = op(out, value)
        return out
    return clew.clamp(x, low, high)


def _bound(value: Number, x: Tensor) -> Any:
    if x.dtype.is_floating_point or isinstance(value, (bool, int)):
        return value
    limits = clew.iinfo(x.dtype)
    real: Any = value
    return limits.min if real <= limits.min else limits.max if real >= limits.max else real


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of each element."""
    return clew.imag(x) if x.is_complex() else clew.zeros_like(x)


def real(x: Tensor, /) -> Tensor:
    """The real part of each element."""
    return clew.real(x)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole number; halves go to the even one. Elementwise."""
    if tensor_of("round", x).is_complex():
        return clew.complex(clew.round(x.real), clew.round(x.imag))
    return clew.round(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by sign, NaN for NaN; for complex numbers x / abs(x). Elementwise.

    >>> clew.array_api.sign(clew.tensor([-2.0, 0.0, float("nan")]))
    tensor([-1., 0., nan])
    """
    out = clew.sgn(tensor_of("sign", x))
    return clew.where(clew.isnan(x), x, out) if x.is_floating_point() else out


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]
