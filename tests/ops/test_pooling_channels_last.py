"""Pooling of images whose channels lie last gives what dense images give, and lies as they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clew
import clew.nn.functional as F

FORMAT = {4: clew.channels_last, 5: clew.channels_last_3d}
POOLS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max dilated": lambda x: F.max_pool2d(x, (2, 3), (1, 2), (0, 1), dilation=2, ceil_mode=True),
    "max over padding": lambda x: F.max_pool2d(x, 2, 1, 1, dilation=3, return_indices=True),
    "max adaptive": lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
    "max whole": lambda x: F.adaptive_max_pool2d(x, 1),
    "mean": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "mean uncounted": lambda x: F.avg_pool2d(x, (3, 2), 2, 1, True, False),
    "mean by 5": lambda x: F.avg_pool2d(x, 2, divisor_override=5),
    "mean adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "mean whole": lambda x: F.adaptive_avg_pool2d(x, 1),
    "lp": lambda x: F.lp_pool2d(x, 2, 2),
}
VOLUMES: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: F.max_pool3d(x, 2, 2, 1, return_indices=True),
    "max adaptive": lambda x: F.adaptive_max_pool3d(x, 2, return_indices=True),
    "mean": lambda x: F.avg_pool3d(x, 3, 2, 1),
    "mean adaptive": lambda x: F.adaptive_avg_pool3d(x, 2),
}
SIZES = [(2, 3, 7, 6), (1, 65, 5, 9), (3, 300, 6, 6), (0, 4, 6, 6), (2, 16, 40, 40)]


def results(pool: Callable[[Any], Any], x: Any) -> list[Any]:
    made = pool(x)
    return list(made) if isinstance(made, tuple) else [made]


def compare(pool: Callable[[Any], Any], dense: Any, format: Any) -> None:
    last = dense.contiguous(memory_format=format)
    wanted, got = results(pool, dense), results(pool, last)
    bound = {"rtol": 1e-2, "atol": 1e-2} if dense.element_size() == 2 else {}
    for a, b in zip(wanted, got):
        assert not b.numel() or b.is_contiguous(memory_format=format) or dense.ndim == 5
        clew.testing.assert_close(b, a, equal_nan=True, **bound)
    if not dense.is_floating_point():
        return
    weight = clew.randn_like(wanted[0]) * wanted[0].isfinite()
    weight_last = weight.contiguous(memory_format=format)
    slopes = []
    for x, w in ((dense, weight), (last, weight_last), (last, weight)):
        x = x.detach().requires_grad_()
        (slope,) = clew.autograd.grad(results(pool, x)[0], x, w)
        slopes.append(slope)
    for slope in slopes[1:]:
        clew.testing.assert_close(slope, slopes[0], equal_nan=True, **bound)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_as_dense_images(name, size):
    compare(POOLS[name], clew.randn(size), clew.channels_last)


@pytest.mark.parametrize("size", [(2, 3, 5, 4, 6), (1, 70, 4, 4, 4)], ids=str)
@pytest.mark.parametrize("name", VOLUMES)
def test_as_dense_volumes(name, size):
    compare(VOLUMES[name], clew.randn(size), clew.channels_last_3d)


@pytest.mark.parametrize("dtype", [clew.float64, clew.bfloat16, clew.float16, clew.int32])
@pytest.mark.parametrize("name", ["max", "max adaptive", "mean", "mean adaptive"])
def test_dtypes(name, dtype):
    if not dtype.is_floating_point and "mean" in name:
        return
    compare(POOLS[name], (clew.randn(2, 20, 8, 7) * 8).to(dtype), clew.channels_last)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite(value):
    x = clew.randn(2, 20, 8, 8)
    x[clew.rand(x.shape) < 0.3] = value
    x[0, 3] = value
    compare(POOLS["max"], x, clew.channels_last)
    compare(POOLS["max adaptive"], x, clew.channels_last)


def test_the_first_of_equal_values_is_taken():
    x = clew.zeros(1, 20, 4, 4).to(memory_format=clew.channels_last)
    _, at = F.max_pool2d(x, 2, return_indices=True)
    assert at[0, 7].tolist() == [[0, 2], [8, 10]]


def test_second_derivatives():
    x = clew.randn(2, 5, 6, 6, dtype=clew.float64).to(memory_format=clew.channels_last)
    for name in ("max", "mean", "mean adaptive"):
        f = lambda t, pool=POOLS[name]: results(pool, t)[0]
        x = x.detach().requires_grad_()
        assert clew.autograd.gradcheck(f, (x,), fast_mode=True)
        assert clew.autograd.gradgradcheck(f, (x,), fast_mode=True)


def test_inputs_that_are_parts_of_others():
    whole = clew.randn(2, 40, 9, 9).to(memory_format=clew.channels_last)
    for part in (whole[:, ::2], whole[:, 3:30], whole[:, :, 1:, :-1], whole[1:]):
        for pool in POOLS.values():
            for a, b in zip(results(pool, part), results(pool, part.contiguous())):
                clew.testing.assert_close(a, b)


def test_one_thread_and_two_agree():
    x = clew.randn(1, 200, 33, 33).to(memory_format=clew.channels_last)
    before, seen = clew.get_num_threads(), []
    try:
        for threads in (1, 2):
            clew.set_num_threads(threads)
            y = x.detach().requires_grad_()
            made = [results(pool, y)[0] for pool in POOLS.values()]
            seen.append([*made, *(clew.autograd.grad(m.sum(), y)[0] for m in made)])
    finally:
        clew.set_num_threads(before)
    assert all(clew.equal(a, b) for a, b in zip(*seen))


@pytest.mark.parametrize("size", [(4, 6, 8), (1, 6, 8), (4, 1, 8)])
def test_one_image_is_no_batch_of_lines(size):
    channels, height, width = size
    x = clew.randn(channels, width, height).transpose(1, 2)
    for pool in (
        lambda x: F.max_pool2d(x, 1, 2),
        lambda x: F.avg_pool2d(x, 1, 2),
        lambda x: F.adaptive_max_pool2d(x, (3, 4)),
        lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 1, return_indices=True), 1),
    ):
        assert pool(x).is_contiguous()
        clew.testing.assert_close(pool(x), pool(x.contiguous()))
    volume = clew.randn(2, *size).transpose(1, 3).contiguous().transpose(1, 3)
    assert F.max_pool3d(volume, 1).is_contiguous()
