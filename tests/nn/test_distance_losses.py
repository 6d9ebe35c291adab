"""Losses of differences between numbers and between samples: values, derivatives, edges."""

from __future__ import annotations

import numpy as np
import pytest
from loss_formulas import W, X, Y, close, reduced, rng, t

import clew
from clew.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_of_differences(how):
    d = X - Y
    close(F.mse_loss(t(X), t(Y), reduction=how), reduced(d**2, how))
    close(F.l1_loss(t(X), t(Y), reduction=how), reduced(np.abs(d), how))
    for beta in (1.0, 0.3):
        want = np.where(np.abs(d) < beta, d**2 / 2 / beta, np.abs(d) - beta / 2)
        close(F.smooth_l1_loss(t(X), t(Y), reduction=how, beta=beta), reduced(want, how))
        want = np.where(np.abs(d) < beta, d**2 / 2, beta * (np.abs(d) - beta / 2))
        close(F.huber_loss(t(X), t(Y), how, beta), reduced(want, how))
    close(F.smooth_l1_loss(t(X), t(Y), reduction=how, beta=0), reduced(np.abs(d), how))
    want = d**2 * W
    want = want.sum() / W.sum() if how == "mean" else reduced(want, how)
    close(F.mse_loss(t(X), t(Y), reduction=how, weight=t(W)), want)


DISTANCES = {
    "mse": F.mse_loss,
    "smooth_l1": lambda x, y, **how: F.smooth_l1_loss(x, y, beta=0.6, **how),
    "huber": lambda x, y, **how: F.huber_loss(x, y, delta=0.6, **how),
}


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", DISTANCES)
def test_derivatives_of_distances(name, how):
    def f(x, y):
        return DISTANCES[name](x, y, reduction=how)

    leaves = [t(v).requires_grad_() for v in (X, Y)]
    row = t(Y[0]).requires_grad_()
    for g in (f, lambda x, y: f(x.t(), y.t()), lambda x, y: f(x, y.t().contiguous().t())):
        clew.autograd.gradcheck(g, leaves, check_forward_ad=True)
        clew.autograd.gradgradcheck(g, leaves)
    clew.autograd.gradcheck(f, [leaves[0], row], check_forward_ad=True)
    clew.autograd.gradgradcheck(f, [leaves[0], row])
    for i in (0, 1):  # where only one of them wants a gradient
        args = [leaf if k == i else leaf.detach() for k, leaf in enumerate(leaves)]
        clew.autograd.gradcheck(f, args, check_forward_ad=True)
        clew.autograd.gradgradcheck(f, args)
    dx = clew.autograd.grad(f(*leaves).sum(), leaves, create_graph=True)
    for plain, recorded in zip(clew.autograd.grad(f(*leaves).sum(), leaves), dx, strict=True):
        close(plain, recorded.detach().numpy())


@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("name", DISTANCES)
def test_distances_of_samples(name, how):
    def f(x, y):
        return DISTANCES[name](x, y, reduction=how)

    x, y = t(rng.normal(size=(5, 4, 3))), t(rng.normal(size=(4, 3)))
    want = [f(sample, y).item() for sample in x]
    close(clew.vmap(f, in_dims=(0, None))(x, y), want)
    close(clew.vmap(f, in_dims=(None, 0))(y, x), want)
    got = clew.vmap(clew.func.grad(f), in_dims=(0, None))(x, y)
    for sample, g in zip(x, got, strict=True):
        leaf = sample.clone().requires_grad_()
        f(leaf, y).backward()
        close(g, leaf.grad.numpy())
    close(clew.vmap(f)(x[:, 0, 0], x[:, 0, 1]), [f(s[0, 0], s[0, 1]).item() for s in x])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", DISTANCES)
def test_slopes_that_are_not_numbers(name, recorded):
    x = t([1.0, np.nan]).requires_grad_()
    loss = DISTANCES[name](x, t([0.0, 0.0]), reduction="sum")
    (slope,) = clew.autograd.grad(loss, x, create_graph=recorded)
    assert np.isnan(slope.detach().numpy()).tolist() == [False, True]


@pytest.mark.parametrize("recorded", [False, True])
def test_slopes_of_halves_do_not_overflow(recorded):
    x = clew.tensor([40000.0], dtype=clew.float16, requires_grad=True)
    g = clew.tensor([0.1], dtype=clew.float16)
    loss = F.mse_loss(x, clew.zeros_like(x), reduction="none")
    assert clew.autograd.grad(loss, x, g, create_graph=recorded)[0].item() == 8000
    n = 70000
    many = clew.ones(n, dtype=clew.float16, requires_grad=True)
    loss = F.mse_loss(many, clew.zeros_like(many)) * 4096
    (slope,) = clew.autograd.grad(loss, many, create_graph=recorded)
    np.testing.assert_allclose(slope.detach().float().numpy(), 2 * 4096 / n, rtol=2e-3)


@pytest.mark.parametrize("dtype", [clew.float16, clew.float32, clew.float64])
@pytest.mark.parametrize("beta", [1e-39, 2e-39, 1e-300, 5e-324])
def test_smooth_l1_loss_of_almost_no_square(dtype, beta):
    x = clew.tensor([0.0, 2.0, -3.0], dtype=dtype, requires_grad=True)
    for how, want in (("sum", 5), ("mean", 5 / 3)):
        loss = F.smooth_l1_loss(x, clew.zeros_like(x), reduction=how, beta=beta)
        assert loss.item() == pytest.approx(want, rel=1e-3)
    for recorded in (False, True):
        loss = F.smooth_l1_loss(x, clew.zeros_like(x), reduction="sum", beta=beta)
        (slope,) = clew.autograd.grad(loss, x, create_graph=recorded)
        assert slope.tolist() == [0, 1, -1]


def test_huber_loss_of_large_numbers():
    zero = clew.zeros(1)
    assert F.huber_loss(clew.tensor([1.5e20]), zero, delta=1e20).item() == np.inf
    assert F.huber_loss(clew.tensor([np.inf]), zero, delta=1e30).item() == np.inf
    got = F.huber_loss(clew.tensor([1e10]), zero, delta=10**28)
    assert got.item() == pytest.approx(5e19)
    assert F.huber_loss(zero + 2, zero, delta=clew.tensor(1.0)).item() == 1.5


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_weights_of_huber_loss(how):
    d = np.abs(X - Y)
    want = np.where(d < 0.5, d**2 / 2, 0.5 * (d - 0.25)) * W
    close(F.huber_loss(t(X), t(Y), how, 0.5, t(W)), reduced(want, how))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_have_the_shape_of_the_input(name):
    for weight in (clew.ones(3), clew.ones(1, 2, 3)):
        with pytest.raises(ValueError, match="weight must have input's shape"):
            getattr(F, name)(clew.ones(2, 3), clew.zeros(2, 3), weight=weight)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_one_target_for_all(name):
    for dtype in (clew.float64, clew.float32):
        target = clew.tensor(1.0, dtype=dtype, requires_grad=True)
        with pytest.warns(UserWarning, match="broadcast"):
            loss = getattr(F, name)(clew.full((2, 3), 3.0), target)
        assert loss.dtype == (clew.float32 if name == "huber_loss" else dtype)
        loss.backward()
        assert target.grad.shape == () and target.grad.item() < 0


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", DISTANCES)
def test_distances_that_are_not_numbers(name, how):
    x = t([1.0, np.nan, np.inf, 2.0]).requires_grad_()
    y = t([1.0, 0.0, 0.0, -np.inf])
    loss = DISTANCES[name](x, y, reduction=how)
    if how == "none":
        np.testing.assert_array_equal(loss.detach().numpy(), [0, np.nan, np.inf, np.inf])
    else:
        assert loss.isnan()
    loss.sum().backward()
    assert x.grad[0] == 0 and x.grad[1].isnan() and (x.grad[2:] > 0).all()


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16, clew.float16])
@pytest.mark.parametrize("n", [0, 1, 2048, 32769, 100_003])
def test_distances_of_every_size(name, dtype, n):
    x, y = (t(rng.normal(size=n)).to(dtype) for _ in range(2))
    each = DISTANCES[name](x.double(), y.double(), reduction="none").numpy()
    close_to = {8: 1e-13, 4: 1e-6, 2: 5e-3}[dtype.itemsize]
    got = DISTANCES[name](x, y, reduction="mean")
    assert got.dtype == dtype
    with np.errstate(all="ignore"):
        want = each.mean() if n else np.nan
    np.testing.assert_allclose(got.double().item(), want, rtol=close_to)


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss])
def test_second_slopes_beside_truth_values(loss):
    x = clew.tensor([0.25, -0.5, 3.0], requires_grad=True)
    mask = clew.tensor([True, False, True])
    grads = []
    for target in (mask, mask.float()):
        (g,) = clew.autograd.grad(loss(x, target), x, create_graph=True)
        (gg,) = clew.autograd.grad(g.sin().sum(), x)
        grads.append((g.tolist(), gg.tolist()))
        if loss is not F.huber_loss:  # it takes no truth values as its input
            (g,) = clew.autograd.grad(loss(target, x), x, create_graph=True)
            grads[-1] += (g.tolist(),)
    assert grads[0] == grads[1]
