"""Samples of sorting and what sorting answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import FLOATS, INTS, E, Op, Rng, S


def order(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Stable, NaN greatest."""
    if x.ndim == 0:
        return np.asarray(0)
    nan = x != x
    ranks = np.unique(np.where(nan, 0, x), return_inverse=True)[1].reshape(x.shape)
    ranks = np.where(nan, x.size, ranks)
    return np.argsort(-ranks if descending else ranks, axis=dim, kind="stable")


def sort(x: np.ndarray, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    at = order(x, dim, descending)
    return (np.take_along_axis(x, at, dim) if x.ndim else x), at


def topk(x: np.ndarray, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, at = sort(x, dim, largest)
    if x.ndim == 0:
        return values, at
    values, at = values.take(range(k), axis=dim), at.take(range(k), axis=dim)
    return values, at


def pick(x: np.ndarray, dim: int, keepdim: bool, which: Any) -> Any:
    if x.ndim == 0:
        return x, np.asarray(0)
    lines = np.moveaxis(x, dim, -1)
    at = np.zeros(lines.shape[:-1], dtype=np.int64)
    for place in np.ndindex(at.shape):
        at[place] = which(lines[place])
    at = np.expand_dims(at, dim)
    values = np.take_along_axis(x, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


def kthvalue(x: np.ndarray, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return pick(x, dim, keepdim, lambda line: order(line, 0, False)[k - 1])


def middle(line: np.ndarray) -> int:
    if (line != line).any():
        return int(np.argmax(line != line))
    return int(order(line, 0, False)[(len(line) - 1) // 2])


def nan_middle(line: np.ndarray) -> int:
    count = int((line == line).sum())
    return int(order(line, 0, False)[(count - 1) // 2]) if count else 0


def median_of(which: Any) -> Any:
    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            flat = x.reshape(-1)
            return np.asarray(flat[which(flat)] if flat.size else np.nan)
        return pick(x, dim, keepdim, which)

    return reference


def most_frequent(line: np.ndarray) -> int:
    values, counts = np.unique(line, return_counts=True)
    return int(np.flatnonzero(line == values[counts.argmax()])[-1])


def sorts(r: Rng) -> list[S]:
    nan = r.distinct((2, 5))
    nan[0, 1] = nan[1, 0] = nan[1, 4] = np.nan
    zeros = np.array([0, 1, 0, 1, 0])
    return [
        S(r.distinct((3, 4))),
        S(r.distinct((3, 4)), 0),
        S(r.distinct((3, 4)), dim=1, descending=True),
        S(r.distinct((2, 3, 4)), 1, stable=True),
        S(np.array(1.0)),
        S(np.array(1.0), 0),
        S(np.zeros((0, 2)), 0),
        S(np.zeros((0, 2))),
        S(nan),
        S(nan, descending=True),
        S(zeros),
        S(zeros, descending=True),
        S(r.integers(0, 50, (2, 400))),
        S(r.bools(300)),
        S(r.distinct((300,))),
        S(r.distinct((300, 2)), 0, True),
        S(np.array([0.0, -0.0, -1.0, np.inf, -np.inf])),
    ]


def topks(r: Rng) -> list[S]:
    nan = r.distinct((2, 5))
    nan[1, 3] = np.nan
    return [
        S(r.distinct((3, 5)), 2),
        S(r.distinct((3, 5)), 3, 0),
        S(r.distinct((3, 5)), k=1, dim=1, largest=False),
        S(r.distinct((3, 5)), 5),
        S(nan, 2),
        S(nan, 2, largest=False),
        S(np.array(2.0), 1),
        S(r.distinct((3, 5)), 0),
        S(r.distinct((2, 400)), 10),
        S(r.distinct((2, 400)), 300, sorted=True),
        S(np.array([1, 1, 2, 2, 0]), 3),
    ]


def kths(r: Rng) -> list[S]:
    return [
        S(r.distinct((3, 5)), 2),
        S(r.distinct((3, 5)), 3, 0),
        S(r.distinct((3, 5)), k=5, dim=1, keepdim=True),
        S(np.array(2.0), 1),
        S(r.distinct((2, 3, 4)), 2, 1),
        S(np.array([np.nan, 2.0, 1.0]), 3),
    ]


def medians(r: Rng) -> list[S]:
    nan = r.distinct((3, 4))
    nan[0, 1] = nan[2, 0] = nan[2, 2] = np.nan
    return [
        S(r.distinct((3, 4))),
        S(r.distinct((3, 5)), 0),
        S(r.distinct((3, 4)), dim=-1, keepdim=True),
        S(np.array(2.0)),
        S(np.array(2.0), 0),
        S(nan),
        S(nan, 1),
        S(nan, 0),
        S(np.full(3, np.nan), 0),
        S(np.zeros(0)),
        S(r.integers(0, 9, 8)),
    ]


def modes(r: Rng) -> list[S]:
    return [
        S(r.integers(0, 3, (4, 6))),
        S(r.integers(0, 3, (4, 6)), 0, True),
        S(r.integers(0, 3, (4, 6)) * 0.5, dim=1),
        S(np.array(1.0)),
        S(r.integers(0, 9, 500)),
    ]


def unique(
    x: np.ndarray,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
) -> Any:
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    none = np.zeros(0, dtype=np.int64)
    inverse = inverse.reshape(x.shape if axis is None else -1)
    return values, (inverse if return_inverse else none), (counts if return_counts else none)


def consecutive(
    x: np.ndarray, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    at = np.flatnonzero(new)
    none = np.zeros(0, dtype=np.int64)
    inverse = np.cumsum(new) - 1
    values = x.reshape(-1)[at] if dim is None else x.take(at, axis=dim)
    counts = np.diff([*at, len(rows)])
    return (
        values,
        (inverse.reshape(x.shape if dim is None else -1) if return_inverse else none),
        (counts if return_counts else none),
    )


BAD = [
    E(S(np.zeros((2, 3)), 2), IndexError, "[Dd]imension"),
    E(S(np.zeros(2) * 1j), RuntimeError, "complex"),
]
EMPTY = E(S(np.zeros((2, 0)), 1), IndexError, "non-zero size")

OPS = [
    Op("sort", sort, sorts, dtypes=FLOATS, integers=INTS, errors=BAD),
    Op(
        "argsort",
        lambda *a, **k: sort(*a, **k)[1],
        sorts,
        dtypes=FLOATS,
        integers=INTS,
        grad=False,
        errors=BAD,
    ),
    Op(
        "msort",
        lambda x: sort(x, 0)[0],
        lambda r: [S(r.distinct((4, 3))), S(r.distinct((5,))), S(np.array(1.0))],
        dtypes=FLOATS,
        integers=INTS,
        errors=BAD[1:],
    ),
    Op(
        "topk",
        topk,
        topks,
        dtypes=FLOATS,
        integers=("int8", "int64"),
        errors=[
            E(S(np.zeros(2), 3), RuntimeError, "k out of range"),
            E(S(np.zeros(2), -1), RuntimeError, "k out of range"),
            E(S(np.zeros(2), 1, 1), IndexError, "[Dd]imension"),
        ],
    ),
    Op(
        "kthvalue",
        kthvalue,
        kths,
        dtypes=FLOATS,
        integers=("uint8", "int32"),
        errors=[
            E(S(np.zeros(2), 3), RuntimeError, "k out of range"),
            E(S(np.zeros(2), 0), RuntimeError, "k out of range"),
            E(S(np.zeros((2, 0)), 1, 1), IndexError, "non-zero size"),
        ],
    ),
    Op("median", median_of(middle), medians, dtypes=FLOATS, errors=[BAD[0], EMPTY]),
    Op("nanmedian", median_of(nan_middle), medians, dtypes=FLOATS, errors=[BAD[0], EMPTY]),
    Op(
        "mode",
        lambda x, dim=-1, keepdim=False: pick(x, dim, keepdim, most_frequent),
        modes,
        dtypes=FLOATS,
        integers=INTS,
        grad=False,
        errors=[BAD[0], EMPTY],
    ),
    Op(
        "_unique",
        unique,
        lambda r: [
            S(r.integers(0, 5, (4, 5))),
            S(r.integers(0, 5, (4, 5)) * 0.5, True, True, True),
            S(r.bools(9), return_counts=True),
            S(np.zeros(0)),
            S(np.array(3.0)),
            S(r.integers(0, 100, 1000), return_inverse=True),
        ],
        dtypes=FLOATS,
        grad=False,
        why="data",
        errors=[E(S(np.zeros(2) * 1j), RuntimeError, "complex")],
    ),
    Op(
        "_unique_dim",
        lambda x, dim, *a, **k: unique(x, *a, **k, axis=dim),
        lambda r: [
            S(r.integers(0, 2, (6, 2)), 0),
            S(r.integers(0, 2, (2, 6)) * 0.5, 1, True, True, True),
            S(r.integers(0, 2, (2, 5, 2)), 1, return_inverse=True),
        ],
        grad=False,
        why="data",
        errors=[
            E(S(np.zeros((2, 2)), 2), IndexError, "[Dd]imension"),
            E(S(np.zeros((2, 0)), 0), RuntimeError, "no elements"),
        ],
    ),
    Op(
        "_unique_consecutive",
        consecutive,
        lambda r: [
            S(r.integers(0, 2, (3, 4)), True, True),
            S(r.integers(0, 2, 9) * 0.5),
            S(r.integers(0, 2, (6, 2)), return_counts=True, dim=0),
            S(r.integers(0, 2, (2, 6)), True, dim=1),
        ],
        grad=False,
        why="data",
        errors=[E(S(np.zeros((2, 2)), dim=2), IndexError, "[Dd]imension")],
    ),
    Op(
        "_bincount",
        np.bincount,
        lambda r: [
            S(r.integers(0, 9, 20), None, 0),
            S(r.integers(0, 9, 20), r.uniform(20), 12),
            S(np.zeros(0, dtype=np.int64), None, 3),
        ],
        grad=False,
        why="data",
        errors=[
            E(S(np.array([1, -1]), None, 0), RuntimeError, "at least 0"),
            E(S(np.array([1]), None, -1), RuntimeError, "minlength"),
        ],
    ),
    Op(
        "bincount",
        lambda x, w=None, minlength=0, weights=None: np.bincount(
            x, w if w is not None else weights, minlength
        ),
        lambda r: [
            S(r.integers(0, 9, 20)),
            S(r.integers(0, 9, 20), r.uniform(20)),
            S(r.integers(0, 5, 4).astype(np.uint8), minlength=9),
            S(np.zeros(0, dtype=np.int64)),
            S(r.integers(0, 5, 7), weights=r.integers(0, 5, 7)),
        ],
        grad=False,
        why="data",
        errors=[
            E(S(np.array([1, -1])), RuntimeError, "at least 0"),
            E(S(np.zeros((2, 2), dtype=np.int64)), RuntimeError, "vector"),
            E(S(np.zeros(2)), NotImplementedError, "integers"),
            E(S(np.array([1]), minlength=-1), RuntimeError, "minlength"),
            E(S(np.array([1, 2]), np.zeros(3)), RuntimeError, "weights"),
        ],
    ),
]
