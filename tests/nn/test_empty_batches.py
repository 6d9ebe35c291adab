"""Layers and functions of an empty batch: empty results, and gradients of zeros."""

from __future__ import annotations

import pytest

import clew
from clew import nn
from clew.nn import functional as F


def attention(**options):
    return nn.MultiheadAttention(4, 2, **options)


def encoder(**options):
    return nn.TransformerEncoderLayer(4, 2, 8, **options)


def decoder(**options):
    return nn.TransformerDecoderLayer(4, 2, 8, **options)


# make, shapes of the inputs, shape of the (first) result
MODULES = {
    "attention": (lambda: attention(batch_first=True), [(0, 5, 4)] * 3, (0, 5, 4)),
    "attention, batch second": (attention, [(5, 0, 4)] * 3, (5, 0, 4)),
    "attention, no targets": (
        lambda: attention(batch_first=True),
        [(2, 0, 4), (2, 3, 4), (2, 3, 4)],
        (2, 0, 4),
    ),
    "attention, one sample": (attention, [(0, 4)] * 3, (0, 4)),
    "attention, added keys": (
        lambda: attention(add_bias_kv=True, add_zero_attn=True),
        [(5, 0, 4)] * 3,
        (5, 0, 4),
    ),
    "encoder": (lambda: encoder(batch_first=True), [(0, 5, 4)], (0, 5, 4)),
    "encoder, eval": (lambda: encoder(batch_first=True).eval(), [(0, 5, 4)], (0, 5, 4)),
    "encoder, no tokens": (encoder, [(0, 2, 4)], (0, 2, 4)),
    "decoder": (lambda: decoder(batch_first=True), [(0, 5, 4), (0, 3, 4)], (0, 5, 4)),
    "transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8), [(5, 0, 4), (3, 0, 4)], (3, 0, 4)),
    "batch_norm": (lambda: nn.BatchNorm2d(3), [(0, 3, 4, 4)], (0, 3, 4, 4)),
    "instance_norm": (lambda: nn.InstanceNorm1d(3, affine=True), [(0, 3, 4)], (0, 3, 4)),
}


def run(f, shapes):
    inputs = [clew.zeros(s, requires_grad=True) for s in shapes]
    out = f(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    out.sum().backward()
    assert all(x.grad.shape == x.shape and not x.grad.any() for x in inputs if x.grad is not None)
    return out


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, shapes, expected = MODULES[name]
    module = make()
    assert run(module, shapes).shape == expected
    for p in module.parameters():
        assert p.grad is None or not p.grad.any()


def test_attention_without_weights() -> None:
    layer = attention(batch_first=True)
    out = run(lambda *x: layer(*x, need_weights=False), [(0, 5, 4)] * 3)
    assert out.shape == (0, 5, 4)
    mask = clew.zeros(0, 5, dtype=clew.bool)
    for weights in (True, False):
        x = clew.zeros(0, 5, 4)
        out, _ = layer(x, x, x, key_padding_mask=mask, need_weights=weights)
        assert out.shape == (0, 5, 4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("lead", [(0, 3), (2, 0)])
def test_grid_sample(mode: str, padding: str, lead: tuple[int, int]) -> None:
    out = run(
        lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners=False),
        [(*lead, 4, 4), (lead[0], 2, 5, 2)],
    )
    assert out.shape == (*lead, 2, 5)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("lead", [(0, 3), (2, 0)])
def test_max_unpool(dims: int, lead: tuple[int, int]) -> None:
    unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[dims - 1]
    at = clew.zeros(*lead, *(2,) * dims, dtype=clew.int64)
    assert run(lambda x: unpool(x, at, 2), [at.shape]).shape == (*lead, *(4,) * dims)


def test_batch_norm_still_asks_for_two_values() -> None:
    with pytest.raises(ValueError, match="more than 1 value"):
        F.batch_norm(clew.zeros(1, 3, 1), None, None, training=True)


@pytest.mark.parametrize("shape", [(2, 0), (2, 0, 3), (0, 0), (3, 0, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_no_channels(shape, training):
    x = clew.zeros(shape, requires_grad=True)
    y = nn.BatchNorm1d(0).train(training)(x)
    y.sum().backward()
    assert y.shape == shape and x.grad.shape == shape
