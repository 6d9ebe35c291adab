"""Shuffles: elements moved between the channels and the places of an image."""

from __future__ import annotations

from typing import Any

import clew
from clew._base.arguments import need_int, need_tensors
from clew._base.overriding import asks_classes
from clew._C import Tensor


def _channels_last(x: Any) -> bool:
    """Whether images or volumes that are not contiguous lie with their channels last, which results
    keep.
    """
    formats = {4: clew.channels_last, 5: clew.channels_last_3d}
    kept = formats.get(x.dim())
    return kept is not None and bool(x.is_contiguous(memory_format=kept))


def _own(x: Any) -> Any:
    """Elements in other dims, in memory of the result's own also where none of them moves."""
    return x.clone(memory_format=clew.contiguous_format)


@asks_classes
def pixel_shuffle(input: Any, upscale_factor: int) -> clew.Tensor:
    """Moves channels into space: (..., C r^2, H, W) becomes (..., C, H r, W r).

    Shi and others, Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network, 2016.

    Args:
        input: the images, (..., C r^2, H, W), of any dtype.
        upscale_factor: r, above 0.

    Returns:
        the larger images, (..., C, H r, W r).

    Example:
        >>> x = clew.tensor([1, 2, 3, 4]).reshape(1, 4, 1, 1)
        >>> clew.nn.functional.pixel_shuffle(x, 2).tolist()
        [[[[1, 2], [3, 4]]]]
    """
    if not isinstance(input, Tensor):
        need_tensors("pixel_shuffle", input=input)
    r = need_int("pixel_shuffle", "upscale_factor", upscale_factor)
    if input.dim() < 3:
        raise RuntimeError(f"pixel_shuffle: input must have at least 3 dims; got {input.dim()}")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            f"pixel_shuffle: channels must be divisible by the square of upscale_factor; got {c} "
            f"and {r}"
        )
    if not input.is_contiguous() and _channels_last(input):
        x = input.permute(0, 2, 3, 1).reshape(*lead, h, w, c // (r * r), r, r)
        x = _own(x.permute(0, 1, 4, 2, 5, 3)).reshape(*lead, h * r, w * r, c // (r * r))
        return x.permute(0, 3, 1, 2)
    x = _own(input.reshape(*lead, c // (r * r), r, r, h, w).movedim((-2, -1), (-4, -2)))
    return x.reshape(*lead, c // (r * r), h * r, w * r)


@asks_classes
def pixel_unshuffle(input: Any, downscale_factor: int) -> clew.Tensor:
    """Moves space into channels: (..., C, H r, W r) becomes (..., C r^2, H, W).

    Args:
        input: the images, (..., C, H r, W r), of any dtype.
        downscale_factor: r, above 0.

    Returns:
        the smaller images, (..., C r^2, H, W).

    Example:
        >>> x = clew.tensor([[1, 2], [3, 4]]).reshape(1, 1, 2, 2)
        >>> clew.nn.functional.pixel_unshuffle(x, 2).flatten().tolist()
        [1, 2, 3, 4]
    """
    if not isinstance(input, Tensor):
        need_tensors("pixel_unshuffle", input=input)
    r = need_int("pixel_unshuffle", "downscale_factor", downscale_factor)
    if input.dim() < 3:
        raise RuntimeError(f"pixel_unshuffle: input must have at least 3 dims; got {input.dim()}")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    if h % r or w % r:
        raise RuntimeError(
            f"pixel_unshuffle: height and width must be divisible by downscale_factor; got {h}, "
            f"{w} and {r}"
        )
    if not input.is_contiguous() and _channels_last(input):
        x = input.permute(0, 2, 3, 1).reshape(*lead, h // r, r, w // r, r, c)
        x = _own(x.permute(0, 1, 3, 5, 2, 4)).reshape(*lead, h // r, w // r, c * r * r)
        return x.permute(0, 3, 1, 2)
    x = _own(input.reshape(*lead, c, h // r, r, w // r, r).movedim((-4, -2), (-2, -1)))
    return x.reshape(*lead, c * r * r, h // r, w // r)


@asks_classes
def channel_shuffle(input: Any, groups: int) -> clew.Tensor:
    """Takes channels in turn from each of several groups.

    Zhang and others, ShuffleNet, 2017, section 3.1: (groups, C / groups) is transposed.

    Args:
        input: (N, C, ...), of any dtype.
        groups: how many groups; divides C.

    Returns:
        a tensor of input's shape.

    Example:
        >>> x = clew.arange(4).reshape(1, 4, 1)
        >>> clew.nn.functional.channel_shuffle(x, 2).flatten().tolist()
        [0, 2, 1, 3]
    """
    if not isinstance(input, Tensor):
        need_tensors("channel_shuffle", input=input)
    groups = need_int("channel_shuffle", "groups", groups)
    if input.dim() < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    n, c, *rest = input.shape
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    if not input.is_contiguous() and _channels_last(input):
        x = input.movedim(1, -1).reshape(n, *rest, groups, c // groups)
        return _own(x.transpose(-1, -2)).reshape(n, *rest, c).movedim(-1, 1)
    x = _own(input.reshape(n, groups, c // groups, *rest).transpose(1, 2))
    return x.reshape(input.shape)


native_channel_shuffle = channel_shuffle


__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
