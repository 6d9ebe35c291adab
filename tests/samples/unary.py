"""Functions of one number: elementary, rounding, complex parts, special functions, copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from samples import COMPLEX, FLOATS, FLOATS_32_64, INTS, E, Op, S, also


def one(
    name: str,
    reference: Callable[..., Any],
    low: float = -2.0,
    high: float = 2.0,
    *,
    halves: bool = True,
    complex_too: bool = False,
    **more: Any,
) -> Op:
    """An op of one tensor, tried with numbers from low to high."""

    def samples(r: Any) -> list[S]:
        shapes = [(3, 4), (), (0, 3), (2, 1, 3)]
        found = [S(r.uniform(shape, low, high)) for shape in shapes]
        if complex_too:
            found += [S(r.complex((2, 3)) * 0.7), S(r.complex(()))]
        return found

    dtypes = (FLOATS if halves else FLOATS_32_64) + (COMPLEX if complex_too else ())
    more.setdefault("errors", [E(S("x"), TypeError, "must be Tensor")])
    return Op(name, reference, samples, dtypes=dtypes, **more)


def wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """f of integers in double precision."""
    return lambda *args: f(*(np.asarray(a) * 1.0 for a in args))


def away_from_steps(r: Any) -> list[S]:
    """Numbers with fractions from 0.2 to 0.8, where no rounding jumps."""

    def numbers(shape: Any) -> np.ndarray:
        return np.asarray(r.integers(-4, 4, shape) + r.uniform(shape, 0.2, 0.4))

    return [S(numbers((3, 4))), S(numbers(())), S(numbers((0,)))]


def polygamma(n: int, x: np.ndarray) -> np.ndarray:
    return sp.polygamma(n, x)


def round_reference(x: np.ndarray, decimals: int = 0) -> np.ndarray:
    return np.round(x, decimals)


def logit(x: np.ndarray, eps: float | None = None) -> np.ndarray:
    return sp.logit(x if eps is None else np.clip(x, eps, 1 - eps))


def sgn(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def angle(x: np.ndarray) -> np.ndarray:
    return np.angle(x)


def rounding(name: str, f: Callable[..., Any], **more: Any) -> Op:
    return Op(name, f, away_from_steps, dtypes=FLOATS, **more)


OPS = [
    one("exp", wide(np.exp), complex_too=True, integers=INTS),
    *also(one("exp2", np.exp2, complex_too=False), "special.exp2"),
    *also(one("expm1", np.expm1, complex_too=True), "special.expm1"),
    one("log", np.log, 0.1, 3.0, complex_too=True),
    one("log2", np.log2, 0.1, 3.0, complex_too=True),
    one("log10", np.log10, 0.1, 3.0, complex_too=True),
    *also(one("log1p", np.log1p, -0.9, 3.0, complex_too=True), "special.log1p"),
    one("sqrt", np.sqrt, 0.1, 3.0, complex_too=True),
    one("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 3.0, complex_too=True),
    one("sin", np.sin, -9.0, 9.0, complex_too=True),
    one("cos", np.cos, -9.0, 9.0, complex_too=True),
    one("tan", np.tan, -1.2, 1.2, complex_too=True),
    *also(one("asin", np.arcsin, -0.9, 0.9, complex_too=True), "arcsin"),
    *also(one("acos", np.arccos, -0.9, 0.9, complex_too=True), "arccos"),
    *also(one("atan", np.arctan, complex_too=True), "arctan"),
    one("sinh", np.sinh, complex_too=True),
    one("cosh", np.cosh, complex_too=True),
    one("tanh", np.tanh, complex_too=True),
    *also(one("asinh", np.arcsinh, complex_too=True), "arcsinh"),
    *also(one("acosh", np.arccosh, 1.2, 3.0, complex_too=True), "arccosh"),
    *also(one("atanh", np.arctanh, -0.9, 0.9, complex_too=True), "arctanh"),
    *also(
        one(
            "sigmoid",
            wide(lambda x: 1 / (1 + np.exp(-x))),
            -8.0,
            8.0,
            complex_too=True,
            integers=INTS,
        ),
        "special.expit",
        "nn.functional.sigmoid",
    ),
    Op(
        "_tanh_backward",
        lambda g, y: g * np.conj(1 - y * y),
        lambda r: [
            S(r.normal((3, 4)), r.uniform((3, 4), -1, 1)),
            S(r.complex((3,)), r.complex((3,))),
        ],
        dtypes=FLOATS_32_64 + COMPLEX,
    ),
    Op(
        "_sigmoid_backward",
        lambda g, y: g * np.conj(y * (1 - y)),
        lambda r: [S(r.normal((3, 4)), r.uniform((3, 4))), S(r.complex((3,)), r.complex((3,)))],
        dtypes=FLOATS_32_64 + COMPLEX,
    ),
    *also(
        Op(
            "logit",
            logit,
            lambda r: [
                S(r.uniform((3, 4), 0.1, 0.9)),
                S(r.uniform((), 0.1, 0.9)),
                S(r.uniform((5,), 0.3, 0.7), 0.2),
                S(r.uniform((5,), 0.0, 0.15), eps=0.2),
            ],
        ),
        "special.logit",
    ),
    Op("_logit", sp.logit, lambda r: [S(r.uniform((3, 4), 0.1, 0.9))]),
    *also(one("sinc", np.sinc, 0.2, 3.0, complex_too=True), "special.sinc"),
    one("deg2rad", np.deg2rad, -300.0, 300.0, halves=False),
    one("rad2deg", np.rad2deg, halves=False),
    rounding("floor", np.floor, integers=INTS),
    rounding("ceil", np.ceil, integers=INTS),
    *also(rounding("trunc", np.trunc, integers=INTS), "fix"),
    rounding("frac", lambda x: x - np.trunc(x)),
    *also(
        Op(
            "round",
            round_reference,
            lambda r: [
                *away_from_steps(r),
                S(np.array([0.5, 1.5, 2.5, -0.5])),
                S(r.normal((3, 4)) * 40, decimals=1),
                S(r.normal((3, 4)) * 40, decimals=-1),
            ],
            errors=[E(S(np.array([1, 2]), decimals=1), RuntimeError, "decimals")],
        ),
        "special.round",
    ),
    # --- arithmetic of one number ---
    *also(one("neg", np.negative, complex_too=True, integers=INTS), "negative"),
    one("positive", np.positive, complex_too=True, integers=INTS),
    *also(one("abs", np.abs, 0.2, 2.0, complex_too=True, integers=INTS, inplace=False), "absolute"),
    one("sign", np.sign, 0.2, 2.0, integers=INTS),
    one("sgn", sgn, -2.0, -0.2, complex_too=True, integers=INTS),
    one("square", np.square, complex_too=True, integers=INTS),
    one("reciprocal", lambda x: 1 / x, 0.3, 2.0, complex_too=True),
    # --- complex numbers ---
    one("_conj_physical", np.conj, complex_too=True, integers=INTS),
    one("conj_physical", np.conj, complex_too=True, integers=INTS),
    one("conj", np.conj, complex_too=True, out=False),
    one("resolve_conj", lambda x: x, complex_too=True, out=False),
    one("resolve_neg", lambda x: x, complex_too=True, out=False),
    one("real", np.real, complex_too=True, out=False),
    Op(
        "imag",
        np.imag,
        lambda r: [S(r.complex((2, 3))), S(r.complex(()))],
        dtypes=COMPLEX,
        out=False,
        errors=[E(S(np.ones(2)), RuntimeError, "must be complex")],
    ),
    one("angle", angle, 0.2, 2.0, complex_too=True, inplace=False),
    Op(
        "complex",
        lambda a, b: a + 1j * b,
        lambda r: [
            S(r.normal((3, 1)), r.normal((4,))),
            S(r.normal(()), r.normal(())),
            S(r.normal((0, 2)), r.normal((2,))),
        ],
        dtypes=("float32", "float64"),
        errors=[
            E(S(np.ones(2), np.ones(2, np.int64)), RuntimeError, "one dtype"),
            E(S(np.ones(2, np.int64), np.ones(2)), RuntimeError, "float32 or float64"),
        ],
    ),
    Op(
        "polar",
        lambda a, b: a * np.exp(1j * b),
        lambda r: [S(r.uniform((3, 1), 0.1, 2), r.normal((4,))), S(r.uniform(()), r.normal(()))],
    ),
    # --- special functions ---
    *also(one("erf", sp.erf, -4.0, 4.0), "special.erf"),
    *also(one("erfc", sp.erfc, -4.0, 4.0), "special.erfc"),
    *also(one("erfinv", sp.erfinv, -0.95, 0.95), "special.erfinv"),
    one("special.erfcx", sp.erfcx, -2.0, 8.0, halves=False),
    one("special.ndtr", sp.ndtr, -4.0, 4.0, halves=False),
    one("special.ndtri", sp.ndtri, 0.01, 0.99, halves=False),
    one("special.log_ndtr", sp.log_ndtr, -12.0, 3.0, halves=False),
    one("special.entr", sp.entr, 0.1, 3.0, halves=False),
    *also(one("lgamma", sp.gammaln, 0.2, 5.0), "special.gammaln"),
    *also(one("digamma", sp.digamma, 0.2, 5.0, rtol=3.0), "special.digamma", "special.psi"),
    Op(
        "polygamma",
        polygamma,
        lambda r: [S(n, r.uniform((2, 3), 0.4, 4.0)) for n in (0, 1, 2, 3)],
        rtol=3.0,
        inplace=False,
        errors=[E(S(-1, np.ones(2)), RuntimeError, "negative")],
    ),
    Op(
        "special.polygamma",
        polygamma,
        lambda r: [S(1, r.uniform((2, 3), 0.4, 4.0))],
        rtol=3.0,
        inplace=False,
    ),
    Op(
        "_polygamma",
        lambda x, n: sp.polygamma(n, x),
        lambda r: [S(r.uniform((2, 3), 0.4, 4.0), 2)],
        rtol=3.0,
    ),
    *also(
        Op(
            "mvlgamma",
            lambda x, p: np.vectorize(lambda v: sp.multigammaln(v, p), otypes=[float])(x),
            lambda r: [S(r.uniform((2, 3), 2.0, 5.0), 3), S(r.uniform((), 2.0, 5.0), p=1)],
            errors=[E(S(np.ones(2), 0), RuntimeError, "at least 1")],
        ),
        "special.multigammaln",
    ),
    Op(
        "special.zeta",
        sp.zeta,
        lambda r: [S(2.5, r.uniform((3,), 0.5, 4.0)), S(3.0, r.uniform((), 0.5, 4.0))],
    ),
    *also(one("i0", sp.i0, halves=False), "special.i0"),
    one("special.i0e", sp.i0e, 0.2, 40.0, halves=False),
    one("special.i1", sp.i1, 0.2, 4.0, halves=False),
    one("special.i1e", sp.i1e, 0.2, 40.0, halves=False),
    # --- copies ---
    one("clone", lambda x: x, complex_too=True, integers=INTS),
    Op(
        "_to_dtype",
        lambda x, dtype=None: x,
        lambda r: [S(r.normal((3, 4))), S(r.normal(()))],
        dtypes=("float32", "float64"),
    ),
]
