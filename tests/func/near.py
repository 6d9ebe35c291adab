"""Numbers, and how results of transforms are compared."""

from __future__ import annotations

import numpy as np

import clew


def normal(*shape: int, seed: int = 0) -> clew.Tensor:
    """Normal numbers, the same for each seed."""
    return clew.tensor(np.random.default_rng(seed).standard_normal(shape))


def close(a: clew.Tensor, b: clew.Tensor) -> None:
    """Both are equal but for rounding."""
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)
