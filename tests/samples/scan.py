"""Samples of running sums, products and extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import COMPLEX, FLOATS, INTS, E, Op, Rng, S


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: np.ndarray, dim: int, *, dtype: Any = None) -> Any:
        if x.dtype.kind in "bui":
            x = x.astype(np.int64)
        return f(x, dim) if x.ndim else x

    return reference


def samples(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4)), 0),
        S(r.normal((3, 4)), 1),
        S(r.normal((2, 3, 4)), dim=-2),
        S(r.normal(()), 0),
        S(r.normal(()), -1),
        S(np.zeros((0, 2)), 0),
        S(np.zeros((2, 0)), 1),
        S(r.normal((1, 3)), 0),
        S(r.complex((2, 3)), 1),
        S(r.bools((5,)), 0),
        S(r.normal((3, 70)), 0),
    ]


def products(r: Rng) -> list[S]:
    x = r.normal((3, 4))
    x[0, 1] = x[2, 1] = x[1, 3] = 0
    return [*samples(r)[:-1], S(x, 0), S(x, 1), S(np.array([0.0, 2.0, 0.0, 3.0]), 0)]


def extremum(f: Any, later: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def reference(x: np.ndarray, dim: int) -> Any:
        if x.ndim == 0:
            return x, np.asarray(0)
        lines = np.moveaxis(x, dim, -1)
        values, indices = np.empty_like(lines), np.zeros(lines.shape, dtype=np.int64)
        for place in np.ndindex(lines.shape[:-1]):
            best = 0
            for i, v in enumerate(lines[place]):
                top = lines[place][best]
                if i == 0 or v != v or (top == top and later(v, top)):
                    best = i
                values[(*place, i)], indices[(*place, i)] = lines[place][best], best
        return np.moveaxis(values, -1, dim), np.moveaxis(indices, -1, dim)

    return reference


def extrema(r: Rng) -> list[S]:
    nan = r.distinct((2, 4))
    nan[0, 2] = np.nan
    return [
        S(r.distinct((3, 4)), 0),
        S(r.distinct((3, 4)), dim=-1),
        S(r.distinct((2, 3, 4)), 1),
        S(np.array(1.0), 0),
        S(nan, 1),
        S(np.array([1, 3, 3, 2, 3]), 0),
        S(np.zeros((0, 2)), 0),
    ]


BAD = [
    E(S(np.zeros((2, 3)), 2), IndexError, "[Dd]imension"),
    E(S(np.zeros((2, 3))), TypeError, "dim"),
]


OPS = [
    Op(
        "cumsum",
        along(lambda x, d: np.cumsum(x, axis=d)),
        samples,
        dtypes=FLOATS + COMPLEX,
        integers=INTS,
        errors=BAD,
    ),
    Op(
        "_reverse_cumsum",
        lambda x, dim: np.flip(np.cumsum(np.flip(x, dim), axis=dim), dim) if x.ndim else x,
        lambda r: samples(r)[:3],
        dtypes=FLOATS,
    ),
    Op(
        "cumprod",
        along(lambda x, d: np.cumprod(x, axis=d)),
        products,
        dtypes=("float32", "float64", *COMPLEX),
        errors=BAD,
    ),
    Op(
        "cummax",
        extremum(max, lambda v, top: v >= top),
        extrema,
        dtypes=FLOATS,
        integers=INTS,
        errors=[*BAD, E(S(np.zeros(2) * 1j, 0), NotImplementedError, "complex")],
    ),
    Op(
        "cummin",
        extremum(min, lambda v, top: v <= top),
        extrema,
        dtypes=FLOATS,
        integers=INTS,
        errors=BAD,
    ),
    Op(
        "logcumsumexp",
        lambda x, d: np.logaddexp.accumulate(x, axis=d) if x.ndim else x,
        lambda r: [
            S(r.normal((3, 4)), 0),
            S(r.normal((3, 4)), 1),
            S(r.normal((2, 3)) + 1000, -1),
            S(np.array(1.0), 0),
            S(np.array([-np.inf, 0.0, -np.inf]), 0),
        ],
        dtypes=FLOATS,
        errors=[*BAD, E(S(np.arange(2), 0), NotImplementedError, "floating point")],
    ),
]
