"""Softmax down columns: done piece by piece of 64 rows, each shifted by its own maximum."""

import numpy as np
import pytest

import clew

SIZES = [1, 63, 64, 65, 200, 513]
WIDTHS = [8, 31, 64, 100, 128, 300]


def reference(x, log):
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        x = x.astype(np.float64)
        apart = x - x.max(0, keepdims=True)
        total = np.exp(apart).sum(0, keepdims=True)
        return apart - np.log(total) if log else np.exp(apart) / total


def check(y, x, log):
    """Logarithms are differences of numbers up to some hundreds: near 0 they cancel."""
    bound = 2e-6 if x.dtype == np.float32 else 1e-14
    np.testing.assert_allclose(
        y, reference(x, log), rtol=2 * bound, atol=bound if log else bound * 1e-6
    )


def columns(rng, n, width):
    """Maxima that rise, fall and stand anywhere among the pieces."""
    slope = np.linspace(-60, 60, width) * np.linspace(0, 1, n)[:, None]
    return (rng.normal(size=(n, width)) * 3 + slope).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_pieces_join(n, log, dtype):
    rng = np.random.default_rng(n)
    for width in WIDTHS:
        x = columns(rng, n, width).astype(dtype)
        y = (clew.log_softmax if log else clew.softmax)(clew.from_numpy(x), 0).numpy()
        check(y, x, log)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("where", [0, 70, 199])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, -3e38])
def test_what_is_not_finite_stays_in_its_column(value, where, log):
    x = columns(np.random.default_rng(3), 200, 128)
    x[where, 5] = value
    x[:, 7] = -np.inf  # a column without numbers
    x[:100, 9] = -np.inf  # whole pieces without numbers
    x[100:, 11] = -np.inf
    y = (clew.log_softmax if log else clew.softmax)(clew.from_numpy(x), 0).numpy()
    check(y, x, log)


def test_large_tiles_are_written_past_the_caches():
    x = columns(np.random.default_rng(4), 700, 1024)
    check(clew.softmax(clew.from_numpy(x), 0).numpy(), x, False)


@pytest.mark.parametrize("dtype", [clew.bfloat16, clew.float16])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", [(200, 100), (3, 65, 4, 9), (5, 2000, 31), (1, 8), (7, 0, 9)])
def test_columns_of_16_bits_are_those_of_float32_rounded_once(shape, log, dtype):
    clew.manual_seed(0)
    f = clew.log_softmax if log else clew.softmax
    dim = 0 if len(shape) == 2 else 1
    x = (clew.randn(shape) * 4).to(dtype).requires_grad_()
    y = f(x, dim)
    assert y.equal(f(x.float(), dim).to(dtype))
    g = clew.randn(shape).to(dtype)
    wide = y.detach().float()
    kernel = clew._C.ops._log_softmax_backward if log else clew._C.ops._softmax_backward
    want = kernel(g.float(), wide, dim).to(dtype)
    assert clew.autograd.grad(y, x, g)[0].equal(want)
