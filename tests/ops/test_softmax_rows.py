"""Softmax, its logarithm, logsumexp and cross-entropy of rows of all widths that have own loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from clew.nn import functional as F

WIDTHS = [
    *range(1, 36),
    40,
    47,
    48,
    50,
    63,
    64,
    65,
    80,
    95,
    96,
    97,
    100,
    111,
    112,
    127,
    128,
    129,
    300,
]


def exact(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Softmax, its logarithm and logsumexp in double precision."""
    x = x.astype(np.float64)
    top = x.max(1, keepdims=True)
    total = np.exp(x - top).sum(1, keepdims=True)
    return np.exp(x - top) / total, x - top - np.log(total), (top + np.log(total))[:, 0]


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("rows", [1, 3, 9, 130])
@pytest.mark.parametrize("width", WIDTHS)
def test_values(width: int, rows: int, dtype: Any):
    rng = np.random.default_rng(width)
    x = clew.tensor(rng.normal(size=(rows, width)) * 5, dtype=dtype)
    p, log_p, total = exact(x.numpy())
    rtol = 2e-6 if dtype is clew.float32 else 1e-14
    np.testing.assert_allclose(x.softmax(1), p, rtol=3 * rtol)
    np.testing.assert_allclose(x.log_softmax(1), log_p, rtol=rtol, atol=4 * rtol)
    np.testing.assert_allclose(x.logsumexp(1), total, rtol=rtol, atol=rtol)
    target = clew.tensor(rng.integers(0, width, rows))
    losses = -log_p[np.arange(rows), target.numpy()]
    np.testing.assert_allclose(
        F.cross_entropy(x, target, reduction="none"), losses, rtol=rtol, atol=4 * rtol
    )
    smooth = 0.7 * losses - 0.3 * log_p.mean(1)
    got = F.cross_entropy(x, target, reduction="none", label_smoothing=0.3)
    np.testing.assert_allclose(got, smooth, rtol=2 * rtol, atol=8 * rtol)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_gives_the_same_wherever_it_stands(width: int):
    x = clew.randn(70, width)
    for f in (lambda x: x.softmax(1), lambda x: x.log_softmax(1), lambda x: x.logsumexp(1)):
        whole = f(x)
        for first, rows in ((0, 1), (3, 2), (69, 1), (11, 40)):
            assert clew.equal(f(x[first : first + rows].clone()), whole[first : first + rows])


@pytest.mark.parametrize("width", [2, 5, 15, 16, 17, 33, 50, 100, 128, 131])
def test_rows_that_are_not_finite(width: int):
    inf, nan = float("inf"), float("nan")
    rows = 12
    x = clew.randn(rows, width)
    x[1] = -inf
    x[2, width // 2] = inf
    x[3, 0] = nan
    x[4, -1] = nan
    x[5] = -inf
    x[5, width - 1] = 2.0
    x[6, : width - 1] = -inf
    x[7] = 3e38
    x[8, -1] = -inf
    p, log_p, total = x.softmax(1), x.log_softmax(1), x.logsumexp(1)
    for row in (1, 2, 3, 4):
        assert p[row].isnan().all(), row
        assert log_p[row].isnan().all(), row
    assert total[1] == -inf
    assert total[2] == inf
    assert total[3].isnan()
    assert total[4].isnan()
    for row in (5, 6):
        alone = clew.zeros(width)
        alone[-1] = 1
        assert clew.equal(p[row], alone)
        assert total[row] == x[row, -1]
    assert clew.allclose(p[7], clew.full((width,), 1 / width), rtol=1e-6)
    assert p[8, -1] == 0
    assert log_p[8, -1] == -inf
    plain = clew.tensor([0, 9, 10, 11])
    assert clew.allclose(p[plain].sum(1), clew.ones(4), rtol=1e-6)


@pytest.mark.parametrize("width", [3, 10, 16, 17, 50, 100, 200])
def test_far_scores(width: int):
    """The gradient stays right where the logarithm of the sum is large and its rounding too."""
    for shift in (0.0, 1e3, 1e6, -1e6):
        x = (clew.randn(20, width, dtype=clew.float64) * 4).float() + shift
        y = clew.randint(width, (20,))
        got = [t.detach().requires_grad_() for t in (x, x.double())]
        for t in got:
            F.cross_entropy(t, y).backward()
        assert clew.allclose(got[0].grad.double(), got[1].grad, rtol=1e-5, atol=1e-8)
