"""Gradients of torchvision's operations, which it asks for by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew import Tensor
from clew._torch.torchvision_ops.boxes import bin_means, ps_roi_align, roi_align
from clew._torch.torchvision_ops.deform import deform_conv2d


def _pulled(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of a function's inputs."""
    with clew.enable_grad():
        fresh = [t.detach().requires_grad_() for t in inputs]
        found = clew.autograd.grad(function(*fresh), fresh, grad, allow_unused=True)
    return tuple(clew.zeros_like(t) if g is None else g for g, t in zip(found, fresh))


def roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    options = (spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
    zeros = grad.new_zeros((batch_size, channels, height, width))
    return _pulled(lambda x: roi_align(x, rois, *options), [zeros], grad)[0]


def ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    options = (spatial_scale, pooled_height, pooled_width, sampling_ratio)
    zeros = grad.new_zeros((batch_size, channels, height, width))
    return _pulled(lambda x: ps_roi_align(x, rois, *options)[0], [zeros], grad)[0]


def ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    bins, limits = (pooled_height, pooled_width), (height, width)
    zeros = grad.new_zeros((batch_size, channels, height, width))

    def means(x: Tensor) -> Tensor:
        return bin_means(x, rois, spatial_scale, bins, limits).permute(0, 3, 1, 2)

    return _pulled(means, [zeros], grad)[0]


def roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    images = rois.detach()[:, 0].long().reshape(-1, 1, 1, 1)
    plane = images * channels + clew.arange(channels).reshape(1, -1, 1, 1)
    at = plane * (height * width) + argmax
    found = argmax >= 0
    total = grad.new_zeros(batch_size * channels * height * width)
    total = total.index_put((at[found],), grad[found], accumulate=True)
    return total.reshape(batch_size, channels, height, width)


def deform_conv2d_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    *options: Any,
) -> tuple[Tensor, ...]:
    inputs = [input, weight, offset, mask, bias]
    return _pulled(lambda *given: deform_conv2d(*given, *options), inputs, grad)


def ps_roi_pool_kept(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1], output[1])
    ctx.options, ctx.shape = inputs[2:], inputs[0].shape


def ps_roi_pool_gradient(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    found = ps_roi_pool_backward(grad, *ctx.saved_tensors, *ctx.options, *ctx.shape)
    return (found, *[None] * 4)
