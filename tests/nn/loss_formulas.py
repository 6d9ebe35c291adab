"""Inputs of losses, and the formulas in NumPy that several files compare with."""

from __future__ import annotations

import numpy as np

import clew

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
P = rng.uniform(0.05, 0.95, size=(4, 3))
W = rng.uniform(0.2, 2, size=(4, 3))
WC = rng.uniform(0.2, 2, size=3)
T = np.array([0, 2, 1, 2])
SIGN = np.array([1, -1, 1, -1])
t = clew.tensor


def reduced(loss, how):
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[how]


def log_softmax(x, axis=1):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def close(got, want):
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)
