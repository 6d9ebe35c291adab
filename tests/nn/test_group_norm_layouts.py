"""Group normalisation of images whose channels lie last gives what dense images give."""

from __future__ import annotations

import pytest

import clew
import clew.nn.functional as F

SHAPES = [
    (2, 6, 5, 4), (1, 64, 9, 9), (3, 256, 7, 7), (5, 12, 1, 8), (2, 130, 3, 3), (2, 8, 3, 4, 5),
    (0, 4, 3, 3),
]  # fmt: skip


def last(x):
    return x.contiguous(memory_format=clew.channels_last if x.ndim == 4 else clew.channels_last_3d)


def made(x, w, b, groups, up):
    x = x.detach().requires_grad_()
    y = F.group_norm(x, groups, w, b, 1e-5)
    leaves = [t for t in (x, w, b) if t is not None]
    return [y, *clew.autograd.grad(y, leaves, up)]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16])
def test_as_dense_images(shape, groups, affine, dtype):
    channels = shape[1]
    groups = groups or channels
    x, up = (clew.randn(shape, dtype=dtype) + 3 for _ in range(2))
    w = b = None
    if affine:
        w, b = (clew.randn(channels, dtype=dtype, requires_grad=True) for _ in range(2))
    bound = {"rtol": 4e-2, "atol": 4e-2} if dtype is clew.bfloat16 else {"rtol": 2e-4, "atol": 2e-4}
    wanted = made(x, w, b, groups, up)
    for a, g in ((last(x), last(up)), (last(x), up), (x, last(up))):
        got = made(a, w, b, groups, g)
        for one, other in zip(wanted, got):
            clew.testing.assert_close(other, one, **bound)
        assert not x.numel() or got[0].stride() == got[1].stride() == a.stride()


def test_frozen_inputs_and_weights():
    x, w, b = last(clew.randn(3, 8, 5, 5)), clew.randn(8), clew.randn(8)
    up = last(clew.randn(3, 8, 5, 5))
    for free in ("x", "w", "wb"):
        slopes = []
        for t in (x, x.contiguous()):
            args = {"x": t.detach(), "w": w.detach(), "b": b.detach()}
            leaves = [args[name].requires_grad_() for name in free]
            y = F.group_norm(args["x"], 4, args["w"], args["b"])
            slopes.append(clew.autograd.grad(y, leaves, up))
        for one, other in zip(*slopes):
            clew.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_derivatives(groups):
    x = last(clew.randn(2, 6, 3, 2, dtype=clew.float64)).requires_grad_()
    w, b = (clew.randn(6, dtype=clew.float64, requires_grad=True) for _ in range(2))
    f = lambda x, w, b: F.group_norm(x, groups, w, b)
    assert clew.autograd.gradcheck(f, (x, w, b))
    assert clew.autograd.gradgradcheck(f, (x, w, b))


def test_large_means_keep_their_digits():
    x = last(clew.randn(2, 64, 20, 20) + 1000)
    want = F.group_norm(x.double().contiguous(), 8)
    clew.testing.assert_close(F.group_norm(x, 8).double(), want, rtol=1e-3, atol=1e-3)


def test_samples_of_vmap():
    x = clew.randn(4, 3, 6, 5, 5)
    w, b = clew.randn(6), clew.randn(6)
    want = clew.stack([F.group_norm(t, 3, w, b) for t in x])
    got = clew.vmap(lambda t: F.group_norm(last(t), 3, w, b))(x)
    clew.testing.assert_close(got, want)


def test_one_thread_and_two_agree():
    before, seen = clew.get_num_threads(), []
    x, up = last(clew.randn(1, 48, 40, 40)), last(clew.randn(1, 48, 40, 40))
    w, b = (clew.randn(48, requires_grad=True) for _ in range(2))
    try:
        for threads in (1, 2):
            clew.set_num_threads(threads)
            seen.append(made(x, w, b, 4, up))
    finally:
        clew.set_num_threads(before)
    for one, other in zip(*seen):
        clew.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
