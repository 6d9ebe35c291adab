"""Normalisation where all gradients come from one pass, beside the recorded composition, in every
layout; in-place writes at indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from clew.nn import functional as F


def gradients(y: Any, inputs: list[Any], g: Any, recorded: bool) -> list[np.ndarray]:
    found = clew.autograd.grad(y, inputs, g, create_graph=recorded)
    return [t.detach().numpy() for t in found]


SHAPES = [
    ((5, 3), None),
    ((40, 100), None),
    ((4, 7, 5), None),
    ((6, 16, 3, 3), None),
    ((6, 16, 9, 7), clew.channels_last),
    ((3, 10, 4, 5), clew.channels_last),
    ((3, 70, 2, 5), clew.channels_last),
    ((2, 3, 40, 41), None),
    ((2, 2, 3, 4, 5), clew.channels_last_3d),
]


@pytest.mark.parametrize(("shape", "layout"), SHAPES)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape: tuple[int, ...], layout: Any, training: bool):
    clew.manual_seed(0)
    c = shape[1]
    x = clew.randn(shape) * 3 + 100
    if layout is not None:
        x = x.to(memory_format=layout)
    w, b, g = clew.rand(c) + 0.5, clew.randn(c), clew.randn(shape)
    mean, var = clew.zeros(c) + 99, clew.ones(c)
    for t in (x, w, b):
        t.requires_grad_()
    y = F.batch_norm(x, mean.clone(), var.clone(), w, b, training=training)
    if layout is not None:
        assert y.is_contiguous(memory_format=layout)
    v = x.detach().double().numpy()
    axes = tuple(d for d in range(len(shape)) if d != 1)
    wide = [1, c] + [1] * (len(shape) - 2)
    m = v.mean(axes, keepdims=True) if training else np.full(wide, 99.0)
    s = v.var(axes, keepdims=True) if training else np.ones(wide)
    xhat = (v - m) / np.sqrt(s + 1e-5)
    want = xhat * w.detach().numpy().reshape(wide) + b.detach().numpy().reshape(wide)
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=2e-4, atol=2e-4)
    fused = gradients(y, [x, w, b], g, recorded=False)
    again = F.batch_norm(x, mean.clone(), var.clone(), w, b, training=training)
    for one, two in zip(fused, gradients(again, [x, w, b], g, recorded=True), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


def test_statistics_of_large_means_and_outliers():
    # One pass over the data, but never the difference of large squares.
    x = clew.randn(16, 2, 64) * 0.01 + 1000
    x[0, 1, 0] = 1e4
    w = clew.ones(2)
    y = F.batch_norm(x, None, None, w, training=True, eps=0.0).double().numpy()
    np.testing.assert_allclose(y.std((0, 2)), 1, rtol=1e-4)
    assert np.isnan(F.batch_norm(x * float("inf"), None, None, training=True).numpy()).all()


@pytest.mark.parametrize("shape", [(5, 7), (130, 48), (3, 4, 600)])
@pytest.mark.parametrize("half", [False, True])
def test_layer_norm(shape: tuple[int, ...], half: bool):
    clew.manual_seed(0)
    dtype = clew.bfloat16 if half else clew.float32
    x, g = clew.randn(shape).to(dtype), clew.randn(shape).to(dtype)
    w, b = clew.rand(shape[-1:]).to(dtype), clew.randn(shape[-1:]).to(dtype)
    for t in (x, w, b):
        t.requires_grad_()
    one = clew.autograd.grad(F.layer_norm(x, shape[-1:], w, b), [x, w, b], g)
    two = clew.autograd.grad(F.layer_norm(x, shape[-1:], w, b), [x, w, b], g, create_graph=True)
    for a, c in zip(one, two, strict=True):
        assert a.dtype == c.dtype and a.shape == c.shape
        a, c = a.float().numpy(), c.detach().float().numpy()
        np.testing.assert_allclose(a, c, rtol=2e-2 if half else 1e-5, atol=1e-4)


def test_group_norm():
    clew.manual_seed(0)
    x, g = clew.randn(4, 6, 5, 5), clew.randn(4, 6, 5, 5)
    w, b = clew.rand(6), clew.randn(6)
    for t in (x, w, b):
        t.requires_grad_()
    one = clew.autograd.grad(F.group_norm(x, 3, w, b), [x, w, b], g)
    two = clew.autograd.grad(F.group_norm(x, 3, w, b), [x, w, b], g, create_graph=True)
    for a, c in zip(one, two, strict=True):
        np.testing.assert_allclose(a.numpy(), c.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_indexed_writes_happen_in_place():
    x = clew.zeros(6, 2)
    index = clew.tensor([4, 1, 4])
    source = clew.arange(6.0).reshape(3, 2)
    want = np.zeros((6, 2), np.float32)
    np.add.at(want, [4, 1, 4], source.numpy())
    assert x.index_add_(0, index, source) is x
    np.testing.assert_array_equal(x.numpy(), want)
    part = clew.zeros(6, 4)
    part[:, 1:3].index_add_(0, index, source, alpha=2)
    np.testing.assert_array_equal(part.numpy()[:, 1:3], want * 2)
    # A source that is a part of the tensor is refused.
    y = clew.arange(4.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        y.index_add_(0, clew.tensor([0, 1, 2]), y[1:])
    with pytest.raises(RuntimeError, match="single memory location"):
        y.scatter_(0, clew.tensor([3, 2, 1]), y[:3])
    y.scatter_(0, clew.tensor([1]), 7)
    assert y.tolist() == [0.0, 7.0, 2.0, 3.0]
    zero = clew.tensor(1.0)
    zero.index_add_(0, clew.tensor(0), clew.tensor(2.0))
    assert zero.item() == 3.0


def test_indexed_writes_in_place_are_recorded():
    leaf, source = clew.ones(4, requires_grad=True), clew.ones(3, requires_grad=True)
    x = leaf * 2
    version = x._version
    x.index_add_(0, clew.tensor([1, 1, 2]), source, alpha=3)
    assert x._version == version + 1
    x.scatter_(0, clew.tensor([0]), 5.0)
    x.scatter_add_(0, clew.tensor([3, 3]), source)
    (x * x.detach()).sum().backward()
    assert x.tolist() == [5.0, 8.0, 5.0, 4.0]
    assert leaf.grad.tolist() == [0.0, 16.0, 10.0, 8.0]
    assert source.grad.tolist() == [28.0, 28.0, 15.0]
    with pytest.raises(RuntimeError, match="index_add_|index_put_"):
        leaf.index_add_(0, clew.tensor([0]), clew.ones(1))
    with pytest.raises(RuntimeError, match="out of bounds"):
        clew.zeros(2).scatter_(0, clew.tensor([2]), 1.0)
