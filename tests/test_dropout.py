"""Dropout: what is kept and its scale, gradients, in place, of whole channels."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from moments import N, check_moments

FLOATS = [clew.float16, clew.bfloat16, clew.float32, clew.float64]


def dropout(name):
    return clew._C.functions["nn.functional." + name]


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_scales_what_it_keeps(dtype):
    x = clew.rand(N, dtype=dtype) + 1
    y = dropout("dropout")(x, 0.25)
    kept = y != 0
    share = kept.double().mean().item()
    assert abs(share - 0.75) < 0.02
    ratio = (y[kept].double() / x[kept].double()).tolist()
    np.testing.assert_allclose(ratio, 4 / 3, rtol=1e-2)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16, clew.float16])
@pytest.mark.parametrize("transposed", [False, True])
def test_dropout_keeps_the_sign_of_zero(dtype, transposed):
    x = -clew.ones(30, 40, dtype=dtype)
    y = clew.nn.functional.dropout(x.t() if transposed else x, 0.5)
    assert 0 < (y == 0).sum() < y.numel()
    assert clew.signbit(y).all()


def test_dropout_gradient_is_its_mask():
    x = clew.rand(50, requires_grad=True)
    y = dropout("dropout")(x, 0.5)
    y.sum().backward()
    assert x.grad.tolist() == [2.0 if v else 0.0 for v in (y != 0).tolist()]


def test_dropout_second_order():
    x = clew.rand(20, dtype=clew.float64).add(0.5).requires_grad_()
    y = dropout("dropout")(x, 0.5)
    (g,) = clew.autograd.grad((y**3).sum(), x, create_graph=True)
    (h,) = clew.autograd.grad(g.sum(), x)
    mask = (y != 0).double()
    np.testing.assert_allclose(h.tolist(), (6 * 8 * mask * x).tolist(), rtol=1e-12)


def test_dropout_is_the_identity_otherwise():
    x = clew.ones(3)
    assert dropout("dropout")(x, 0.0) is x
    assert dropout("dropout")(x, 0.5, training=False) is x
    assert dropout("dropout")(x, 1.0).tolist() == [0, 0, 0]
    assert dropout("dropout")(clew.ones(0), 0.5).shape == (0,)


def test_dropout_in_place():
    x = clew.ones(1000)
    assert dropout("dropout")(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}
    w = clew.ones(100, requires_grad=True)
    y = w * 3
    z = dropout("dropout")(y, 0.5, True, True)
    z.sum().backward()
    assert z is y
    assert w.grad.tolist() == [6.0 if v else 0.0 for v in (z != 0).tolist()]


def test_dropout_of_a_view_with_strides():
    x = clew.ones(30, 40).t()
    clew.manual_seed(2)
    y = dropout("dropout")(x, 0.3)
    assert y.shape == x.shape
    assert set(np.round(np.asarray(y.tolist()), 4).ravel()) == {0.0, 1.4286}


@pytest.mark.parametrize("n", [1, 31, 33, 65, 300, 8191, 3 * 8192 + 5, (9 << 20) + 37])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.999999, 1 - 2**-40])
def test_dropout_drops_what_bernoulli_gives(n, p):
    x = clew.randn(n)
    clew.manual_seed(n)
    got = clew.nn.functional.dropout(x, p)
    after = clew.rand(3)
    clew.manual_seed(n)
    kept = clew.empty(n).bernoulli_(1 - p)
    assert clew.equal(got, clew.where(kept > 0, x * (1 / (1 - p)), clew.zeros(())))
    assert clew.equal(after, clew.rand(3))


@pytest.mark.parametrize("n", [5, 64])
@pytest.mark.parametrize("dtype", [clew.float32, clew.float16, clew.float64])
def test_what_is_dropped_does_not_hide_a_nan(n, dtype):
    x = clew.full((n,), float("nan"), dtype=dtype, requires_grad=True)
    y = clew.nn.functional.dropout(x, 0.5)
    y.backward(clew.full((n,), float("inf"), dtype=dtype))
    assert y.isnan().all() and not x.grad.isfinite().any()


def test_dropout_where_the_upper_words_of_a_number_do_not_decide():
    n, p = 1 << 24, 0.3  # eight of them, on average
    clew.manual_seed(1)
    got = clew.nn.functional.dropout(clew.ones(n), p)
    clew.manual_seed(1)
    assert clew.equal(got > 0, clew.rand(n, dtype=clew.float64) < 0.7)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("dropout1d", (40, 30, 5)),
        ("dropout1d", (300, 5)),
        ("dropout2d", (40, 30, 2, 3)),
        ("dropout3d", (40, 30, 2, 1, 3)),
        ("dropout3d", (300, 2, 1, 3)),
    ],
)
def test_feature_dropout_takes_whole_channels(name, shape):
    y = dropout(name)(clew.ones(shape), 0.4)
    assert y.shape == shape
    channels = 1 if len(shape) in (2, 4) and name in ("dropout1d", "dropout3d") else 2
    rows = np.asarray(y.tolist()).reshape(int(np.prod(shape[:channels])), -1)
    assert (rows == rows[:, :1]).all()
    share = (rows[:, 0] != 0).mean()
    assert abs(share - 0.6) < 0.1


def test_alpha_dropout_keeps_mean_and_variance():
    x = clew.randn(N)
    check_moments(dropout("alpha_dropout")(x, 0.3, training=True), 0, 1)
    y = dropout("feature_alpha_dropout")(clew.randn(100, 100, 4), 0.3, training=True)
    values = np.asarray(y.tolist())
    assert abs(values.mean()) < 0.05 and abs(values.var() - 1) < 0.1
    assert dropout("alpha_dropout")(x, 0.3) is x


def test_dropout_draws_in_the_order_of_memory():
    """So that transposed inputs get PyTorch's mask: the transpose of the contiguous one's."""
    for p in (0.3, 0.5):
        clew.manual_seed(0)
        a = clew.nn.functional.dropout(clew.ones(3, 5), p)
        clew.manual_seed(0)
        b = clew.nn.functional.dropout(clew.ones(3, 5).t(), p)
        assert b.t().equal(a) and b.stride() == (1, 5)


@pytest.mark.parametrize("n", [1, 31, 8193, 100_003])
@pytest.mark.parametrize("before", [0, 1])
def test_dropout_draws_the_same_with_and_without_a_gradient(n: int, before: int) -> None:
    """Without one no mask is kept; the numbers, and those drawn next, are the same."""
    seen = []
    for recorded in (False, True):
        clew.manual_seed(3)
        clew.rand(before)
        x = clew.ones(n, requires_grad=recorded)
        y = clew.nn.functional.dropout(x, 0.3)
        seen.append((y.detach().tolist(), clew.rand(3).tolist()))
        if recorded:
            y.sum().backward()
            assert x.grad.equal(y.detach())
    assert seen[0] == seen[1]


def test_the_gradient_is_laid_out_as_what_comes_back():
    for given in (clew.ones(3, 4).t(), clew.ones(2, 3, 4, 5).to(memory_format=clew.channels_last)):
        x = given.detach().requires_grad_()
        y = clew.nn.functional.dropout(x * 1, 0.5)
        back = clew.ones_like(y)
        (g,) = clew.autograd.grad(y, x, back, retain_graph=True)
        assert g.stride() == given.stride() == y.stride()
        (h,) = clew.autograd.grad(y, x, back.contiguous())
        assert h.is_contiguous() and clew.equal(g, h)
