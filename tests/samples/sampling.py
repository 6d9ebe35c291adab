"""Samples of weighted sums at given places. N, C, S, K, P: see csrc/ops/resample/sampling.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples import E, Op, Rng, S

WIDE = ("float32", "float64")


def gather(x: Any, index: Any, weight: Any) -> Any:
    out = np.zeros((*x.shape[:2], index.shape[2]), dtype=x.dtype)
    for n, k, p in np.ndindex(*index.shape):
        if 0 <= index[n, k, p] < x.shape[2]:
            out[n, :, p] += weight[n, k, p] * x[n, :, index[n, k, p]]
    return out


def scatter(x: Any, index: Any, weight: Any, size: int) -> Any:
    out = np.zeros((*x.shape[:2], size), dtype=x.dtype)
    for n, k, p in np.ndindex(*index.shape):
        if 0 <= index[n, k, p] < size:
            out[n, :, index[n, k, p]] += weight[n, k, p] * x[n, :, p]
    return out


def dots(x: Any, index: Any, other: Any) -> Any:
    out = np.zeros(index.shape, dtype=x.dtype)
    for n, k, p in np.ndindex(*index.shape):
        if 0 <= index[n, k, p] < x.shape[2]:
            out[n, k, p] = (x[n, :, index[n, k, p]] * other[n, :, p]).sum()
    return out


SIZES = [(2, 3, 5, 4, 6), (1, 2, 7, 19, 3), (2, 1, 3, 1, 300), (1, 2, 3, 0, 2), (1, 0, 3, 2, 2)]


def places(r: Rng, n: int, k: int, p: int, s: int) -> Any:
    return np.asarray(r.normal((n, k, p)) * s, dtype=np.int64)  # some out of range


def of_elements(r: Rng) -> list[Any]:
    return [
        S(r.normal((n, c, s)), places(r, n, k, p, s), r.normal((n, k, p)))
        for n, c, s, k, p in SIZES
    ]


def of_points(r: Rng) -> list[Any]:
    return [
        S(r.normal((n, c, p)), places(r, n, k, p, s), r.normal((n, k, p)), s)
        for n, c, s, k, p in SIZES
    ]


def of_both(r: Rng) -> list[Any]:
    return [
        S(r.normal((n, c, s)), places(r, n, k, p, s), r.normal((n, c, p)))
        for n, c, s, k, p in SIZES
    ]


X, AT, W = np.zeros((1, 2, 3)), np.zeros((1, 4, 5), dtype=np.int64), np.zeros((1, 4, 5))


def line(x: Any, index: Any, weight: Any, size: int, dim: int) -> Any:
    taken = np.take(x, index, axis=dim)  # (..., points, terms, ...)
    at = x.ndim + dim
    shape = (*index.shape, *[1] * (x.ndim - at - 1))
    return (taken * weight.reshape(shape)).sum(at + 1)


def line_transposed(x: Any, index: Any, weight: Any, size: int, dim: int) -> Any:
    out = np.zeros((*x.shape[:dim], size, *x.shape[x.ndim + dim + 1 :]), x.dtype)
    front, rows = np.moveaxis(out, dim, 0), np.moveaxis(x, dim, 0)
    for p, places in enumerate(index):
        for k, place in enumerate(places):
            front[place] += weight[p, k] * rows[p]
    return out


def lines(transposed: bool) -> Any:
    def samples(r: Rng) -> list[S]:
        found = []
        for lead, rest, size, points, terms in (
            ((2, 3), (), 5, 7, 2),
            ((2,), (3, 2), 4, 9, 4),
            ((), (2100,), 3, 2, 3),
            ((2,), (3,), 6, 2, 1),
            ((3,), (), 4, 5, 0),
            ((0,), (2,), 3, 4, 2),
        ):
            shape = (*lead, points if transposed else size, *rest)
            index = r.integers(0, size, (points, terms))
            into = size if transposed else points
            found.append(S(r.normal(shape), index, r.normal(index.shape), into, -1 - len(rest)))
        return found

    return samples


WEIGHTS = "weights follow from sizes: derivatives are tested through nn.functional.interpolate"
LINE = np.ones((2, 3)), np.zeros((4, 2), np.int64), np.ones((4, 2))
OPS = [
    Op(
        "_gather_weighted",
        gather,
        of_elements,
        dtypes=WIDE,
        rtol=8,
        errors=[
            E(S(X[0], AT, W), RuntimeError, "3 dimensions"),
            E(S(X, W, W), RuntimeError, "int64"),
            E(S(X, AT, W[:, :3]), RuntimeError, "weight does not fit"),
        ],
    ),
    Op(
        "_scatter_weighted",
        scatter,
        of_points,
        dtypes=WIDE,
        rtol=8,
        errors=[
            E(S(X, AT, W, 3), RuntimeError, "input does not fit"),
            E(S(np.zeros((1, 2, 5)), AT, W, -1), RuntimeError, "negative"),
        ],
    ),
    Op(
        "_gather_dots",
        dots,
        of_both,
        dtypes=WIDE,
        rtol=8,
        errors=[E(S(X, AT, X), RuntimeError, "other does not fit")],
    ),
    Op(
        "_resample",
        line,
        lines(False),
        dtypes=WIDE,
        grad=False,
        rtol=4,
        why=WEIGHTS,
        errors=[
            E(S(*LINE, 4, 0), RuntimeError, "count from the end"),
            E(S(*LINE, 5, -1), RuntimeError, "points, terms"),
            E(S(LINE[0], LINE[1] + 3, LINE[2], 4, -1), IndexError, "out of bounds"),
        ],
    ),
    Op(
        "_resample_backward",
        line_transposed,
        lines(True),
        dtypes=WIDE,
        grad=False,
        rtol=4,
        why=WEIGHTS,
        errors=[E(S(*LINE, 5, -1), RuntimeError, "points, terms")],
    ),
]
