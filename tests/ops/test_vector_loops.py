"""Reductions, softmax and random numbers around the sizes at which their vector loops change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((1000, 3), 0),
    ((1003, 10), 0),
    ((37, 2049), 0),
    ((300, 100), 1),
    ((5, 8300), 1),
    ((7, 33, 65), (0, 2)),
    ((7, 33, 65), 1),
    ((50000, 2, 3), 1),
    ((70001,), 0),
    ((40, 5), (0, 1)),
]


def data(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    r = np.random.default_rng(0)
    if dtype == "bool":
        return r.random(shape) < 0.3
    if "int" in dtype:
        return r.integers(0, 120, shape).astype(dtype)
    return r.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("shape, dim", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_sums_and_extrema(shape: tuple[int, ...], dim: Any, dtype: str):
    x = data(shape, dtype)
    t = clew.tensor(x)
    exact = x.astype("float64")
    np.testing.assert_allclose(t.sum(dim).numpy(), exact.sum(dim), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(t.amax(dim).numpy(), x.max(dim))
    np.testing.assert_array_equal(t.amin(dim).numpy(), x.min(dim))
    if "float" in dtype:
        size = np.sqrt((exact**2).sum(dim))
        np.testing.assert_allclose(t.norm(dim=dim).numpy(), size, rtol=1e-5)
        np.testing.assert_allclose(t.norm(p=1, dim=dim).numpy(), abs(exact).sum(dim), rtol=1e-5)
        var, mean = clew.var_mean(t + 50, dim)
        np.testing.assert_allclose(mean.numpy(), exact.mean(dim) + 50, rtol=1e-6)
        np.testing.assert_allclose(var.numpy(), exact.var(dim, ddof=1), 1e-4, 1e-5)
        flat = x.copy()
        flat.reshape(-1)[x.size // 2] = np.nan
        assert np.isnan(clew.tensor(flat).max().item()) and np.isnan(
            clew.tensor(flat).amin(0).sum()
        )
        assert clew.tensor(flat).argmax().item() == x.size // 2


@pytest.mark.parametrize("shape, dim", SHAPES)
def test_sums_of_bfloat16(shape: tuple[int, ...], dim: Any):
    t = clew.tensor(data(shape, "float32")).bfloat16()
    want = t.double().numpy().sum(dim)
    np.testing.assert_allclose(t.sum(dim).double().numpy(), want, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("n", [1, 2, 33, 1100])
@pytest.mark.parametrize("w", [8, 33, 64, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_columns(n: int, w: int, dtype: str):
    x = data((2, n, w), dtype) * 10
    x[0, 0, 0] = -np.inf if n > 1 else 0
    e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    t = clew.tensor(x).requires_grad_()
    tolerance = {"rtol": 1e-5 if dtype == "float32" else 1e-13, "atol": 3e-6}
    np.testing.assert_allclose(t.softmax(1).detach().numpy(), p, **tolerance)
    with np.errstate(divide="ignore"):
        logp = (x - x.max(1, keepdims=True)) - np.log(e.sum(1, keepdims=True))
    np.testing.assert_allclose(t.log_softmax(1).detach().numpy(), logp, **tolerance)
    top = x.max(1) + np.log(e.sum(1))
    np.testing.assert_allclose(t.logsumexp(1).detach().numpy(), top, **tolerance)
    g = data((2, n, w), dtype)
    (got,) = clew.autograd.grad(t.softmax(1), [t], clew.tensor(g))
    np.testing.assert_allclose(got.numpy(), p * (g - (g * p).sum(1, keepdims=True)), **tolerance)
    (got,) = clew.autograd.grad(t.log_softmax(1), [t], clew.tensor(g))
    np.testing.assert_allclose(got.numpy(), g - p * g.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_logsumexp_of_infinite_columns():
    x = clew.zeros(3, 9)
    x[:, 1] = -float("inf")
    x[1, 2] = float("inf")
    got = x.logsumexp(0).numpy()
    assert got[1] == -np.inf and got[2] == np.inf and abs(got[0] - np.log(3)) < 1e-6


def test_words_are_those_of_mt19937():
    words = np.random.RandomState(7).randint(0, 2**32, size=20000, dtype=np.uint32)
    clew.manual_seed(7)
    got = np.concatenate([clew.rand(n).numpy() for n in (1, 700, 5000, 3, 1296)])
    np.testing.assert_array_equal(got, (words[:7000] & 0xFFFFFF) * np.float32(2**-24))
    got = clew.empty(3000).bernoulli_(0.3).numpy()
    pairs = words[7000:13000].astype(np.uint64).reshape(-1, 2)
    units = ((pairs[:, 0] << 32 | pairs[:, 1]) & (2**53 - 1)) * 2.0**-53
    np.testing.assert_array_equal(got, units < 0.3)


def test_dropout_keeps_what_its_mask_says():
    x = clew.rand(1000) + 1
    clew.manual_seed(3)
    y = clew.nn.functional.dropout(x, 0.25)
    clew.manual_seed(3)
    mask = clew.empty(1000).bernoulli_(0.75)
    np.testing.assert_allclose(y.numpy(), (x * mask / 0.75).numpy(), rtol=1e-6)
