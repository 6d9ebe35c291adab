"""layer_norm and rms_norm of rows that fit into registers, of every length and number."""

from __future__ import annotations

import pytest

import clew

F = clew.nn.functional

LENGTHS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 65, 100, 127, 128, 129, 200]


def norm(kind, x, n, w, b):
    return F.layer_norm(x, (n,), w, b, 1e-5) if kind == "layer" else F.rms_norm(x, (n,), w, 1e-5)


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("n", LENGTHS)
def test_as_float64(n, kind, weights):
    clew.manual_seed(n)
    for rows in (1, 2, 7, 8, 9, 16, 70, 131):
        leaves = [clew.randn(rows, n) * 3 + 5]
        leaves += [clew.randn(n), clew.randn(n)] if weights else []
        found = []
        seed = clew.randn(rows, n)
        for dtype in (clew.float64, clew.float32):
            own = [t.to(dtype).requires_grad_() for t in leaves]
            y = norm(kind, own[0], n, *(own[1:] or (None, None)))
            used = own if kind == "layer" else own[:2]
            found.append([y.detach(), *clew.autograd.grad(y, used, seed.to(dtype))])
        for want, got in zip(*found):
            # A row of one number has no gradient, two near each other differ in few digits.
            bound = 1e-3 if n <= 2 else 1e-5
            assert (got - want).abs().max() <= bound * max(1.0, float(want.abs().max()))


@pytest.mark.parametrize("n", [5, 16, 50, 128])
def test_large_means_do_not_cancel(n):
    clew.manual_seed(0)
    x = clew.randn(40, n, dtype=clew.float64) + 3000
    x = x.float()
    exact = F.layer_norm(x.double(), (n,))
    assert (F.layer_norm(x, (n,)) - exact).abs().max() < 2e-4


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("n", [3, 16, 40])
def test_rows_do_not_touch_each_other(n, kind):
    clew.manual_seed(0)
    x = clew.randn(37, n)
    w, b = clew.randn(n), clew.randn(n)
    whole = norm(kind, x, n, w, b)
    for i in range(37):  # the same bits wherever the row stands
        assert clew.equal(norm(kind, x[i : i + 1], n, w, b)[0], whole[i])
    for value in (float("nan"), float("inf"), -float("inf")):
        spoilt = x.clone()
        spoilt[20, n - 1] = value
        y = norm(kind, spoilt, n, w, b)
        assert not y[20].isfinite().any() or kind == "rms"
        y[20] = whole[20]
        assert clew.equal(y, whole)


def test_rows_of_equal_numbers_have_no_spread():
    x = clew.full((9, 20), 0.1)
    assert (F.layer_norm(x, (20,)) == 0).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_give_the_same_bits(threads):
    clew.manual_seed(0)
    x, w = clew.randn(6000, 24, requires_grad=True), clew.randn(24, requires_grad=True)
    before = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:
        y = F.layer_norm(x, (24,), w, w)
        first = F.layer_norm(x[:100], (24,), w, w)
        dx, dw = clew.autograd.grad(y, [x, w], y.detach())
    finally:
        clew.set_num_threads(before)
    assert clew.equal(y[:100], first)
    exact = [t.detach().double().requires_grad_() for t in (x, w)]
    wide = F.layer_norm(exact[0], (24,), exact[1], exact[1])
    want = clew.autograd.grad(wide, exact, y.detach().double())
    for got, right in zip((dx, dw), want):
        assert (got - right).abs().max() <= 1e-5 * right.abs().max()
