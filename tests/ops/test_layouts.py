"""In which order the elements of results lie in memory, given the layouts of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew.nn import functional as F

IMAGE = (2, 4, 6, 8)
VOLUME = (2, 4, 4, 6, 8)


def values(shape: tuple[int, ...]) -> clew.Tensor:
    n = int(np.prod(shape))
    return clew.arange(n, dtype=clew.float32).reshape(shape) / n


def last(shape: tuple[int, ...]) -> clew.Tensor:
    x = values(shape)
    return x.contiguous(memory_format=clew.channels_last if x.ndim == 4 else clew.channels_last_3d)


def dense(sizes: Any, order: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense tensor whose dims lie in `order`, from the outermost."""
    strides = [0] * len(order)
    step = 1
    for d in reversed(order):
        strides[d] = step
        step *= sizes[d]
    return tuple(strides)


def expect(out: clew.Tensor, order: tuple[int, ...]) -> None:
    assert out.stride() == dense(out.shape, order)


LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}

KEEP_FORMAT: dict[str, Callable[[clew.Tensor], Any]] = {
    "cat": lambda x: clew.cat([x, x[:, :1]], 1),
    "cat, one": lambda x: clew.cat([x], 1),
    "cat, dtypes": lambda x: clew.cat([x, x.double()], 0),
    "pad": lambda x: F.pad(x, (1, 2)),
    "pad, channels": lambda x: F.pad(x, (0, 0) * (x.ndim - 2) + (1, 1)),
    "pad, cut": lambda x: F.pad(x, (-1, -1)),
    "pad, nothing": lambda x: F.pad(x, (0, 0)),
    "pad, reflect": lambda x: F.pad(x, (1, 1) * (x.ndim - 2), mode="reflect"),
    "pad, replicate": lambda x: F.pad(x, (1, 1) * (x.ndim - 2), mode="replicate"),
    "group_norm": lambda x: F.group_norm(x, 2, clew.ones(4), clew.zeros(4)),
    "batch_norm": lambda x: F.batch_norm(x, clew.zeros(4), clew.ones(4)),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "roll": lambda x: x.roll(1, 2),
    "flip": lambda x: x.flip(0, 3),
    "sort": lambda x: x.sort(1).values,
    "argsort": lambda x: x.argsort(2),
    "glu": lambda x: F.glu(x, 1),
    "diff": lambda x: x.diff(dim=1),
    "slice, clone": lambda x: x[:, ::2].clone(),
    "slice, exp": lambda x: x[:, ::2].exp(),
    "complex": lambda x: clew.complex(x, x),
    "polar": lambda x: clew.polar(x, x),
    "where": lambda x: clew.where(x > 0, x, 0.0),
    "outer sum": lambda x: x[:1] + x[:, :1],
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 0),
    "empty_like": lambda x: clew.empty_like(x[:, ::2]),
    "rand_like": lambda x: clew.rand_like(x[:, ::2]),
    "dropout": lambda x: F.dropout(x, 0.5),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2),
}
KEEP_OF_IMAGES: dict[str, Callable[[clew.Tensor], Any]] = {
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool2d, indices": lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "lp_pool2d": lambda x: F.lp_pool2d(x, 2, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 3),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "area": lambda x: F.interpolate(x, size=3, mode="area"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(clew.cat([x, x], 1), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "conv2d": lambda x: F.conv2d(x, clew.ones(5, 4, 3, 3)),
}
KEEP_OF_VOLUMES: dict[str, Callable[[clew.Tensor], Any]] = {
    "max_pool3d": lambda x: F.max_pool3d(x, 2),
    "conv3d": lambda x: F.conv3d(x, clew.ones(5, 4, 3, 3, 3)),
    "conv3d, weight": lambda x: F.conv3d(x.contiguous(), last((5, 4, 3, 3, 3))),
    "conv_transpose3d": lambda x: F.conv_transpose3d(x, clew.ones(4, 5, 3, 3, 3)),
}
IN_ORDER: dict[str, Callable[[clew.Tensor], Any]] = {
    "cat with another": lambda x: clew.cat([x, x.contiguous()], 1),
    "pad, circular": lambda x: F.pad(x, (1, 1) * (x.ndim - 2), mode="circular"),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "stack, last": lambda x: clew.stack([x, x], -1),
    "clone": lambda x: x.clone(memory_format=clew.contiguous_format),
}
CASES = [(name, f, IMAGE) for name, f in {**KEEP_FORMAT, **KEEP_OF_IMAGES}.items()] + [
    (name, f, VOLUME) for name, f in {**KEEP_FORMAT, **KEEP_OF_VOLUMES}.items()
]


def close(a: clew.Tensor, b: clew.Tensor) -> None:
    if a.is_complex():
        a, b = clew.view_as_real(a), clew.view_as_real(b)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("name", "f", "shape"), CASES, ids=[f"{c[0]}-{len(c[2])}d" for c in CASES])
def test_channels_last_is_kept(
    name: str, f: Callable[[clew.Tensor], clew.Tensor], shape: tuple[int, ...]
) -> None:
    out = f(last(shape))
    expect(out, LAST[out.ndim])
    if name not in ("empty_like", "rand_like", "dropout"):
        close(out, f(values(shape)))


@pytest.mark.parametrize("name", IN_ORDER)
@pytest.mark.parametrize("shape", [IMAGE, VOLUME])
def test_layouts_that_are_not_kept(name: str, shape: tuple[int, ...]) -> None:
    out = IN_ORDER[name](last(shape))
    assert out.is_contiguous()
    close(out, IN_ORDER[name](values(shape)))


NO_COMPARISON = ("argsort", "max_pool2d, indices", "empty_like", "rand_like", "dropout", "conv3d")


@pytest.mark.parametrize(("name", "f", "shape"), CASES, ids=[f"{c[0]}-{len(c[2])}d" for c in CASES])
def test_gradients_do_not_depend_on_the_layout(
    name: str, f: Callable[[clew.Tensor], clew.Tensor], shape: tuple[int, ...]
) -> None:
    if name in NO_COMPARISON:
        return
    grads = []
    for x in (last(shape), values(shape)):
        x = x.detach().requires_grad_()
        out = f(x)
        real = clew.view_as_real(out).sum(-1) if out.is_complex() else out
        # In no order, because what grows with the input has nearly no gradient through a norm.
        (real * (clew.arange(real.numel()) * 37 % 101).reshape(real.shape)).sum().backward()
        assert x.grad is not None and x.grad.stride() == x.stride()
        grads.append(x.grad / x.grad.abs().max())
    close(grads[0], grads[1])


def test_pooling_of_volumes_by_means_does_not_keep_it() -> None:
    x = last(VOLUME)
    assert F.avg_pool3d(x, 2).is_contiguous()
    assert F.adaptive_avg_pool3d(x, 2).is_contiguous()
    assert F.adaptive_max_pool3d(x, 2).is_contiguous()
    assert F.conv3d(x.double(), clew.ones(5, 4, 3, 3, 3, dtype=clew.float64)).is_contiguous()


def test_stack_lies_as_if_joined_along_the_next_dim() -> None:
    x = last(IMAGE)
    out = clew.stack([x, x + 1], 1)
    assert out.stride() == (384, 4, 1, 64, 8)
    assert clew.stack([x, x], 0).stride() == (384, 192, 1, 32, 4)
    np.testing.assert_array_equal(out.numpy(), np.stack([x.numpy(), x.numpy() + 1], 1))


ORDERS = [(0, 1, 3, 2), (3, 2, 1, 0), (1, 2, 3, 0)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.exp(),
        lambda x: x.flip(0),
        lambda x: x.sort(1).indices,
        lambda x: F.glu(x, 1),
        lambda x: F.pad(x, (-1, 0)),
        lambda x: x[:, 1:].clone(),
        lambda x: x[:, ::2] * 2,
        lambda x: clew.where(x[:1] > 0, x, x[:, :1]),
        lambda x: x[:, :, :3] - x[:, :, 3:],
        lambda x: clew.zeros_like(x[..., ::2]),
        lambda x: clew.special.airy_ai(x),
        lambda x: clew.special.bessel_j0(x.double()),
        lambda x: clew.special.legendre_polynomial_p(x, 3),
        lambda x: clew.special.chebyshev_polynomial_t(x[:, ::2], x[:, 1::2]),
        lambda x: clew.special.hermite_polynomial_h(x[:1, :1, :1, :1], x),
        lambda x: clew.igamma(x + 1, x[:, :1]),
        lambda x: clew.igammac(x, 2 * x),
        lambda x: clew.frexp(x).mantissa,
        lambda x: clew.frexp(x).exponent,
    ],
)
def test_orders_of_dims_are_kept(
    f: Callable[[clew.Tensor], clew.Tensor], order: tuple[int, ...]
) -> None:
    inverse = [order.index(d) for d in range(4)]
    x = values(IMAGE)
    permuted = x.permute(order).contiguous().permute(inverse)
    out = f(permuted)
    expect(out, order)
    np.testing.assert_array_equal(out.numpy(), f(x).numpy())


def test_the_first_operand_that_orders_dims_decides() -> None:
    plain, turned = values((4, 6)), values((6, 4)).t()
    assert (plain + turned).stride() == (6, 1)
    assert (turned + plain).stride() == (1, 4)
    # A broadcast dim has no place in memory: the others decide.
    assert (plain[:1] + turned).stride() == (1, 4)
    assert (turned + 1).stride() == (1, 4)
    assert (clew.tensor(1.0) + turned).stride() == (1, 4)


def test_expanded_dims_do_not_order() -> None:
    x = values((4, 1, 3)).expand(4, 5, 3)
    assert (x * 2).stride() == (15, 3, 1)
    assert x.clone().stride() == (15, 3, 1)
    assert x.mT.clone().stride() == (15, 5, 1)


def test_ambiguous_strides_count_as_in_order() -> None:
    one_channel = values((2, 1, 6, 8)).contiguous(memory_format=clew.channels_last)
    assert F.pad(one_channel, (1, 1)).is_contiguous()
    assert F.max_pool2d(values((2, 4, 1, 1)), 1).is_contiguous()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_meta_tensors_have_the_same_strides(device: str) -> None:
    x = clew.empty(IMAGE, device=device, memory_format=clew.channels_last)
    for f in (lambda x: F.max_pool2d(x, 2), lambda x: clew.cat([x, x]), lambda x: x[:1] + x[:, :1]):
        expect(f(x), LAST[4])


def test_gradients_pass_through_functions_in_the_order_of_memory() -> None:
    x = values((4, 6)).double().add(0.5).t().requires_grad_()
    clew.special.bessel_j0(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), -clew.special.bessel_j1(x).detach().numpy())


def test_results_that_are_always_contiguous() -> None:
    assert values((24,))[::2].ravel().is_contiguous()
    x = values((2, 3, 3))
    lengths = clew.tensor([[1, 2], [3, 0]])
    assert clew.segment_reduce(x, "max", lengths=lengths, axis=1).is_contiguous()


def test_channel_shuffle_makes_a_tensor_of_its_own() -> None:
    x = values((2, 1, 3)).expand(2, 4, 3)
    out = F.channel_shuffle(x, 2)
    assert out.is_contiguous() and out.data_ptr() != x.data_ptr()


def test_gradients_lie_as_their_leaves() -> None:
    for leaf in (last(IMAGE), values((4, 6)).t(), values((4, 6))):
        leaf = leaf.detach().requires_grad_()
        for weight in (values(tuple(leaf.shape)), clew.ones(())):
            leaf.grad = None
            (leaf * weight).sum().backward()
            assert leaf.grad is not None and leaf.grad.stride() == leaf.stride()
    # A leaf whose elements do not lie dense has a gradient in order.
    wide = values((4, 6))[:, ::2].detach().requires_grad_()
    (wide * 2).sum().backward()
    assert wide.grad is not None and wide.grad.is_contiguous()


def test_results_that_are_contiguous_whatever_the_input():
    """So that view() of them works as in PyTorch 2.13."""
    x = clew.arange(48.0).reshape(2, 2, 3, 4)
    for y in (x.to(memory_format=clew.channels_last), x.transpose(1, 2), x.permute(3, 2, 1, 0)):
        mask = clew.ones(1, *y.shape[1:]).bool()
        for made in (y.masked_fill(mask, 0), y.masked_fill(mask, clew.tensor(1.0))):
            assert made.is_contiguous()
        for stats in (True, False):
            means = clew.zeros(y.shape[1]), clew.ones(y.shape[1])
            norm = clew.nn.functional.instance_norm(y, *means, use_input_stats=stats)
            assert norm.is_contiguous()
    there = x.transpose(1, 2).clone()
    assert there.masked_fill_(there > 3, 0).stride() == there.stride()
    assert x.mT.clone().masked_fill(x.mT > 3, 0).view(-1).shape == (48,)
