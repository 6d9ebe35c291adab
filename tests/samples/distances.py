"""Samples of the native forms of cdist and pdist."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import E, Op, Rng, S

NORMS = (0.0, 0.5, 1.0, 2.0, 2.7, 3.0, np.inf)


def norm(d: Any, p: float) -> Any:
    size = np.abs(d)
    if p == 0:
        return (size > 0).sum(-1).astype(d.dtype)
    if np.isinf(p):
        return size.max(-1, initial=0)
    return (size**p).sum(-1) ** (1 / p)


def cdist(x: Any, y: Any, p: float) -> Any:
    return norm(x[:, :, None] - y[:, None], p)


def pdist(x: Any, p: float) -> Any:
    i, j = np.triu_indices(len(x), 1)
    return norm(x[i] - x[j], p)


def pairs(r: Rng) -> list[S]:
    sizes = [(2, 3, 4, 5), (1, 7, 1, 40), (1, 5, 300, 3), (2, 0, 3, 4), (0, 2, 3, 4), (1, 2, 2, 0)]
    return [
        S(r.normal((b, n, m)), r.normal((b, k, m)), p) for b, n, k, m in sizes for p in NORMS
    ] + [S(r.normal((1, 3, 257)), r.normal((1, 2, 257)), p) for p in NORMS]


def singles(r: Rng) -> list[S]:
    return [
        S(r.normal(shape), p)
        for shape in ((6, 5), (7, 33), (1, 3), (0, 3), (2, 0), (5, 260))
        for p in NORMS
    ]


def with_results(samples: list[S], of: Any, r: Rng) -> list[S]:
    return [
        S(r.normal(of(*s.args).shape), of(*s.args), *s.args) for s in samples if s.args[-1] >= 1
    ]


X = np.ones((1, 2, 3))
TESTED = "its values are tested through the derivatives of cdist and pdist"
OPS = [
    Op(
        "_cdist",
        cdist,
        pairs,
        grad=False,
        rtol=4.0,
        errors=[
            E(S(X, X[0], 2.0), RuntimeError, "3 dimensions"),
            E(S(X, np.ones((1, 2, 4)), 2.0), RuntimeError, "must be alike"),
            E(S(X, X, -1.0), RuntimeError, "p must be at least 0"),
        ],
    ),
    Op("_pdist", pdist, singles, grad=False, rtol=4.0),
    Op(
        "_cdist_backward",
        None,
        lambda r: with_results(pairs(r)[:7], cdist, r),
        grad=False,
        why=TESTED,
        errors=[E(S(X, X, X, X, 2.0), RuntimeError, "those of the result")],
    ),
    Op(
        "_pdist_backward",
        None,
        lambda r: with_results(singles(r)[:7], pdist, r),
        grad=False,
        why=TESTED,
    ),
]
