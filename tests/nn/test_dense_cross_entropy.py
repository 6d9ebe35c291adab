"""Cross-entropy of a class for each place of images, against its definition."""

from __future__ import annotations

import pytest

import clew
import clew.nn.functional as F

SIZES = [(2, 3, 8, 8), (1, 21, 16, 16), (3, 2, 5, 27), (2, 5, 300), (1, 70, 1, 3), (2, 4, 128)]


def by_definition(x, t, w, ignore, smoothing, reduction):
    logp = x - x.exp().sum(1, keepdim=True).log()
    classes = x.shape[1]
    one = F.one_hot(t.clamp(0, classes - 1), classes).movedim(-1, 1).to(x.dtype)
    kept = (t != ignore).to(x.dtype)
    shape = (1, classes, *(1,) * (x.ndim - 2))
    w = (clew.ones(classes, dtype=x.dtype) if w is None else w).reshape(shape)
    own = -(one * w * logp).sum(1)
    every = -(w * logp).sum(1)
    each = kept * ((1 - smoothing) * own + smoothing / classes * every)
    if reduction == "none":
        return each
    return each.sum() / ((one * w).sum(1) * kept).sum() if reduction == "mean" else each.sum()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_values_and_slopes(size, weighted, smoothing, reduction):
    x = clew.randn(size, dtype=clew.float64) * 3
    t = clew.randint(0, size[1], (size[0], *size[2:]))
    t[clew.rand(t.shape) < 0.2] = -7
    w = clew.rand(size[1], dtype=clew.float64) + 0.1 if weighted else None
    args = dict(ignore_index=-7, reduction=reduction, label_smoothing=smoothing)
    a = x.clone().requires_grad_()
    want = by_definition(a, t, w, -7, smoothing, reduction)
    up = clew.randn_like(want)
    (slope,) = clew.autograd.grad(want, a, up)
    for dtype, bound in ((clew.float64, 1e-9), (clew.float32, 2e-5)):
        b = x.to(dtype).requires_grad_()
        got = F.cross_entropy(b, t, None if w is None else w.to(dtype), **args)
        clew.testing.assert_close(got.double(), want, rtol=bound, atol=bound)
        (mine,) = clew.autograd.grad(got, b, up.to(dtype))
        clew.testing.assert_close(mine.double(), slope, rtol=bound * 10, atol=bound * 10)
    if len(size) == 4:
        last = x.contiguous(memory_format=clew.channels_last)
        clew.testing.assert_close(F.cross_entropy(last, t, w, **args), want)


def test_places_that_are_ignored_take_nothing():
    x = clew.randn(1, 3, 4, 4)
    x[0, :, 1, 1] = float("nan")
    x[0, 0, 2, 2] = float("inf")
    x.requires_grad_()
    t = clew.zeros(1, 4, 4, dtype=clew.int64)
    t[0, 1, 1] = t[0, 2, 2] = -100
    for smoothing in (0.0, 0.1):
        loss = F.cross_entropy(x, t, label_smoothing=smoothing)
        (g,) = clew.autograd.grad(loss, x)
        assert loss.isfinite() and g.isfinite().all()
        assert not g[0, :, 1, 1].any() and not g[0, :, 2, 2].any()


def test_large_scores_keep_their_digits():
    x = clew.randn(2, 6, 9, 9, dtype=clew.float64)
    shifted = (x + 5000).float().requires_grad_()
    t = clew.randint(0, 6, (2, 9, 9))
    exact = shifted.detach().double().requires_grad_()
    wanted = F.cross_entropy(exact, t)
    got = F.cross_entropy(shifted, t)
    clew.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-6)
    (a,), (b,) = clew.autograd.grad(got, shifted), clew.autograd.grad(wanted, exact)
    clew.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-8)


def test_wrong_targets_raise():
    for wrong in (3, -1, 2**40):
        t = clew.zeros(2, 40, 40, dtype=clew.int64)
        t[1, 39, 38] = wrong
        for loss in (F.cross_entropy, F.nll_loss):
            with pytest.raises(IndexError, match=f"target {wrong} is out of bounds for 3"):
                loss(clew.randn(2, 3, 40, 40), t)


def test_without_classes_or_places():
    t = clew.full((2, 3, 3), -100)
    assert F.cross_entropy(clew.ones(2, 0, 3, 3), t, reduction="sum") == 0
    assert F.cross_entropy(clew.ones(2, 4, 0, 3), t[:, :0], reduction="none").shape == (2, 0, 3)
    assert F.nll_loss(clew.ones(2, 0, 3, 3), t, reduction="sum") == 0


def test_one_thread_and_two_agree():
    x, t = clew.randn(4, 7, 70, 70), clew.randint(0, 7, (4, 70, 70))
    before, seen = clew.get_num_threads(), []
    try:
        for threads in (1, 2):
            clew.set_num_threads(threads)
            a = x.clone().requires_grad_()
            losses = [F.cross_entropy(a, t), F.nll_loss(a, t), F.cross_entropy(a, t, a[0, :, 0, 0])]
            seen.append([*losses, *clew.autograd.grad(losses[0], a)])
    finally:
        clew.set_num_threads(before)
    assert all(clew.equal(a, b) for a, b in zip(*seen))
