"""Arithmetic and other functions of two or three numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from samples import COMPLEX, FLOATS, FLOATS_32_64, INTS, E, Op, S, also

SHAPES = [
    E(S(np.ones(3), np.ones(4)), RuntimeError, "3.*4"),
    E(S(np.ones(3), "a"), TypeError, "must be"),
]


# Functions of two tensors that take a Python number for the second one.
TAKES_NUMBERS = (
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod copysign "
    "xlogy special.xlogy special.xlog1py special.zeta"
).split()
A_NUMBER = E(S(np.ones(3), 2), TypeError, "must be Tensor")


def two(
    name: str,
    reference: Callable[..., Any],
    first: tuple[float, float] = (-2.0, 2.0),
    second: tuple[float, float] = (-2.0, 2.0),
    *,
    halves: bool = True,
    complex_too: bool = False,
    **more: Any,
) -> Op:
    """An op of two operands, the first from one range and the second from another."""

    def samples(r: Any) -> list[S]:
        a = r.uniform((3, 4), *first)
        found = [
            S(a, r.uniform((4,), *second)),
            S(r.uniform((2, 1), *first), r.uniform((2, 3), *second)),
            S(r.uniform((), *first), r.uniform((), *second)),
            S(r.uniform((0, 3), *first), r.uniform((3,), *second)),
        ]
        if name in TAKES_NUMBERS:
            found += [S(a, 2), S(a, 1.5)]
        if complex_too:
            found += [S(r.complex((3, 2)), r.complex((2,))), S(r.complex((2,)), 1.5 + 1j)]
        return found

    dtypes = (FLOATS if halves else FLOATS_32_64) + (COMPLEX if complex_too else ())
    more.setdefault("errors", SHAPES if name in TAKES_NUMBERS else [*SHAPES, A_NUMBER])
    return Op(name, reference, samples, dtypes=dtypes, **more)


def with_alpha(sign: int, swapped: bool = False) -> Callable[..., Any]:
    def reference(x: Any, y: Any, alpha: Any = 1) -> Any:
        if swapped:
            x, y = y, x
        return x + sign * alpha * y

    return reference


def alpha_samples(r: Any) -> list[S]:
    a, b = r.normal((3, 4)), r.normal((4,))
    return [
        S(a, b),
        S(a, b, alpha=2),
        S(a, b, alpha=-1.5),
        S(a, 2),
        S(a, 0.5, alpha=3),
        S(r.normal(()), r.normal((2, 1))),
        S(r.normal((0, 3)), r.normal((3,))),
        S(r.complex((3,)), r.complex((2, 3)), alpha=2),
    ]


def div(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    return {None: lambda q: q, "trunc": np.trunc, "floor": np.floor}[rounding_mode](x / y)


def heaviside(x: Any, v: Any) -> Any:
    return np.heaviside(x, v)


def lerp(a: Any, b: Any, w: Any) -> Any:
    return a + w * (b - a)


def three(r: Any) -> list[S]:
    a = r.normal((3, 4))
    return [
        S(a, r.normal((4,)), r.uniform((3, 1), 0.5, 2.0)),
        S(a, r.normal((3, 4)), r.uniform((3, 4), 0.5, 2.0), value=-2),
        S(r.normal(()), r.normal(()), r.uniform((), 0.5, 2.0), value=0.5),
        S(r.complex((3,)), r.complex((3,)), r.complex((3,)), value=2),
    ]


def powers(r: Any) -> list[S]:
    base = r.uniform((3, 4), 0.2, 2.0)
    constants = [S(r.normal((3,)), e) for e in (2, 3, 1, 0, -1, -2)]
    return [
        *constants,
        S(base, 0.5),
        S(base, 2.5),
        S(base, r.normal((4,))),
        S(2, r.normal((3,))),
        S(1.7, r.normal(())),
        S(r.uniform((0, 2), 0.2, 2.0), r.normal((2,))),
        S(r.complex((3,)), r.complex((3,))),
        S(r.complex((3,)), 2),
    ]


def rest_pairs(f: Callable[..., Any]) -> dict[str, Any]:
    """Divisions with a rest, away from the jumps."""

    def samples(r: Any) -> list[S]:
        b = r.uniform((3, 4), 0.7, 2.0) * np.where(r.bools((3, 4)), 1, -1)
        a = b * (r.integers(-3, 4, (3, 4)) + r.uniform((3, 4), 0.2, 0.8))
        return [S(a, b), S(a + 0.013, 1.7), S(r.normal((0,)), 2.5)]

    return {"reference": f, "samples": samples, "dtypes": FLOATS_32_64}


ZERO = E(S(np.array([1, 2]), 0), RuntimeError, "ZeroDivisionError")

OPS = [
    Op(
        "add",
        with_alpha(1),
        alpha_samples,
        dtypes=FLOATS + COMPLEX,
        errors=[*SHAPES, E(S(np.array([1]), 2, alpha=0.5), RuntimeError, "alpha must not be")],
    ),
    *also(
        Op(
            "sub",
            with_alpha(-1),
            alpha_samples,
            dtypes=FLOATS + COMPLEX,
            errors=[
                *SHAPES,
                E(S(np.array([True]), np.array([True])), RuntimeError, "subtraction of bools"),
            ],
        ),
        "subtract",
    ),
    Op("rsub", with_alpha(-1, swapped=True), alpha_samples, dtypes=FLOATS + COMPLEX, inplace=False),
    *also(two("mul", np.multiply, complex_too=True), "multiply"),
    two("div", div, second=(0.5, 2.0), complex_too=True),
    *also(two("true_divide", np.true_divide, second=(0.5, 2.0), complex_too=True)),
    two("divide", np.true_divide, second=(0.5, 2.0), complex_too=True),
    Op("_div_trunc", **rest_pairs(lambda a, b: np.trunc(a / b))),
    Op("_div_floor", **rest_pairs(lambda a, b: np.floor(a / b))),
    Op("floor_divide", **rest_pairs(np.floor_divide), errors=[ZERO]),
    Op("fmod", **rest_pairs(np.fmod), errors=[ZERO]),
    Op("remainder", **rest_pairs(np.remainder), errors=[ZERO]),
    Op(
        "pow",
        lambda x, e: np.power(np.asarray(x, np.result_type(x, np.float64)), e),
        powers,
        dtypes=FLOATS_32_64 + COMPLEX,
        inplace=False,
        errors=[
            *SHAPES,
            E(S(np.array([1, 2]), -1), RuntimeError, "negative integer powers"),
            E(S(np.array([1, 2], np.uint8), -1), RuntimeError, "negative integer powers"),
            E(S(np.array([1, 2], np.uint8), 300), RuntimeError, "300 does not fit into uint8"),
            E(S(np.array([1, 2], np.int8), 200), RuntimeError, "200 does not fit into int8"),
        ],
    ),
    Op(
        "float_power",
        lambda x, e: np.float_power(x, e),
        lambda r: [
            S(r.uniform((3, 4), 0.2, 2.0), r.normal((4,))),
            S(r.uniform((3,), 0.2, 2.0), 2),
            S(2, r.normal((3,))),
        ],
        dtypes=("float64",),
        integers=("int32", "uint8"),
        inplace=False,
    ),
    Op(
        "lerp",
        lerp,
        lambda r: [
            S(r.normal((3, 4)), r.normal((4,)), r.uniform((3, 1), -1.0, 2.0)),
            S(r.normal((3, 4)), r.normal((3, 4)), 0.3),
            S(r.normal(()), r.normal(()), 0.8),
            S(r.complex((3,)), r.complex((3,)), 0.25),
        ],
        dtypes=FLOATS + COMPLEX,
    ),
    Op("addcmul", lambda x, a, b, value=1: x + value * a * b, three, dtypes=FLOATS + COMPLEX),
    Op("addcdiv", lambda x, a, b, value=1: x + value * a / b, three, dtypes=FLOATS_32_64 + COMPLEX),
    # --- other functions of two numbers ---
    *also(
        two("atan2", lambda a, b: np.arctan2(a * 1.0, b * 1.0), (0.2, 2.0), integers=INTS),
        "arctan2",
    ),
    two("hypot", np.hypot, (0.2, 2.0)),
    two("copysign", np.copysign, (0.2, 2.0), (0.2, 2.0)),
    two("nextafter", np.nextafter, halves=False, grad=False, rtol=1.0),
    Op(
        "heaviside",
        heaviside,
        lambda r: [
            S(np.array([-1.5, 0.0, 2.0, -0.0]), np.array([0.5])),
            S(r.normal((3, 4)), r.normal((4,))),
        ],
        dtypes=FLOATS,
        grad=False,
        errors=[E(S(np.ones(2), np.ones(2, np.int64)), RuntimeError, "same dtype")],
    ),
    two("ldexp", lambda x, e: x * 2.0**e),
    *also(two("xlogy", sp.xlogy, second=(0.3, 2.0)), "special.xlogy"),
    two("special.xlog1py", sp.xlog1py, second=(0.3, 2.0)),
    two("logaddexp", np.logaddexp),
    two("logaddexp2", np.logaddexp2),
    Op(
        "gcd",
        np.gcd,
        lambda r: [
            S(r.integers(-40, 40, (3, 4)), r.integers(-40, 40, (4,))),
            S(np.array([0, 12], np.uint8), np.array([6], np.uint8)),
        ],
        dtypes=("float32",),
        grad=False,
        errors=[E(S(np.ones(2), np.ones(2)), RuntimeError, "not implemented")],
    ),
    Op(
        "lcm",
        np.lcm,
        lambda r: [
            S(r.integers(-40, 40, (3, 4)), r.integers(-40, 40, (4,))),
            S(np.array([0, 4], np.uint8), np.array([6], np.uint8)),
        ],
        dtypes=("float32",),
        grad=False,
        errors=[E(S(np.ones(2), np.ones(2)), RuntimeError, "not implemented")],
    ),
]
