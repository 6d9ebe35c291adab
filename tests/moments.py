"""The mean and the variance of many drawn numbers."""

from __future__ import annotations

import math

import numpy as np

N = 40000


def check_moments(x, mean, variance):
    values = np.asarray(x.double().tolist()).ravel()
    assert abs(values.mean() - mean) < 5 * math.sqrt(variance / values.size) + 1e-3 * abs(mean)
    assert abs(values.var() - variance) < 0.1 * variance
