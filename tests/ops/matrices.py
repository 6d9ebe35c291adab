"""Matrices for tests of linear algebra, and how results are compared."""

from __future__ import annotations

import numpy as np
from numeric import normal

import clew

DTYPES = ["float64", "complex128"]
EYE = np.eye(3)


def positive(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    a = normal(seed, *shape, dtype=dtype)
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1])


def close(got, want, tolerance=1e-10):
    got = got.detach().numpy() if isinstance(got, clew.Tensor) else got
    want = want.detach().numpy() if isinstance(want, clew.Tensor) else want
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def hermitian(a):
    """The positive definite a a^H + 1: what reads one triangle sees both move."""
    return a @ a.mH + clew.eye(a.shape[-1], dtype=a.dtype)


def skewed(a):
    """A hermitian matrix with well separated eigenvalues."""
    return a + a.mH + clew.diag(clew.arange(a.shape[-1]) * 4.0)
