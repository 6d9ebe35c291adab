"""Attention across the blocks of its kernel, and its two gradients against each other."""

from __future__ import annotations

import numpy as np
import pytest
from numeric import check_gradients, normal

import clew

attend = clew._C.ops.scaled_dot_product_attention


def reference(q, k, v, mask=None, causal=False, scale=None):
    s = (q @ np.swapaxes(k, -1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        mask = np.tril(np.ones(s.shape[-2:], bool))
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return (e / np.where(total == 0, 1, total)) @ v


def masks(queries, keys):
    some = np.random.default_rng(3).random((queries, keys)) < 0.5
    some[1] = False
    some[2, : keys // 2] = False
    added = np.where(some, normal(9, queries, keys), -np.inf)
    return {
        "none": None,
        "bool": some,
        "added": added,
        "row": some[:1],
        "heads": np.stack([some, ~some]),
    }


@pytest.mark.parametrize(
    "queries,keys", [(1, 1), (5, 7), (64, 512), (130, 513), (260, 1100), (505, 600)]
)
@pytest.mark.parametrize("kind", ["none", "bool", "added", "row", "heads", "causal"])
def test_blocks_join(queries, keys, kind):
    if kind in ("bool", "added", "heads", "row") and queries < 3:
        pytest.skip("the masks need three queries")
    q, k, v = normal(1, 2, 2, queries, 8), normal(2, 2, 2, keys, 8), normal(3, 2, 2, keys, 5)
    mask = None if kind in ("none", "causal") else masks(queries, keys)[kind]
    tensors = [clew.tensor(a, requires_grad=True) for a in (q, k, v)]
    m = None if mask is None else clew.tensor(mask)
    out = attend(*tensors, m, is_causal=kind == "causal")
    expected = reference(q, k, v, mask, kind == "causal")
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    g = clew.tensor(normal(4, *expected.shape))
    fused = clew.autograd.grad(out, tensors, g, retain_graph=True)
    written = clew.autograd.grad(out, tensors, g, create_graph=True)
    for a, b in zip(fused, written, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-8, atol=1e-10)


def test_float32_and_strided_operands():
    q, k, v = (normal(s, 2, 70, 3, 16).astype("float32") for s in (1, 2, 3))
    swapped = [clew.tensor(a).transpose(1, 2) for a in (q, k, v)]
    expected = reference(*(a.swapaxes(1, 2).astype("float64") for a in (q, k, v)))
    np.testing.assert_allclose(attend(*swapped).numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width", [3, 16, 40, 100])
@pytest.mark.parametrize("causal", [False, True])
def test_float32_gradients(width, causal):
    arrays = [normal(s, 2, 150, 3, width) for s in (1, 2, 3)]
    g = normal(4, 2, 3, 150, width)
    grads = []
    for dtype in (clew.float32, clew.float64):
        # Heads cut out of rows, as a model has them; the gradient comes in rows too.
        leaves = [clew.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]
        out = attend(*(x.transpose(1, 2) for x in leaves), is_causal=causal)
        grads.append(clew.autograd.grad(out, leaves, clew.tensor(g, dtype=dtype)))
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=2e-5)


def test_heads_merge_without_a_copy():
    q = clew.tensor(normal(1, 2, 5, 3, 8), requires_grad=True).transpose(1, 2)
    out = attend(q, q, q)
    assert out.stride() == (120, 8, 24, 1)
    assert out.transpose(1, 2).is_contiguous()
    grads = clew.autograd.grad(attend(q, q.clone(), q.clone()).sum(), q)
    assert grads[0].shape == q.shape


def test_the_result_lies_in_order_where_the_queries_do():
    q, x = clew.ones(2, 3, 5, 8), clew.ones(2, 5, 3, 8).transpose(1, 2)
    assert attend(q, x, x).is_contiguous() and attend(q, q, q, is_causal=True).view(6, 5, 8).sum()
    assert not attend(x, q, q).is_contiguous()


@pytest.mark.parametrize("causal", [False, True])
def test_derivatives(causal):
    arrays = [normal(1, 2, 4, 3), normal(2, 2, 5, 3), normal(3, 2, 5, 2)]
    check_gradients(lambda *xs: attend(*xs, is_causal=causal), *arrays)
    check_gradients(attend, *arrays, normal(4, 4, 5))


def test_grouped_heads():
    q, k, v = normal(1, 2, 6, 3, 4), normal(2, 2, 3, 5, 4), normal(3, 2, 3, 5, 4)
    expected = reference(q, k.repeat(2, 1), v.repeat(2, 1))
    got = attend(*map(clew.tensor, (q, k, v)), enable_gqa=True)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10)
    check_gradients(lambda *xs: attend(*xs, enable_gqa=True), q, k, v)
    with pytest.raises(RuntimeError, match="multiple"):
        attend(clew.ones(4, 2, 2), clew.ones(3, 2, 2), clew.ones(3, 2, 2), enable_gqa=True)


def test_dead_queries_get_zero_and_no_nan():
    x = [clew.tensor(normal(s, 3, 4), requires_grad=True) for s in (1, 2, 3)]
    mask = clew.zeros(3, 3, dtype=clew.bool)
    for dropout in (0.0, 0.5):
        out = attend(*x, mask, dropout)
        assert (out.detach().numpy() == 0).all()
        for g in clew.autograd.grad(out.sum(), x):
            assert (g.numpy() == 0).all()


def test_dropout_scales_what_it_keeps():
    clew.manual_seed(1)
    q, k = clew.zeros(1, 2), clew.zeros(4000, 2)
    out = attend(q, k, clew.ones(4000, 1), None, 0.25)
    assert abs(float(out) - 1) < 0.1
    assert float(attend(q, k, clew.ones(4000, 1), None, 1.0)) == 0


def test_broadcast_and_empty_operands():
    q, k, v = normal(1, 2, 1, 3, 4), normal(2, 1, 5, 6, 4), normal(3, 1, 5, 6, 2)
    got = attend(*map(clew.tensor, (q, k, v)))
    np.testing.assert_allclose(got.numpy(), reference(q, k, v), rtol=1e-10)
    assert attend(clew.ones(0, 4), clew.ones(3, 4), clew.ones(3, 2)).shape == (0, 2)


@pytest.mark.parametrize("dtype", [clew.bfloat16, clew.float16])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"mask": True}])
def test_narrow_dtypes_keep_the_digits_of_large_scores(dtype, options):
    clew.manual_seed(0)
    q, k, v = (clew.empty(4, 6, 8).uniform_(-9, 9).to(dtype).requires_grad_() for _ in range(3))
    options = dict(options)
    mask = None
    if options.pop("mask", False):
        mask = clew.empty(6, 6).uniform_(-9, 9).to(dtype)
    f = clew.nn.functional.scaled_dot_product_attention
    got = f(q, k, v, mask, **options)
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    want = f(*wide, None if mask is None else mask.double(), **options)
    assert got.dtype is dtype
    step = clew.finfo(dtype).eps
    assert (got.double() - want).abs().max() <= 9 * step
    seed = clew.ones(4, 6, 8)
    mine = clew.autograd.grad(got, (q, k, v), seed.to(dtype))
    exact = clew.autograd.grad(want, wide, seed.double())
    for a, b in zip(mine, exact):
        assert a.dtype is dtype
        assert (a.double() - b).abs().max() <= 4 * step * b.abs().max() + 1e-2


@pytest.mark.parametrize("kind", ["none", "bool", "added", "causal"])
@pytest.mark.parametrize("keys", [5, 700])
def test_weights_of_large_scores_sum_to_one_in_backward_too(kind, keys):
    r = np.random.default_rng(0)
    q, k = r.normal(size=(2, 1, 1, keys, 8)).astype(np.float32) * 30
    v, g = clew.ones(1, 1, keys, 3), clew.ones(1, 1, 1, 3)
    mask = {"bool": r.random((keys, keys)) < 0.5, "added": r.normal(size=(keys, keys)) * 900}
    m = clew.tensor(mask[kind]) if kind in mask else None
    if kind == "bool":
        m[:, 0] = True
    elif kind == "added":
        m = m.float()
    for row in range(0, keys, 1 + keys // 20):
        last = row + 1 if kind == "causal" else keys  # one query sees these keys
        values = v[:, :, :last].clone().requires_grad_()
        out = attend(
            clew.tensor(q[:, :, row : row + 1]),
            clew.tensor(k[:, :, :last]),
            values,
            None if m is None else m[row : row + 1],
        )
        out.backward(g)
        # One logarithm of the sum, of a size of some thousands, would be off by 1e-4.
        np.testing.assert_allclose(values.grad.sum(-2).numpy(), 1, rtol=2e-6)
