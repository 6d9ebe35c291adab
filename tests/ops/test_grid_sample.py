"""The native form of grid_sample beside the one made of other operations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import clew
from clew.nn.functional import grid_sample
from clew.nn.functional._grid import _composed_samples

KINDS = [
    (dims, mode, padding, align)
    for dims, mode, padding, align in itertools.product(
        (2, 3), ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
    )
    if not (dims == 3 and mode == "bicubic")
]


def images(dims: int, dtype: clew.dtype) -> clew.Tensor:
    rng = np.random.default_rng(0)
    return clew.tensor(rng.standard_normal((2, 3, 5, 7, 4)[: dims + 2]), dtype=dtype)


def places(dims: int, count: int, dtype: clew.dtype) -> clew.Tensor:
    shape = (2, count, *(1,) * (dims - 1), dims)
    return clew.tensor(np.random.default_rng(1).uniform(-1.7, 1.7, shape), dtype=dtype)


@pytest.mark.parametrize(("dims", "mode", "padding", "align"), KINDS)
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_values_and_gradients(dims, mode, padding, align, dtype):
    for count in (1, 15, 129, 300):
        got = []
        for form in (grid_sample, _composed_samples):
            x = images(dims, dtype).requires_grad_()
            grid = places(dims, count, dtype).requires_grad_()
            out = form(x, grid, mode, padding, align)
            out.backward(clew.linspace(-1, 1, out.numel(), dtype=dtype).reshape(out.shape))
            got.append((out.detach(), x.grad, grid.grad))
        close = (
            {"rtol": 1e-3, "atol": 1e-4} if dtype == clew.float32 else {"rtol": 1e-9, "atol": 1e-12}
        )
        for native, composed in zip(*got, strict=True):
            np.testing.assert_allclose(native.numpy(), composed.numpy(), **close)


@pytest.mark.parametrize(("dims", "mode", "padding", "align"), KINDS)
def test_places_without_a_number(dims, mode, padding, align):
    grid = places(dims, 40, clew.float32)
    grid[0, 3:6] = clew.nan
    grid[1, 2] = clew.inf
    grid[1, 7, ..., 0] = -clew.inf
    if padding != "reflection":  # whose phase is all rounding there
        grid[1, 9] = 1e30
    x = images(dims, clew.float32)
    native = grid_sample(x, grid, mode, padding, align).numpy()
    composed = _composed_samples(x, grid, mode, padding, align).numpy()
    np.testing.assert_allclose(native, composed, rtol=1e-3, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_an_infinite_place_of_an_image_gives_no_number(mode, dtype):
    """As in PyTorch, where the image gets no gradient from it; a volume's is outside."""
    x = clew.arange(1.0, 17.0, dtype=dtype).reshape(1, 1, 4, 4).requires_grad_()
    grid = clew.tensor([[clew.inf, 0.0], [0.0, -clew.inf], [0.25, 0.25]], dtype=dtype)
    grid = grid.reshape(1, 3, 1, 2).requires_grad_()
    found = grid_sample(x, grid, mode, align_corners=False).flatten()
    found.backward(clew.tensor([1.0, 1.0, 0.0], dtype=dtype))
    no_number = mode != "nearest"
    assert found.isnan().tolist() == [no_number, no_number, False]
    assert not x.grad.any()
    slopes = grid.grad.reshape(3, 2)
    assert not slopes[2].any()
    if mode == "bilinear":
        assert slopes[0, 0] == 0 and slopes[0, 1].isnan()
        assert slopes[1, 1] == 0 and slopes[1, 0].isnan()
    if mode != "bicubic":
        volume, place = clew.ones(1, 1, 4, 4, 4), clew.tensor([clew.inf, 0.0, 0.0])
        found = grid_sample(volume, place.reshape(1, 1, 1, 1, 3), mode, align_corners=False)
        assert found.item() == 0


def test_what_is_outside_is_not_read():
    x = clew.full((1, 1, 4, 4), clew.inf)
    x[..., 1:3, 1:3] = 2.0
    grid = clew.tensor([[-3.0, 0.0], [0.0, 0.0], [5.0, 5.0]] * 20).reshape(1, 60, 1, 2)
    found = grid_sample(x, grid, align_corners=False).flatten().tolist()
    assert found == [0.0, 2.0, 0.0] * 20


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_second_derivatives(mode):
    x = images(2, clew.float64).requires_grad_()
    grid = (places(2, 3, clew.float64) / 2).requires_grad_()
    assert clew.autograd.gradgradcheck(
        lambda *a: grid_sample(*a, mode, align_corners=False), (x, grid)
    )


def test_thread_count_does_not_change_bits():
    x, grid = clew.randn(1, 5, 33, 31), clew.rand(1, 200, 50, 2) * 2 - 1
    before = clew.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            clew.set_num_threads(count)
            a, b = x.clone().requires_grad_(), grid.clone().requires_grad_()
            out = grid_sample(a, b, align_corners=False)
            out.sum().backward()
            found.append([t.detach().numpy() for t in (out, a.grad, b.grad)])
    finally:
        clew.set_num_threads(before)
    for other in found[1:]:
        for mine, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, same)


def test_empty_batches_and_no_places():
    assert grid_sample(clew.ones(0, 2, 3, 3), clew.ones(0, 4, 4, 2), align_corners=False).shape == (
        0,
        2,
        4,
        4,
    )
    assert grid_sample(clew.ones(2, 2, 3, 3), clew.ones(2, 0, 4, 2), align_corners=False).shape == (
        2,
        2,
        0,
        4,
    )


def test_modes_by_number():
    x, grid = images(2, clew.float64), places(2, 15, clew.float64)
    for i, mode in enumerate(("bilinear", "nearest", "bicubic")):
        for j, padding in enumerate(("zeros", "border", "reflection")):
            want = grid_sample(x, grid, mode, padding, True)
            assert clew.grid_sampler(x, grid, i, j, True).equal(want)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_elements_that_are_no_tap_do_not_count(mode, padding):
    """A place's taps lie among neighbours that are read with them: those must not leave a nan."""
    image = np.random.default_rng(3).standard_normal((1, 2, 6, 6)).astype(np.float32)
    image[0, :, 2, :] = image[0, :, :, 3] = np.inf
    grid = np.array([(-5.0, -5.0), (0.9, 0.95), (-0.95, 0.9), (5.0, 5.0)] * 3, np.float32)
    grid = grid.reshape(1, 3, 4, 2)
    x = clew.tensor(image, requires_grad=True)
    g = clew.tensor(grid, requires_grad=True)
    out = grid_sample(x, g, mode, padding, align_corners=False)
    wide = grid_sample(
        clew.tensor(image.astype(float)),
        clew.tensor(grid.astype(float)),
        mode,
        padding,
        align_corners=False,
    )
    assert np.allclose(out.detach().numpy(), wide.numpy(), rtol=1e-4, atol=1e-5, equal_nan=True)
    (slopes,) = clew.autograd.grad(out.sum(), g)
    wide_grid = clew.tensor(grid.astype(float), requires_grad=True)
    out = grid_sample(
        clew.tensor(image.astype(float)), wide_grid, mode, padding, align_corners=False
    )
    (expected,) = clew.autograd.grad(out.sum(), wide_grid)
    assert np.allclose(slopes.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4, equal_nan=True)


def test_equal_calls_have_equal_bits_whatever_ran_before():
    """Lanes behind the last place held what the stack held; NaN there changed the rounding."""
    x = clew.randn(1, 1, 2, 2, 2)
    grid = clew.randn(1, 1, 1, 2, 3).tanh()
    first = grid_sample(x, grid, align_corners=True)
    grid_sample(
        clew.full((1, 1, 4, 4), float("inf")),
        clew.full((1, 1, 64, 2), float("nan")),
        align_corners=True,
    )
    assert clew.equal(grid_sample(x, grid, align_corners=True), first)
