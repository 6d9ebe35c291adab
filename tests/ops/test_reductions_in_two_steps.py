"""Sums, means and extrema over a far axis and a short near one."""

from __future__ import annotations

import numpy as np
import pytest

import clew

CASES = [
    ((4, 16, 14, 2, 14, 2), (3, 5)), ((4, 16, 14, 2, 14, 2), (2, 3, 5)), ((40, 50, 3), (0, 2)),
    ((8, 16, 32, 24), (0, 3)), ((8, 16, 32, 24), (0, 1, 3)), ((32, 20, 64), (0, -1)),
    ((3, 8, 5, 4, 3, 2), (1, 4, 5)), ((30, 40, 2, 2), (0, 2, 3)), ((2, 5, 1, 300, 7), (1, 2, 4)),
    ((3, 700, 2), (0, 2)), ((0, 40, 3), (0, 2)), ((40, 0, 3), (0, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("size", "dims"), CASES, ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_against_numpy(size, dims, keepdim):
    x = clew.randn(size)
    y = x.double().numpy()
    pairs = [(x.sum, y.sum), (x.mean, y.mean)] if 0 not in size else [(x.sum, y.sum)]
    for mine, theirs in pairs:
        got, want = mine(dims, keepdim=keepdim), theirs(dims, keepdims=keepdim)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-4)
    for dtype in (clew.float64, clew.bfloat16, clew.int64, clew.complex64):
        a = (x * 10).to(dtype)
        b = (a.to(clew.complex128) if dtype.is_complex else a.double()).numpy()
        bound = 2e-2 if dtype is clew.bfloat16 else 1e-5
        got = a.sum(dims, keepdim=keepdim)
        got = got.to(clew.complex128) if dtype.is_complex else got.double()
        np.testing.assert_allclose(got.numpy(), b.sum(dims, keepdims=keepdim), bound, 10 * bound)
        if 0 in size or dtype.is_complex:
            continue
        for name in ("amax", "amin"):
            got = getattr(a, name)(dims, keepdim=keepdim)
            want = getattr(np, name)(b, dims, keepdims=keepdim)
            np.testing.assert_array_equal(got.double().numpy(), want)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (0, 2, 1)])
def test_other_orders_and_parts(order):
    x = clew.randn(30, 40, 6).permute(order)
    for part in (x, x[1:], x[:, ::2], x[..., :-1]):
        for dims in ((0, 1), (0, 2), (1, 2)):
            want = part.double().contiguous().numpy()
            np.testing.assert_allclose(part.sum(dims).numpy(), want.sum(dims), rtol=1e-5, atol=1e-4)
            assert np.array_equal(part.amax(dims).double().numpy(), want.max(dims))


@pytest.mark.parametrize(
    ("size", "strides", "dims"),
    [
        ((64, 5, 10), (10, 3, 1), (1, 2)),
        ((64, 10, 5), (10, 1, 3), (1, 2)),
        ((64, 5, 10), (10, 1, 1), (1, 2)),
        ((6, 64, 4, 10), (900, 10, 7, 1), (0, 2, 3)),
        ((6, 64, 4, 10), (900, 10, 0, 1), (0, 2, 3)),
        ((6, 64, 4, 10), (900, 10, 11, 1), (0, 2, 3)),
    ],
)
def test_windows_that_overlap(size, strides, dims):
    x = clew.randn(8000).as_strided(size, strides)
    want = x.double().contiguous().numpy()
    for name in ("sum", "mean", "amax", "amin"):
        got = getattr(x, name)(dims)
        np.testing.assert_allclose(got, getattr(want, name.lstrip("a"))(dims), 1e-5, 1e-4)


def test_nan_and_infinity():
    x = clew.randn(40, 50, 3)
    x[7, 11, 1], x[3, 20, 2], x[5, 20, 0] = float("nan"), float("inf"), float("-inf")
    for name in ("sum", "mean", "amax", "amin"):
        got = getattr(x, name)((0, 2))
        assert got.isnan().nonzero().flatten().tolist() == (
            [11, 20] if name in ("sum", "mean") else [11]
        )
    assert x.amax((0, 2))[20] == float("inf") and x.amin((0, 2))[20] == float("-inf")


def test_gradients():
    x = clew.randn(3, 16, 5, 2, 5, 2, dtype=clew.float64, requires_grad=True)
    up = clew.randn(3, 16, 5, 5, dtype=clew.float64)
    (g,) = clew.autograd.grad(x.sum((3, 5)), x, up)
    assert clew.equal(g, up[:, :, :, None, :, None].expand_as(x))


def test_one_thread_and_two_agree():
    before, seen = clew.get_num_threads(), []
    x = clew.randn(16, 32, 28, 2, 28, 2)
    try:
        for threads in (1, 2):
            clew.set_num_threads(threads)
            seen.append([x.sum((3, 5)), x.mean((0, 3, 5)), x.amax((3, 5))])
    finally:
        clew.set_num_threads(before)
    for a, b in zip(*seen):
        clew.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
