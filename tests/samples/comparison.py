"""Comparison, logic, bits, tests of elements, selection and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, INTS, E, Op, S, also

SPECIAL = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -2.5])


def compare(name: str, f: Callable[..., Any], *, complex_too: bool = False) -> Op:
    def samples(r: Any) -> list[S]:
        x = np.round(r.normal((3, 4)))
        found = [
            S(x, np.round(r.normal((4,)))),
            *([] if name.startswith("logical") else [S(x, 1), S(x, 0.5)]),
            S(np.asarray(np.round(r.normal(()))), x),
            S(r.normal((0, 2)), r.normal((2,))),
            S(SPECIAL[:, None], SPECIAL),
        ]
        return found + ([S(np.round(r.complex((2, 3))), np.ones(3))] if complex_too else [])

    dtypes = FLOATS + (COMPLEX if complex_too else ())
    errors = [
        E(S(np.ones(3), np.ones(4)), RuntimeError, "3.*4"),
        E(S(2, np.ones(3)), TypeError, "must be Tensor"),
    ]
    if name.startswith("logical"):
        errors.append(E(S(np.ones(3), 2), TypeError, "must be Tensor"))
    return Op(name, f, samples, dtypes=dtypes, integers=INTS, grad=False, errors=errors)


def test(
    name: str, f: Callable[..., Any], *, complex_too: bool = False, signless: bool = False
) -> Op:
    def samples(r: Any) -> list[S]:
        found = [S(SPECIAL), S(r.normal(())), S(r.normal((0, 2)))]
        return found + (
            [S(np.array([1 + 1j, np.nan, complex(0, np.inf), 0]))] if complex_too else []
        )

    dtypes = FLOATS + (COMPLEX if complex_too else ())
    return Op(name, f, samples, dtypes=dtypes, grad=False)


def bits(name: str, f: Callable[..., Any], *, shift: bool = False, bools: bool = True) -> Op:
    def samples(r: Any) -> list[S]:
        found = []
        for dtype in ("uint8", "int8", "int16", "int32", "int64"):
            a = r.integers(0 if dtype == "uint8" else -100, 100, (3, 4)).astype(dtype)
            b = r.integers(0, 5 if shift else 100, (4,)).astype(dtype)
            found += [S(a, b), S(a, 2)]
        if bools:
            found += [S(r.bools((3, 4)), r.bools((4,)))]
        return found

    errors = [E(S(np.ones(2), np.ones(2)), RuntimeError, "not implemented")]
    return Op(name, f, samples, dtypes=("float32",), grad=False, errors=errors)


def pair(r: Any) -> list[S]:
    """Two tensors without ties."""
    x = r.distinct((3, 4))
    return [
        S(x, r.distinct((4,)) + 0.05),
        S(np.asarray(0.3), x),
        S(r.normal((0,)), r.normal(())),
    ]


def where(condition: np.ndarray, x: Any, y: Any) -> np.ndarray:
    return np.where(condition, x, y)


def clamp(x: np.ndarray, min: Any = None, max: Any = None) -> np.ndarray:
    if min is not None:
        x = np.maximum(x, min)
    if max is not None:
        x = np.minimum(x, max)
    return x


def nan_to_num(
    x: np.ndarray, nan: Any = None, posinf: Any = None, neginf: Any = None
) -> np.ndarray:
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return np.isclose(a, b, rtol, atol, equal_nan)


NOT_BOOL = RuntimeError, "boolean tensor"

OPS = [
    compare("eq", np.equal, complex_too=True),
    *also(compare("ne", np.not_equal, complex_too=True), "not_equal"),
    *also(compare("lt", np.less), "less"),
    *also(compare("le", np.less_equal), "less_equal"),
    *also(compare("gt", np.greater), "greater"),
    *also(compare("ge", np.greater_equal), "greater_equal"),
    compare("logical_and", np.logical_and, complex_too=True),
    compare("logical_or", np.logical_or, complex_too=True),
    compare("logical_xor", np.logical_xor, complex_too=True),
    test("logical_not", np.logical_not, complex_too=True),
    bits("bitwise_and", np.bitwise_and),
    bits("bitwise_or", np.bitwise_or),
    bits("bitwise_xor", np.bitwise_xor),
    bits("bitwise_left_shift", np.left_shift, shift=True, bools=False),
    bits("bitwise_right_shift", np.right_shift, shift=True, bools=False),
    Op(
        "bitwise_not",
        np.invert,
        lambda r: [S(r.integers(-9, 9, (3, 4))), S(r.bools((3,))), S(np.array([0, 7], np.uint8))],
        dtypes=("float32",),
        grad=False,
        errors=[E(S(np.ones(2)), RuntimeError, "not implemented")],
    ),
    test("isnan", np.isnan, complex_too=True),
    test("isinf", np.isinf, complex_too=True),
    test("isfinite", np.isfinite, complex_too=True),
    test("isposinf", np.isposinf),
    test("isneginf", np.isneginf),
    test("signbit", np.signbit),
    test("isreal", np.isreal, complex_too=True),
    Op(
        "isclose",
        isclose,
        lambda r: [
            S(np.array([1.0, 2.0, np.nan, np.inf]), np.array([1.0, 2.1, np.nan, np.inf])),
            S(np.array([1.0, np.nan]), np.array([1.2, np.nan]), rtol=0.5, equal_nan=True),
            S(np.array([1.0, 2.0]), np.array([1.3, 3.0]), atol=0.5),
        ],
        grad=False,
        errors=[
            E(S(np.ones(2), np.ones(2, np.int64)), RuntimeError, "one dtype"),
            E(S(np.ones(2), np.ones(2), -1.0), RuntimeError, "negative"),
        ],
    ),
    # --- selection ---
    Op(
        "where",
        where,
        lambda r: [
            S(r.bools((3, 4)), r.normal((3, 4)), r.normal((4,))),
            S(r.bools((3, 1)), r.normal((4,)), 0.5),
            S(r.bools(()), r.normal(()), r.normal((2,))),
            S(r.bools((0, 2)), r.normal((2,)), 1),
            S(r.bools((3,)), r.complex((3,)), r.complex((3,))),
        ],
        dtypes=FLOATS + COMPLEX,
        integers=INTS,
        errors=[
            E(S(np.ones(2), np.ones(2), np.ones(2)), *NOT_BOOL),
            E(S(np.ones(2, bool), np.ones(2), np.ones(3)), RuntimeError, "2.*3"),
        ],
    ),
    Op(
        "_where",
        where,
        lambda r: [S(r.bools((3, 4)), r.normal((3, 4)), r.normal((4,)))],
        errors=[
            E(S(np.ones(2, bool), np.ones(2), np.ones(2, np.int64)), RuntimeError, "one dtype")
        ],
    ),
    Op(
        "_masked_fill",
        lambda x, mask, value: np.where(mask, value, x),
        lambda r: [
            S(r.normal((3, 4)), r.bools((4,)), r.normal(())),
            S(r.normal((3, 4)), r.bools((3, 4)), r.normal(())),
            S(r.normal((0, 4)), r.bools((4,)), r.normal(())),
        ],
        dtypes=FLOATS + COMPLEX,
        errors=[
            E(S(np.ones(2), np.ones((3, 2), bool), np.ones(())), RuntimeError, "broadcast"),
            E(S(np.ones(2), np.ones(2, bool), np.ones(2)), RuntimeError, "one number"),
        ],
    ),
    Op(
        "masked_fill",
        lambda x, mask, value: np.where(mask, np.asarray(value), x).astype(x.dtype),
        lambda r: [
            S(r.normal((3, 4)), r.bools((4,)), 2.5),
            S(r.normal((3, 4)), r.bools((3, 4)), r.normal(())),
            S(r.normal((4,)), r.bools((3, 4)), -1),
            S(r.complex((3,)), r.bools((3,)), 1j),
        ],
        dtypes=FLOATS + COMPLEX,
        integers=INTS,
        errors=[
            E(S(np.ones(2), np.ones(2), 1.0), *NOT_BOOL),
            E(S(np.ones(2), np.ones(2, bool), np.ones(2)), RuntimeError, "0-dimensional"),
            E(S(np.ones(2), np.ones(2, bool), 1j), RuntimeError, "complex"),
        ],
    ),
    Op("maximum", np.maximum, pair, dtypes=FLOATS, integers=INTS),
    Op("minimum", np.minimum, pair, dtypes=FLOATS, integers=INTS),
    Op("fmax", np.fmax, pair, dtypes=FLOATS, integers=INTS),
    Op("fmin", np.fmin, pair, dtypes=FLOATS, integers=INTS),
    *also(
        Op(
            "clamp",
            clamp,
            lambda r: [
                S(r.distinct((3, 4)), -0.25, 0.35),
                S(r.distinct((3, 4)), min=0),
                S(r.distinct(()), max=0.25),
                S(r.distinct((4,)), 1, -1),
                S(r.distinct((3, 4)), r.distinct((4,)) - 0.45, r.distinct((3, 1)) + 0.57),
                S(r.distinct((3, 4)), max=r.distinct((4,)) + 0.05),
                S(r.distinct((0, 2)), 0, 1),
            ],
            dtypes=FLOATS,
            errors=[
                E(S(np.ones(2)), RuntimeError, "at least one"),
                E(S(np.ones(2) * 1j, 0), RuntimeError, "complex"),
            ],
        ),
        "clip",
    ),
    Op("_clamp", clamp, lambda r: [S(r.distinct((3, 4)), -0.25, 0.35)]),
    Op(
        "_clamp_backward",
        lambda g, x, low, high: np.where((x >= low) & (x <= high), g, 0),
        lambda r: [S(r.normal((3, 4)), r.distinct((3, 4)), -0.25, 0.35)],
    ),
    Op(
        "_clamp_between",
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        lambda r: [
            S(r.distinct((3, 4)), r.distinct((3, 4)) - 0.613, r.distinct((3, 4)) + 0.629),
            S(r.distinct((3, 4)), r.distinct((4,)) + 0.013, r.distinct((3, 1)) + 0.029),
        ],
        integers=INTS,
    ),
    Op("clamp_min", np.maximum, pair, dtypes=FLOATS, integers=INTS),
    Op("clamp_max", np.minimum, pair, dtypes=FLOATS, integers=INTS),
    Op(
        "nan_to_num",
        nan_to_num,
        lambda r: [
            S(r.normal((3, 4))),
            S(SPECIAL, 7.0, 8.0, 9.0),
            S(SPECIAL, posinf=1.0, neginf=2.0),
            S(r.normal(())),
        ],
    ),
    Op(
        "_nan_to_num",
        nan_to_num,
        lambda r: [S(r.normal((3,)), 1.0, 2.0, 3.0), S(SPECIAL, 7.0, 8.0, 9.0)],
    ),
]
