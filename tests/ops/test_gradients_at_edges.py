"""Gradients where a formula alone would give nan or inf, and of complex numbers in all operands."""

from __future__ import annotations

import math

import numpy as np
import pytest

import clew
from clew.autograd import gradcheck, gradgradcheck


def leaf(values, dtype=clew.float64):
    return clew.tensor(values, dtype=dtype, requires_grad=True)


def complex_leaf(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return clew.tensor(rng.normal(size=shape) + 1j * rng.normal(size=shape), requires_grad=True)


def slopes(f, *inputs):
    return [g.tolist() for g in clew.autograd.grad(f(*inputs).sum(), inputs)]


def test_exponent_zero_of_zero():
    base, exponent = leaf([0.0, 0.0, 2.0]), leaf([0.0, 2.0, 0.0])
    assert slopes(clew.pow, base, exponent) == [[0.0, 0.0, 0.0], [0.0, 0.0, math.log(2)]]


@pytest.mark.parametrize("f", [clew.xlogy, clew.special.xlog1py])
def test_zero_times_the_logarithm_of_nan(f):
    (slope,) = clew.autograd.grad(f(x := leaf([0.0]), clew.tensor([math.nan])), x)
    assert slope.isnan().all()


def test_signs_of_both_operands_of_copysign():
    x, y = leaf([-2.0, 3.0, 0.0, -1.0]), clew.tensor([1.0, -1.0, 1.0, -1.0])
    assert slopes(lambda x: clew.copysign(x, y), x) == [[-1.0, -1.0, 0.0, 1.0]]


def test_lines_between_complex_points():
    assert gradcheck(clew.lerp, (complex_leaf(3), complex_leaf(3, seed=1), complex_leaf(3, seed=2)))


def test_softsign_of_complex_numbers():
    assert gradcheck(clew.nn.functional.softsign, (complex_leaf(4),))


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_of_complex_numbers_with_zeros(zeros):
    x = complex_leaf(4).detach()
    x[1 : 1 + zeros] = 0
    x.requires_grad_()
    for f in (lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.cumprod(0)):
        assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_running_sums_of_nothing():
    x = leaf([-math.inf, -math.inf, 0.0, 1.0])
    (g,) = clew.autograd.grad(clew.logcumsumexp(x, 0)[2:].sum(), x)
    share = 1 / (1 + math.e)
    np.testing.assert_allclose(g.numpy(), [0, 0, 1 + share, 1 - share], rtol=1e-12)


def test_equal_operands_share_the_gradient():
    for f in (clew.maximum, clew.minimum):
        assert slopes(f, leaf([1.0]), leaf([1.0])) == [[0.5], [0.5]]


def test_extremes_that_avoid_nan():
    for f in (clew.fmax, clew.fmin):
        assert slopes(f, leaf([1.0, math.nan]), leaf([math.nan, 1.0])) == [[1.0, 0.0], [0.0, 1.0]]


def test_bounds_that_are_met():
    for bound in ("min", "max"):
        got = slopes(
            lambda x, y, bound=bound: clew.clamp(x, **{bound: y}), leaf([1.0]), leaf([1.0])
        )
        assert got == [[1.0], [0.0]]


def test_angle_of_complex_zero():
    z = clew.tensor([0j, 2j], requires_grad=True)
    assert slopes(clew.angle, z) == [[0j, -0.5 + 0j]]


def test_products_with_one_complex_vector():
    assert gradcheck(clew.nn.functional.linear, (complex_leaf(2, 3), complex_leaf(3, seed=1)))


@pytest.mark.parametrize("order", [2.5, 3.0, 1.5])
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.complex64])
def test_norms_beside_which_elements_vanish(order, dtype):
    def slope(values):
        x = clew.tensor(values, dtype=clew.float64).to(dtype).requires_grad_()
        (g,) = clew.autograd.grad(clew.linalg.vector_norm(x, order), x)
        return g

    assert slope([1.0, math.inf, -2.0, 0.0])[::2].tolist() == [0.0, 0.0]
    assert slope([1.0, math.inf, -2.0, 0.0])[1].isnan()
    tiny, large = (1e-300, 1e100) if dtype is clew.float64 else (1e-40, 1e12)
    clew.testing.assert_close(slope([tiny, large, 0.0]), clew.tensor([0, 1, 0]).to(dtype))


def test_roots_of_sums_beside_which_elements_vanish():
    x = leaf([1.0, math.inf, -2.0])
    (g,) = clew.autograd.grad(clew.linalg.vector_norm(x, 0.5), x)
    assert g[::2].tolist() == [math.inf, -math.inf]
    assert g[1].isnan()


def test_variance_of_fewer_than_the_correction():
    assert slopes(lambda x: clew.var(x, 0, correction=3), leaf([1.0, 2.0])) == [[1.0, -1.0]]


def test_cat_keeps_the_history_of_vectors_without_elements():
    x, y = clew.ones(0, requires_grad=True), clew.ones(2)
    joined = clew.cat([x, y])
    assert joined.requires_grad and joined.tolist() == [1.0, 1.0]
    joined.sum().backward()
    assert x.grad is not None and x.grad.shape == (0,)
    assert clew.cat([x.long(), clew.ones(2, dtype=clew.int32)]).dtype is clew.int64
    assert clew.cat([clew.ones(0), clew.ones(2, 3)], dim=1).shape == (2, 3)
