"""Samples of softmax and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import FLOATS, E, Op, Rng, S


def softmax(x: np.ndarray, dim: int, dtype: Any = None) -> np.ndarray:
    if x.ndim == 0:
        return x * 0 + 1
    if x.size == 0:
        return x
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def log_softmax(x: np.ndarray, dim: int, dtype: Any = None) -> np.ndarray:
    if x.ndim == 0:
        return x * 0
    if x.size == 0:
        return x
    z = x - x.max(axis=dim, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=dim, keepdims=True))


def softmin(x: np.ndarray, dim: Any = None, dtype: Any = None) -> np.ndarray:
    return softmax(-x, (0 if x.ndim in (0, 1, 3) else 1) if dim is None else dim)


def samples(r: Rng) -> list[S]:
    masked = r.normal((2, 4))
    masked[0, 1] = -np.inf
    return [
        S(r.normal((3, 4)), 0),
        S(r.normal((3, 4)), 1),
        S(r.normal((2, 3, 4)), dim=-2),
        S(r.normal(()), 0),
        S(r.normal((3, 4)) * 100, 1),
        S(np.zeros((2, 0)), 1),
        S(np.zeros((0, 3)), 1),
        S(r.normal((2, 300)), 1),
        S(r.normal((300, 3)), 0),
        S(masked, 1),
        S(r.normal((1, 1)), 1),
    ]


def backward(r: Rng) -> list[S]:
    y = softmax(r.normal((3, 4)), 1)
    return [
        S(r.normal((3, 4)), y, 1),
        S(r.normal((4, 3)), y.T.copy(), 0),
        S(r.normal(()), np.array(1.0), 0),
    ]


def log_backward(r: Rng) -> list[S]:
    y = log_softmax(r.normal((3, 4)), 1)
    return [S(r.normal((3, 4)), y, 1), S(r.normal((4, 3)), y.T.copy(), 0)]


def along(dim: int, x: np.ndarray) -> np.ndarray:
    return x.sum(axis=dim, keepdims=True) if x.ndim else x


BAD = [
    E(S(np.zeros((2, 3)), 2), IndexError, "[Dd]imension"),
    E(S(np.arange(3), 0), NotImplementedError, "floating point"),
    E(S(np.zeros(2) * 1j, 0), NotImplementedError, "floating point"),
]
UNLIKE = [E(S(np.zeros(2), np.zeros(3), 0), RuntimeError, "alike")]

OPS = [
    Op("softmax", softmax, samples, dtypes=FLOATS, rtol=2, errors=BAD),
    Op("log_softmax", log_softmax, samples, dtypes=FLOATS, rtol=2, errors=BAD),
    Op(
        "nn.functional.softmin",
        softmin,
        lambda r: [*samples(r)[:4], S(r.normal((3, 4))), S(r.normal((2, 3, 4)))],
        dtypes=FLOATS,
        rtol=2,
        errors=BAD[:1],
    ),
    Op(
        "_softmax_backward",
        lambda g, y, d: y * (g - along(d, g * y)),
        backward,
        dtypes=FLOATS,
        rtol=2,
        errors=UNLIKE,
    ),
    Op(
        "_log_softmax_backward",
        lambda g, y, d: g - np.exp(y) * along(d, g),
        log_backward,
        dtypes=FLOATS,
        rtol=2,
        errors=UNLIKE,
    ),
]
