"""torchvision's convolution whose places are shifted."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew._torch.torchvision_ops.checks import need, need_kind


def _around(at: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """The two places that each position lies between, which exist, and their weights: (..., 2)."""
    low = at.detach().floor()
    share = at - low
    places = clew.stack([low, low + 1], -1)
    there = (places >= 0) & (places < length)
    # An infinite position lies outside; one that is not a number makes the sum none either.
    outside = ((at < -1) | (at >= length)).unsqueeze(-1)
    weights = clew.where(outside, 0, clew.stack([1 - share, share], -1))
    return clew.where(there, places, 0).long(), there, weights


def _check_deform(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, options: tuple[Any, ...]
) -> tuple[int, int]:
    """The height and width of the result; raises for tensors that do not go together."""
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups, offset_groups, use_mask = options
    tensors = {"input": input, "offset": offset, "weight": weight}
    if use_mask:
        tensors["mask"] = mask
    for name, t in tensors.items():
        need(t.dim() == 4, f"deform_conv2d: {name} should have 4 dimensions; got {t.dim()}")
        need(
            t.dtype == input.dtype,
            f"deform_conv2d: {name} should be {input.dtype}, as the input; got {t.dtype}",
        )
    need_kind("deform_conv2d", input, half=True)
    n, channels, h, w = input.shape
    kh, kw = weight.shape[2:]
    pairs = {"kernel": (kh, kw), "stride": (stride_h, stride_w), "dilation": (dil_h, dil_w)}
    for name, pair in pairs.items():
        need(min(pair) > 0, f"deform_conv2d: the {name} should be above 0; got {pair}")
    need(min(pad_h, pad_w) >= 0, f"deform_conv2d: the padding is negative: {(pad_h, pad_w)}")
    need(
        min(groups, offset_groups) > 0
        and weight.shape[1] * groups == channels
        and weight.shape[0] % groups == 0
        and channels % offset_groups == 0,
        f"deform_conv2d: {channels} channels, {groups} groups and {offset_groups} groups of "
        f"offsets do not go with a weight of shape {tuple(weight.shape)}",
    )
    oh = (h + 2 * pad_h - dil_h * (kh - 1) - 1) // stride_h + 1
    ow = (w + 2 * pad_w - dil_w * (kw - 1) - 1) // stride_w + 1
    need(min(oh, ow) > 0, f"deform_conv2d: the result would be of size {(oh, ow)}")
    shape = (n, 2 * offset_groups * kh * kw, oh, ow)
    need(
        tuple(offset.shape) == shape,
        f"deform_conv2d: expected an offset of shape {shape}; got {tuple(offset.shape)}",
    )
    shape = (n, offset_groups * kh * kw, oh, ow)
    if use_mask:
        need(
            tuple(mask.shape) == shape,
            f"deform_conv2d: expected a mask of shape {shape}; got {tuple(mask.shape)}",
        )
    need(mask.shape[0] == n, f"deform_conv2d: a mask of {mask.shape[0]} for {n} images")
    return oh, ow


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose places are shifted by offsets."""
    places = (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    options = (*places, groups, offset_groups, use_mask)
    oh, ow = _check_deform(input, weight, offset, mask, options)
    n, channels, h, w = input.shape
    out_channels, _, kh, kw = weight.shape
    taps, kind = kh * kw, offset.dtype
    shifts = offset.reshape(n * offset_groups, kh, kw, 2, oh, ow)
    row = (clew.arange(oh) * stride_h - pad_h).reshape(1, 1, 1, oh, 1)
    column = (clew.arange(ow) * stride_w - pad_w).reshape(1, 1, 1, 1, ow)
    row = row + (clew.arange(kh) * dilation_h).reshape(1, kh, 1, 1, 1)
    column = column + (clew.arange(kw) * dilation_w).reshape(1, 1, kw, 1, 1)
    y, in_y, wy = _around(shifts[:, :, :, 0] + row.to(kind), h)
    x, in_x, wx = _around(shifts[:, :, :, 1] + column.to(kind), w)
    weights = wy.unsqueeze(-1) * wx.unsqueeze(-2)
    if use_mask:
        weights = weights * mask.reshape(n * offset_groups, kh, kw, oh, ow, 1, 1)
    # Each place that a tap sees is a weighted sum of the four around it; those beyond the edge
    # are the table's last row.
    each = channels // offset_groups
    table = input.reshape(n * offset_groups, each, h * w).permute(0, 2, 1)
    table = clew.cat([table.reshape(n * offset_groups * h * w, each), input.new_zeros((1, each))])
    plane = clew.arange(n * offset_groups).reshape(n * offset_groups, 1, 1, 1, 1, 1, 1)
    at = (plane * h + y.unsqueeze(-1)) * w + x.unsqueeze(-2)
    at = clew.where(in_y.unsqueeze(-1) & in_x.unsqueeze(-2), at, len(table) - 1)
    samples = clew.nn.functional.embedding_bag(
        at.reshape(at.numel()),
        table,
        clew.arange(0, at.numel(), 4),
        mode="sum",
        per_sample_weights=weights.reshape(at.numel()),
    )
    samples = samples.reshape(n, offset_groups, taps, oh * ow, each).permute(0, 1, 4, 2, 3)
    columns = samples.reshape(n, groups, channels // groups * taps, oh * ow)
    factors = weight.reshape(groups, out_channels // groups, channels // groups * taps)
    out = (factors @ columns).reshape(n, out_channels, oh, ow)
    return out + bias.reshape(1, out_channels, 1, 1)
