"""Convolutions of which float32 has loops of its own: 3x3 by tiles (Winograd), depthwise."""

from __future__ import annotations

import numpy as np
import pytest
from numeric import normal

import clew

ops = clew._C.ops

SHAPES = [
    # batch, channels in and out, height, width, padding
    (2, 16, 16, 8, 8, 1),
    (9, 16, 32, 3, 3, 1),
    (40, 32, 16, 1, 1, 1),
    (3, 48, 16, 5, 9, 2),
    (1, 16, 48, 33, 31, 0),
    (1, 32, 64, 17, 2, (0, 1)),
    (2, 128, 144, 28, 28, 1),
]


def operands(shape, dtype=clew.float32):
    n, ci, co, h, w, padding = shape
    arrays = normal(1, n, ci, h, w), normal(2, co, ci, 3, 3) / np.sqrt(9 * ci), normal(3, co)
    return [clew.tensor(a.astype("float32")).to(dtype).requires_grad_() for a in arrays], padding


def results(shape, dtype=clew.float32):
    leaves, padding = operands(shape, dtype)
    out = ops.conv2d(*leaves, padding=padding)
    seed = clew.tensor(normal(4, *out.shape).astype("float32")).to(dtype)
    return [t.detach().numpy() for t in (out, *clew.autograd.grad(out, leaves, seed))]


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = clew.get_num_threads()
    clew.set_num_threads(request.param)
    yield
    clew.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_as_precise_as_direct_sums(shape, threads):
    for got, want in zip(results(shape), results(shape, clew.float64), strict=True):
        assert np.abs(got - want).max() <= 3e-6 * max(1, np.abs(want).max())


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_equal_bits_every_time(shape, threads):
    first = results(shape)
    for _ in range(3):
        for a, b in zip(first, results(shape), strict=True):
            assert a.tobytes() == b.tobytes()


def test_small_integers_are_exact():
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, s).astype("float64") for s in ((2, 16, 12, 12), (32, 16, 3, 3)))
    exact = ops.conv2d(clew.tensor(x), clew.tensor(w), padding=1).numpy()
    got = ops.conv2d(clew.tensor(x).float(), clew.tensor(w).float(), padding=1).numpy()
    np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_stays_where_it_belongs(value):
    """The sums inside a tile would spread an infinity to pixels that do not see it."""
    x, w = np.ones((2, 16, 12, 12), "float32"), np.full((16, 16, 3, 3), 0.5, "float32")
    x[1, 3, 5, 6] = value
    with np.errstate(over="ignore"):
        wide = ops.conv2d(clew.tensor(x).double(), clew.tensor(w).double(), padding=1)
        want = wide.numpy().astype("float32")
        got = ops.conv2d(clew.tensor(x), clew.tensor(w), padding=1).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6)
        back = ops.conv_transpose2d(clew.tensor(x), clew.tensor(w), padding=1).numpy()
        wide = ops.conv_transpose2d(clew.tensor(x).double(), clew.tensor(w).double(), padding=1)
        np.testing.assert_allclose(back, wide.numpy().astype("float32"), rtol=1e-6)


@pytest.mark.parametrize("groups", [1, 16])
def test_infinities_in_the_gradient_of_a_weight(groups):
    leaves, _ = operands((2, 16, 16, 8, 8, 1))
    leaves[1] = leaves[1][:, : 16 // groups].detach().requires_grad_()
    out = ops.conv2d(*leaves, padding=1, groups=groups)
    seed = np.zeros(out.shape, "float32")
    seed[0, 2, 0, 0] = np.inf
    (grad,) = clew.autograd.grad(out, [leaves[1]], clew.tensor(seed))
    finite = np.isfinite(grad.numpy())
    assert finite[:2].all()
    assert finite[3:].all()
    assert finite[2, :, 0].all()  # these taps see padding alone
    assert finite[2, :, :, 0].all()
    assert not finite[2, :, 1:, 1:].any()


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_depthwise_kernel_that_is_not_finite(value):
    x, w = np.ones((2, 8, 12, 12), "float32"), np.ones((8, 1, 3, 3), "float32")
    x[1, 3, 5, 6] = w[2, 0, 1, 1] = value
    got = ops.conv2d(clew.tensor(x), clew.tensor(w), padding=1, groups=8).numpy()
    assert np.isfinite(got[:, [0, 1, 4, 5, 6, 7]]).all()
    assert not np.isfinite(got[:, 2]).any()
    assert (~np.isfinite(got[1, 3])).sum() == 9
