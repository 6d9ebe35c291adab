"""Special functions and losses that ONNX has no operator for, made of those that it has."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers

# M. Giles, "Approximating the erfinv function" (2010), table 5: highest power first.
_NEAR = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
         -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_FAR = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
        -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip
# Lanczos' approximation with g = 7 and nine terms, as in Godfrey's note (2001).
_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
            -176.61502916214059, 12.507343278686905, -0.13857109526572012,
            9.9843695780195716e-6, 1.5056327351493116e-7)  # fmt: skip


class _Arithmetic:
    """Operators between names and numbers of one dtype."""

    def __init__(self, b: Builder, dtype: str) -> None:
        self.b, self.dtype = b, dtype

    def __call__(self, kind: str, *inputs: Any) -> str:
        names = [x if isinstance(x, str) else self.b.scalar(x, self.dtype) for x in inputs]
        return str(self.b.op(kind, *names))

    def polynomial(self, factors: tuple[float, ...], x: str) -> str:
        """By Horner's rule."""
        total: Any = factors[0]
        for factor in factors[1:]:
            total = self("Add", self("Mul", total, x), factor)
        return str(total)


@lowers("erfinv", "special.erfinv")
def _erfinv(b: Builder, a: Any) -> str:
    if a.out.dtype == clew.float64:
        raise OnnxExporterError("onnx.export: erfinv() of float64, which has 7 digits in ONNX")
    do = _Arithmetic(b, "float64")
    x = b.of(a.input, clew.float64)
    w = do("Neg", do("Log", do("Mul", do("Sub", 1.0, x), do("Add", 1.0, x))))
    near = do.polynomial(_NEAR, do("Sub", w, 2.5))
    far = do.polynomial(_FAR, do("Sub", do("Sqrt", do("Max", w, 0.0)), 3.0))
    found = do("Mul", do("Where", do("Less", w, 5.0), near, far), x)
    edge = do("Equal", do("Abs", x), 1.0)
    found = do("Where", edge, do("Mul", x, math.inf), found)
    return b.cast(found, a.out.dtype)


@lowers("lgamma", "special.gammaln")
def _lgamma(b: Builder, a: Any) -> str:
    return b.cast(_log_gamma(b, b.of(a.input, clew.float64)), a.out.dtype)


@lowers("mvlgamma", "special.multigammaln")
def _multigammaln(b: Builder, a: Any) -> str:
    do = _Arithmetic(b, "float64")
    x, p = b.of(a.node.args[0], clew.float64), argument(a, 1, "p", 1)
    found: Any = p * (p - 1) / 4 * math.log(math.pi)
    for k in range(p):
        found = do("Add", _log_gamma(b, do("Sub", x, k / 2)), found)
    return b.cast(found, a.out.dtype)


def _log_gamma(b: Builder, x: str) -> str:
    do = _Arithmetic(b, "float64")
    low = do("Less", x, 0.5)
    z = do("Sub", do("Where", low, do("Sub", 1.0, x), x), 1.0)
    series: Any = _LANCZOS[0]
    for k, factor in enumerate(_LANCZOS[1:], 1):
        series = do("Add", series, do("Div", factor, do("Add", z, float(k))))
    t = do("Add", z, 7.5)
    found = do("Mul", do("Add", z, 0.5), do("Log", t))
    found = do("Add", do("Sub", found, t), 0.5 * math.log(2 * math.pi))
    found = do("Add", found, do("Log", series))
    # Below a half by reflection: the distance to the next whole number keeps the sine exact there.
    apart = do("Sub", x, do("Round", x))
    sine = do("Abs", do("Sin", do("Mul", apart, math.pi)))
    mirrored = do("Sub", do("Sub", math.log(math.pi), do("Log", sine)), found)
    found = do("Where", low, mirrored, found)
    whole = do("Or", do("And", do("Equal", apart, 0.0), do("LessOrEqual", x, 0.0)),
               do("Equal", do("Abs", x), math.inf))  # fmt: skip
    return str(do("Where", whole, math.inf, found))


@lowers("ops._binary_cross_entropy_with_logits")
def _binary_cross_entropy_with_logits(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    do = _Arithmetic(b, dtype.name)
    x, target = b.of(a.input, dtype), b.of(a.target, dtype)
    rest = do("Log", do("Add", 1.0, do("Exp", do("Neg", do("Abs", x)))))
    return do("Add", do("Sub", do("Max", x, 0.0), do("Mul", x, target)), rest)
