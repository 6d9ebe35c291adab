"""Elementwise functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor

from ._common import Number, promoted, tensor_of


def _unary(name: str, of: str, doc: str, given: str, result: str) -> Callable[[Tensor], Tensor]:
    op: Any = getattr(clew, of)

    def function(x: Tensor, /) -> Tensor:
        return op(tensor_of(name, x))

    shape = "An array of the same shape."
    given = f"clew.tensor({given})"
    return _named(function, name, doc, "x: an array of any shape.", shape, given, result)


def _binary(
    name: str, of: str, doc: str, first: str, second: str, result: str
) -> Callable[..., Tensor]:
    op: Any = getattr(clew, of)

    def function(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
        return op(*promoted(name, x1, x2))

    args = "x1, x2: arrays whose shapes broadcast; one may be a number."
    shape = "An array of the shape that both broadcast to."
    given = f"clew.tensor({first}), {second}"
    return _named(function, name, doc, args, shape, given, result)


def _named(
    function: Any, name: str, doc: str, args: str, shape: str, given: str, result: str
) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc} Elementwise.

    Args:
        {args}

    Returns:
        {shape}

    >>> clew.array_api.{name}({given})
    tensor({result})
    """
    return function


abs = _unary("abs", "abs", "The absolute value.", "[-2.0, 3.0]", "[2., 3.]")
acos = _unary("acos", "acos", "The arc cosine.", "[0.0, 0.5]", "[1.5708, 1.0472]")
acosh = _unary("acosh", "acosh", "The inverse hyperbolic cosine.", "[1.0, 2.0]", "[0.0000, 1.3170]")
asin = _unary("asin", "asin", "The arc sine.", "[0.0, 0.5]", "[0.0000, 0.5236]")
asinh = _unary("asinh", "asinh", "The inverse hyperbolic sine.", "[0.0, 0.5]", "[0.0000, 0.4812]")
atan = _unary("atan", "atan", "The arc tangent.", "[0.0, 0.5]", "[0.0000, 0.4636]")
atanh = _unary(
    "atanh", "atanh", "The inverse hyperbolic tangent.", "[0.0, 0.5]", "[0.0000, 0.5493]"
)
bitwise_invert = _unary(
    "bitwise_invert", "bitwise_not", "All bits inverted; for bool, not.", "[0, 5]", "[-1, -6]"
)
ceil = _unary(
    "ceil", "ceil", "The smallest whole number that is not less.", "[-1.5, 1.5]", "[-1.,  2.]"
)
conj = _unary("conj", "conj", "The complex conjugate.", "[1 + 2j]", "[1.-2.j]")
cos = _unary("cos", "cos", "The cosine.", "[0.0, 0.5]", "[1.0000, 0.8776]")
cosh = _unary("cosh", "cosh", "The hyperbolic cosine.", "[0.0, 0.5]", "[1.0000, 1.1276]")
exp = _unary("exp", "exp", "The exponential.", "[0.0, 1.0]", "[1.0000, 2.7183]")
expm1 = _unary(
    "expm1", "expm1", "exp(x) - 1, accurate near zero.", "[0.0, 1e-7]", "[0.0000e+00, 1.0000e-07]"
)
floor = _unary(
    "floor", "floor", "The greatest whole number that is not more.", "[-1.5, 1.5]", "[-2.,  1.]"
)
isfinite = _unary(
    "isfinite",
    "isfinite",
    "Whether it is neither infinite nor NaN.",
    '[1.0, float("inf")]',
    "[ True, False]",
)
isinf = _unary("isinf", "isinf", "Whether it is infinite.", '[1.0, float("inf")]', "[False,  True]")
isnan = _unary("isnan", "isnan", "Whether it is NaN.", '[1.0, float("nan")]', "[False,  True]")
log = _unary("log", "log", "The natural logarithm.", "[1.0, 10.0]", "[0.0000, 2.3026]")
log10 = _unary("log10", "log10", "The logarithm of base 10.", "[1.0, 100.0]", "[0., 2.]")
log1p = _unary(
    "log1p", "log1p", "log(1 + x), accurate near zero.", "[0.0, 1e-7]", "[0.0000e+00, 1.0000e-07]"
)
log2 = _unary("log2", "log2", "The logarithm of base 2.", "[1.0, 8.0]", "[0., 3.]")
logical_not = _unary(
    "logical_not", "logical_not", "Whether it is zero.", "[0, 5]", "[ True, False]"
)
negative = _unary("negative", "neg", "The number with the other sign.", "[-2.0, 3.0]", "[ 2., -3.]")
positive = _unary("positive", "positive", "The number itself.", "[-2.0, 3.0]", "[-2.,  3.]")
reciprocal = _unary("reciprocal", "reciprocal", "1 / x.", "[2.0, 4.0]", "[0.5000, 0.2500]")
signbit = _unary(
    "signbit", "signbit", "Whether the sign bit is set.", "[-2.0, 3.0]", "[ True, False]"
)
sin = _unary("sin", "sin", "The sine.", "[0.0, 0.5]", "[0.0000, 0.4794]")
sinh = _unary("sinh", "sinh", "The hyperbolic sine.", "[0.0, 0.5]", "[0.0000, 0.5211]")
sqrt = _unary("sqrt", "sqrt", "The square root.", "[4.0, 9.0]", "[2., 3.]")
square = _unary("square", "square", "The square.", "[-2.0, 3.0]", "[4., 9.]")
tan = _unary("tan", "tan", "The tangent.", "[0.0, 0.5]", "[0.0000, 0.5463]")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent.", "[0.0, 0.5]", "[0.0000, 0.4621]")
trunc = _unary(
    "trunc", "trunc", "The whole number next to it towards zero.", "[-1.5, 1.5]", "[-1.,  1.]"
)

add = _binary("add", "add", "x1 + x2.", "[1, 2]", "10", "[11, 12]")
atan2 = _binary(
    "atan2", "atan2", "The angle of the point (x2, x1).", "[0.0, 1.0]", "1.0", "[0.0000, 0.7854]"
)
bitwise_and = _binary(
    "bitwise_and", "bitwise_and", "The bits that both have.", "[6, 5]", "3", "[2, 1]"
)
bitwise_left_shift = _binary(
    "bitwise_left_shift",
    "bitwise_left_shift",
    "The bits of x1 moved up by x2.",
    "[1, 3]",
    "2",
    "[ 4, 12]",
)
bitwise_or = _binary(
    "bitwise_or", "bitwise_or", "The bits that either has.", "[6, 5]", "3", "[7, 7]"
)
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    "bitwise_right_shift",
    "The bits of x1 moved down by x2.",
    "[4, 12]",
    "2",
    "[1, 3]",
)
bitwise_xor = _binary(
    "bitwise_xor", "bitwise_xor", "The bits that one of both has.", "[6, 5]", "3", "[5, 6]"
)
copysign = _binary(
    "copysign", "copysign", "x1 with the sign of x2.", "[1.0, -2.0]", "-1.0", "[-1., -2.]"
)
divide = _binary("divide", "true_divide", "x1 / x2.", "[1.0, 3.0]", "2.0", "[0.5000, 1.5000]")
equal = _binary("equal", "eq", "Whether x1 == x2.", "[1, 2]", "2", "[False,  True]")
floor_divide = _binary(
    "floor_divide", "floor_divide", "x1 / x2, rounded down.", "[-7, 7]", "2", "[-4,  3]"
)
greater = _binary("greater", "gt", "Whether x1 > x2.", "[1, 3]", "2", "[False,  True]")
greater_equal = _binary("greater_equal", "ge", "Whether x1 >= x2.", "[1, 2]", "2", "[False,  True]")
hypot = _binary(
    "hypot",
    "hypot",
    "sqrt(x1**2 + x2**2) without overflow.",
    "[3.0, 5.0]",
    "4.0",
    "[5.0000, 6.4031]",
)
less = _binary("less", "lt", "Whether x1 < x2.", "[1, 3]", "2", "[ True, False]")
less_equal = _binary("less_equal", "le", "Whether x1 <= x2.", "[2, 3]", "2", "[ True, False]")
logaddexp = _binary(
    "logaddexp",
    "logaddexp",
    "log(exp(x1) + exp(x2)) without overflow.",
    "[0.0, 1000.0]",
    "0.0",
    "[6.9315e-01, 1.0000e+03]",
)
logical_and = _binary(
    "logical_and", "logical_and", "Whether both are nonzero.", "[0, 5]", "1", "[False,  True]"
)
logical_or = _binary(
    "logical_or",
    "logical_or",
    "Whether one of both, or both, are nonzero.",
    "[0, 5]",
    "0",
    "[False,  True]",
)
logical_xor = _binary(
    "logical_xor", "logical_xor", "Whether exactly one is nonzero.", "[0, 5]", "1", "[ True, False]"
)
maximum = _binary(
    "maximum", "maximum", "The greater one; NaN if one is NaN.", "[1, 3]", "2", "[2, 3]"
)
minimum = _binary(
    "minimum", "minimum", "The smaller one; NaN if one is NaN.", "[1, 3]", "2", "[1, 2]"
)
multiply = _binary("multiply", "mul", "x1 * x2.", "[1, 2]", "10", "[10, 20]")
nextafter = _binary(
    "nextafter",
    "nextafter",
    "The next floating point number from x1 towards x2.",
    "[0.0]",
    "1.0",
    "[1.4013e-45]",
)
not_equal = _binary("not_equal", "ne", "Whether x1 != x2.", "[1, 2]", "2", "[ True, False]")
pow = _binary("pow", "pow", "x1 to the power of x2.", "[2, 3]", "2", "[4, 9]")
remainder = _binary(
    "remainder",
    "remainder",
    "What floor division leaves; it has the sign of x2.",
    "[-7, 7]",
    "3",
    "[2, 1]",
)
subtract = _binary("subtract", "sub", "x1 - x2.", "[1, 2]", "10", "[-9, -8]")


def clip(
    x: Tensor,
    /,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
) -> Tensor:
    """Each element moved into [min, max]; the dtype stays.

    Args:
        x: an array.
        min, max: the bounds, numbers or arrays that broadcast with `x`; None for none.

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
    """The imaginary part of each element; zeros of real numbers.

    Args:
        x: an array.

    >>> clew.array_api.imag(clew.tensor([1 + 2j]))
    tensor([2.])
    """
    return clew.imag(x) if x.is_complex() else clew.zeros_like(x)


def real(x: Tensor, /) -> Tensor:
    """The real part of each element.

    Args:
        x: an array.

    >>> clew.array_api.real(clew.tensor([1 + 2j]))
    tensor([1.])
    """
    return clew.real(x)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole number; halves go to the even one. Elementwise.

    Args:
        x: an array.

    >>> clew.array_api.round(clew.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    """
    if tensor_of("round", x).is_complex():
        return clew.complex(clew.round(x.real), clew.round(x.imag))
    return clew.round(x)


def sign(x: Tensor, /) -> Tensor:
    """The sign, -1, 0 or 1; NaN for NaN; for complex numbers x / abs(x). Elementwise.

    Args:
        x: an array.

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
