"""Pooling of planes of many sizes, against windows that NumPy shows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import clew

F = clew.nn.functional

# Sizes of the input, then kernel, stride, padding, dilation of every spatial dim.
CASES = {
    "windows that tile small planes": ((3, 5, 8, 8), 2, 2, 0, 1),
    "windows that tile long rows": ((2, 3, 4, 2600), 2, 2, 0, 1),
    "tiles of three, rows longer than a piece": ((1, 2, 6, 3300), 3, 3, 0, 1),
    "odd small planes": ((4, 6, 7, 7), 3, 2, 1, 1),
    "neighbours": ((2, 3, 14, 14), 3, 1, 1, 1),
    "rows of two pieces": ((1, 2, 5, 2100), 3, 2, 1, 1),
    "many rows": ((1, 2, 400, 9), 3, 1, 1, 1),
    "windows apart": ((2, 2, 23, 31), 2, 5, 1, 1),
    "dilated": ((2, 2, 19, 40), 3, 2, 1, 3),
    "one window of a plane": ((2, 3, 6, 6), 6, 6, 0, 1),
    "large windows": ((1, 2, 80, 80), 40, 3, 0, 1),
    "a line": ((2, 3, 5000), 5, 3, 2, 1),
    "volumes": ((2, 2, 5, 9, 9), 3, 2, 1, 1),
    "volumes that tile": ((1, 3, 4, 6, 6), 2, 2, 0, 1),
}


def windows_of(x, kernel, stride, padding, dilation, outside):
    """(N, C, windows ..., kernel ...) views of x with `outside` around it."""
    nd = x.ndim - 2
    padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * nd, constant_values=outside)
    span = (kernel - 1) * dilation + 1
    shown = np.lib.stride_tricks.sliding_window_view(padded, (span,) * nd, tuple(range(2, 2 + nd)))
    return shown[(..., *[slice(None, None, stride)] * nd, *[slice(None, None, dilation)] * nd)]


def taps(x, *window):
    """The windows with the taps of each in the last dim."""
    shown = windows_of(x, *window)
    nd = x.ndim - 2
    return shown.reshape(*shown.shape[:-nd], -1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_greatest_values_and_their_places(case, dtype, threads):
    shape, *window = CASES[case]
    nd = len(shape) - 2
    rng = np.random.default_rng(0)
    numbers = rng.integers(-9, 9, shape).astype(np.float64)  # with ties: the first one counts
    before = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:
        x = clew.tensor(numbers).to(getattr(clew, dtype))
        pool = getattr(F, f"max_pool{nd}d")
        kernel, stride, padding, dilation = window
        values, places = pool(x, kernel, stride, padding, dilation, return_indices=True)
    finally:
        clew.set_num_threads(before)
    seen = taps(numbers, *window, -np.inf)
    assert np.array_equal(values.double().numpy(), seen.max(-1))
    where = np.arange(np.prod(shape[2:])).reshape((1, 1, *shape[2:]))
    numbered = taps(np.broadcast_to(where, shape), *window, -1)
    first = np.take_along_axis(numbered, seen.argmax(-1)[..., None], -1)[..., 0]
    assert np.array_equal(places.numpy(), first)


def test_greatest_of_windows_with_nan_and_of_the_lowest():
    x = clew.full((2, 3, 9, 11), -float("inf"))
    values, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert (values == -float("inf")).all()
    rows, columns = clew.arange(5) * 2 - 1, clew.arange(6) * 2 - 1
    corners = rows.clamp(min=0)[:, None] * 11 + columns.clamp(min=0)
    assert (places == corners).all()
    x[:, :, 4, 5] = float("nan")
    values, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert values.isnan().sum() == 2 * 3 * 2
    assert (places[values.isnan()] == 4 * 11 + 5).all()


@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][-1] == 1])
def test_means_and_their_gradients(case, count_include_pad):
    shape, *window = CASES[case]
    nd = len(shape) - 2
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=shape)
    x = clew.tensor(numbers, requires_grad=True)
    kernel, stride, padding, _ = window
    pool = getattr(F, f"avg_pool{nd}d")
    y = pool(x, kernel, stride, padding, count_include_pad=count_include_pad)
    counted = taps(np.ones(shape), *window, 1 if count_include_pad else 0).sum(-1)
    want = taps(numbers, *window, 0).sum(-1) / counted
    np.testing.assert_allclose(y.detach().numpy(), want, 1e-12, 1e-13)
    # Pooling is linear: the gradient is its transpose.
    g = rng.normal(size=y.shape)
    y.backward(clew.tensor(g))
    other = rng.normal(size=shape)
    through = (taps(other, *window, 0).sum(-1) / counted * g).sum()
    np.testing.assert_allclose((x.grad.numpy() * other).sum(), through, 1e-9)
    exact = x.grad.clone()
    for dtype, error in ((clew.float32, 1e-5), (clew.float16, 1e-2)):
        narrow = clew.tensor(numbers).to(dtype).requires_grad_()
        y = pool(narrow, kernel, stride, padding, count_include_pad=count_include_pad)
        np.testing.assert_allclose(y.detach().double().numpy(), want, error, error)
        y.backward(clew.tensor(g).to(dtype))
        np.testing.assert_allclose(narrow.grad.double().numpy(), exact.numpy(), error, error)


def test_planes_apart_do_not_touch():
    """What one plane holds never reaches its neighbours."""
    for (_, *window), (n, size) in itertools.product(CASES.values(), [(3, 8), (2, 13)]):
        kernel, stride, padding, dilation = window
        if kernel > size or (kernel - 1) * dilation >= size:
            continue
        x = clew.zeros(n, 2, size, size)
        x[1, 0] = float("nan")
        y = F.max_pool2d(x, kernel, stride, padding, dilation)
        z = F.avg_pool2d(x, kernel, stride, padding)
        for result in (y, z):
            assert result[1, 0].isnan().any()
            result[1, 0] = 0.0
            assert not result.isnan().any()
