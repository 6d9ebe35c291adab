"""Convolutions and transposed convolutions, lazy ones too."""

from __future__ import annotations

from ._conv_base import _Conv, _ConvTransposeNd, _LazyPlainConv, _LazyTransposedConv
from ._conv_base import _ConvNd as _ConvNd
from ._conv_base import _LazyConv as _LazyConv

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class Conv1d(_Conv):
    """Convolution over (N, C, L), without flipping the window.

    y[o, l] = b[o] + sum over c, k of weight[o, c, k] x[c, stride l + dilation k - padding], c the
    channels of o's group.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the window: a number.
        stride: step of the window: a number.
        padding: added on both sides: a number; or "same" (output as large as the input, stride 1
            only) or "valid" (none).
        dilation: distance between the window's elements: a number.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, L) or (in_channels, L).
        returns: (N, out_channels, L_out) or (out_channels, L_out),
            L_out = floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1; the
            input's sizes with padding="same".
        weight: (out_channels, in_channels / groups, K), bias: (out_channels).

    Raises:
        ValueError: for groups that do not divide the channels, an unknown padding_mode, or "same"
            with a stride.

    Example:
        >>> conv = clew.nn.Conv1d(1, 1, 2, bias=False)
        >>> _ = clew.nn.init.ones_(conv.weight)
        >>> conv(clew.tensor([[[1., 2., 3.]]])).tolist()
        [[[3.0, 5.0]]]
    """

    _nd = 1
    _op = "conv1d"


class Conv2d(_Conv):
    """Convolution over (N, C, H, W), without flipping the window.

    y[o, h, w] = b[o] + sum over c, i, j of weight[o, c, i, j] x[c, stride h + dilation i - padding,
    stride w + dilation j - padding], c the channels of o's group.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W).
        padding: added on both sides: one number or (H, W); or "same" (output as large as the input,
            stride 1 only) or "valid" (none).
        dilation: distance between the window's elements: one number or (H, W).
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, H, W) or (in_channels, H, W).
        returns: (N, out_channels, H_out, W_out) or (out_channels, H_out, W_out),
            H_out = floor((H + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1 and W_out
            likewise; the input's sizes with padding="same".
        weight: (out_channels, in_channels / groups, KH, KW), bias: (out_channels).

    Raises:
        ValueError: for groups that do not divide the channels, an unknown padding_mode, or "same"
            with a stride.

    Example:
        >>> clew.nn.Conv2d(1, 4, 3, padding=1)(clew.ones(2, 1, 8, 8)).shape
        clew.Size([2, 4, 8, 8])
        >>> clew.nn.Conv2d(1, 4, 3, stride=2)(clew.ones(2, 1, 8, 8)).shape
        clew.Size([2, 4, 3, 3])
    """

    _nd = 2
    _op = "conv2d"


class Conv3d(_Conv):
    """Convolution over (N, C, D, H, W), without flipping the window.

    As Conv2d, with a third sum over the depth: y[o] = b[o] + sum over c of the cross-correlation of
    x[c] with weight[o, c], c the channels of o's group.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W).
        padding: added on both sides: one number or (D, H, W); or "same" (output as large as the
            input, stride 1 only) or "valid" (none).
        dilation: distance between the window's elements: one number or (D, H, W).
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, D, H, W) or (in_channels, D, H, W).
        returns: (N, out_channels, D_out, H_out, W_out) or (out_channels, D_out, H_out, W_out),
            D_out = floor((D + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1; H_out and
            W_out likewise; the input's sizes with padding="same".
        weight: (out_channels, in_channels / groups, KD, KH, KW), bias: (out_channels).

    Raises:
        ValueError: for groups that do not divide the channels, an unknown padding_mode, or "same"
            with a stride.

    Example:
        >>> clew.nn.Conv3d(1, 4, (1, 3, 3))(clew.ones(2, 1, 6, 8, 8)).shape
        clew.Size([2, 4, 6, 6, 6])
    """

    _nd = 3
    _op = "conv3d"


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (N, C, L): Conv1d's gradient by its input.

    Each input element adds weight times itself to a window of the output, and b is added. It is no
    inverse of the convolution, but has its shapes the other way round.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the window: a number.
        stride: step of the window: a number.
        padding: what the matching convolution adds on both sides; here it is cut off: a number.
        output_padding: added to one side of the output: a number; less than stride or dilation.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        dilation: distance between the window's elements: a number.
        padding_mode: "zeros"; nothing else is supported.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, L) or (in_channels, L).
        output_size: sizes of the output, as many as the window has dims, instead of output_padding.
        returns: (N, out_channels, L_out) or (out_channels, L_out),
            L_out = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
        weight: (in_channels, out_channels / groups, K), bias: (out_channels).

    Raises:
        ValueError: for groups that do not divide the channels, a padding_mode other than "zeros",
            or an output_size out of reach.

    Example:
        >>> conv = clew.nn.ConvTranspose1d(1, 1, 2, stride=2, bias=False)
        >>> _ = clew.nn.init.ones_(conv.weight)
        >>> conv(clew.tensor([[[1., 2.]]])).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """

    _nd = 1
    _op = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (N, C, H, W): Conv2d's gradient by its input.

    Each input element adds weight times itself to a window of the output, and b is added. It is no
    inverse of the convolution, but has its shapes the other way round.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W).
        padding: what the matching convolution adds on both sides; here it is cut off: one number or
            (H, W).
        output_padding: added to one side of the output: one number or (H, W); less than stride or
            dilation.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        dilation: distance between the window's elements: one number or (H, W).
        padding_mode: "zeros"; nothing else is supported.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, H, W) or (in_channels, H, W).
        output_size: sizes of the output, as many as the window has dims, instead of output_padding.
        returns: (N, out_channels, H_out, W_out) or (out_channels, H_out, W_out),
            H_out = (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1 and
            W_out likewise.
        weight: (in_channels, out_channels / groups, KH, KW), bias: (out_channels).

    Raises:
        ValueError: for groups that do not divide the channels, a padding_mode other than "zeros",
            or an output_size out of reach.

    Example:
        >>> up = clew.nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
        >>> up(clew.ones(1, 4, 5, 5)).shape
        clew.Size([1, 2, 9, 9])
        >>> up(clew.ones(1, 4, 5, 5), output_size=(10, 10)).shape
        clew.Size([1, 2, 10, 10])
    """

    _nd = 2
    _op = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (N, C, D, H, W): Conv3d's gradient by its input.

    Each input element adds weight times itself to a window of the output, and b is added. It is no
    inverse of the convolution, but has its shapes the other way round.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W).
        padding: what the matching convolution adds on both sides; here it is cut off: one number or
            (D, H, W).
        output_padding: added to one side of the output: one number or (D, H, W); less than stride
            or dilation.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        dilation: distance between the window's elements: one number or (D, H, W).
        padding_mode: "zeros"; nothing else is supported.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, D, H, W) or (in_channels, D, H, W).
        output_size: sizes of the output, as many as the window has dims, instead of output_padding.
        returns: (N, out_channels, D_out, H_out, W_out) or (out_channels, D_out, H_out, W_out),
            D_out = (D - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1;
            H_out and W_out likewise.
        weight: (in_channels, out_channels / groups, KD, KH, KW), bias: (out_channels).

    Raises:
        ValueError: for groups that do not divide the channels, a padding_mode other than "zeros",
            or an output_size out of reach.

    Example:
        >>> clew.nn.ConvTranspose3d(4, 2, 2, stride=2)(clew.ones(1, 4, 3, 5, 5)).shape
        clew.Size([1, 2, 6, 10, 10])
    """

    _nd = 3
    _op = "conv_transpose3d"


class LazyConv1d(_LazyPlainConv, Conv1d):
    """A Conv1d that takes in_channels from its first input; then it is one.

    Args:
        out_channels: channels of the output.
        kernel_size: size of the window: a number.
        stride: step of the window: a number.
        padding: added on both sides: a number; or "same" (output as large as the input, stride 1
            only) or "valid" (none).
        dilation: distance between the window's elements: a number.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, L) or (in_channels, L); the first one gives in_channels.
        returns: (N, out_channels, L_out) or (out_channels, L_out),
            L_out = floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1; the
            input's sizes with padding="same".
        weight: (out_channels, in_channels / groups, K), bias: (out_channels).

    Raises:
        RuntimeError: for a first input of a wrong number of dims.

    Example:
        >>> conv = clew.nn.LazyConv1d(6, 3)
        >>> conv(clew.ones(2, 4, 7)).shape, conv.in_channels
        (clew.Size([2, 6, 5]), 4)
        >>> type(conv).__name__
        'Conv1d'
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlainConv, Conv2d):
    """A Conv2d that takes in_channels from its first input; then it is one.

    Args:
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W).
        padding: added on both sides: one number or (H, W); or "same" (output as large as the input,
            stride 1 only) or "valid" (none).
        dilation: distance between the window's elements: one number or (H, W).
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, H, W) or (in_channels, H, W); the first one gives in_channels.
        returns: (N, out_channels, H_out, W_out) or (out_channels, H_out, W_out),
            H_out = floor((H + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1 and W_out
            likewise; the input's sizes with padding="same".
        weight: (out_channels, in_channels / groups, KH, KW), bias: (out_channels).

    Raises:
        RuntimeError: for a first input of a wrong number of dims.

    Example:
        >>> conv = clew.nn.LazyConv2d(6, 3)
        >>> conv(clew.ones(2, 4, 7, 7)).shape, conv.in_channels
        (clew.Size([2, 6, 5, 5]), 4)
        >>> type(conv).__name__
        'Conv2d'
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlainConv, Conv3d):
    """A Conv3d that takes in_channels from its first input; then it is one.

    Args:
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W).
        padding: added on both sides: one number or (D, H, W); or "same" (output as large as the
            input, stride 1 only) or "valid" (none).
        dilation: distance between the window's elements: one number or (D, H, W).
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, D, H, W) or (in_channels, D, H, W); the first one gives in_channels.
        returns: (N, out_channels, D_out, H_out, W_out) or (out_channels, D_out, H_out, W_out),
            D_out = floor((D + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1; H_out and
            W_out likewise; the input's sizes with padding="same".
        weight: (out_channels, in_channels / groups, KD, KH, KW), bias: (out_channels).

    Raises:
        RuntimeError: for a first input of a wrong number of dims.

    Example:
        >>> conv = clew.nn.LazyConv3d(6, 3)
        >>> conv(clew.ones(2, 4, 7, 7, 7)).shape, conv.in_channels
        (clew.Size([2, 6, 5, 5, 5]), 4)
        >>> type(conv).__name__
        'Conv3d'
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposedConv, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input; then it is one.

    Args:
        out_channels: channels of the output.
        kernel_size: size of the window: a number.
        stride: step of the window: a number.
        padding: what the matching convolution adds on both sides; here it is cut off: a number.
        output_padding: added to one side of the output: a number; less than stride or dilation.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        dilation: distance between the window's elements: a number.
        padding_mode: "zeros"; nothing else is supported.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, L) or (in_channels, L); the first one gives in_channels.
        output_size: sizes of the output, as many as the window has dims, instead of output_padding.
        returns: (N, out_channels, L_out) or (out_channels, L_out),
            L_out = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
        weight: (in_channels, out_channels / groups, K), bias: (out_channels).

    Raises:
        RuntimeError: for a first input of a wrong number of dims.

    Example:
        >>> conv = clew.nn.LazyConvTranspose1d(6, 3)
        >>> conv(clew.ones(2, 4, 7)).shape, conv.in_channels
        (clew.Size([2, 6, 9]), 4)
        >>> type(conv).__name__
        'ConvTranspose1d'
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConv, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input; then it is one.

    Args:
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W).
        padding: what the matching convolution adds on both sides; here it is cut off: one number or
            (H, W).
        output_padding: added to one side of the output: one number or (H, W); less than stride or
            dilation.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        dilation: distance between the window's elements: one number or (H, W).
        padding_mode: "zeros"; nothing else is supported.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, H, W) or (in_channels, H, W); the first one gives in_channels.
        output_size: sizes of the output, as many as the window has dims, instead of output_padding.
        returns: (N, out_channels, H_out, W_out) or (out_channels, H_out, W_out),
            H_out = (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1 and
            W_out likewise.
        weight: (in_channels, out_channels / groups, KH, KW), bias: (out_channels).

    Raises:
        RuntimeError: for a first input of a wrong number of dims.

    Example:
        >>> conv = clew.nn.LazyConvTranspose2d(6, 3)
        >>> conv(clew.ones(2, 4, 7, 7)).shape, conv.in_channels
        (clew.Size([2, 6, 9, 9]), 4)
        >>> type(conv).__name__
        'ConvTranspose2d'
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConv, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input; then it is one.

    Args:
        out_channels: channels of the output.
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W).
        padding: what the matching convolution adds on both sides; here it is cut off: one number or
            (D, H, W).
        output_padding: added to one side of the output: one number or (D, H, W); less than stride
            or dilation.
        groups: channel groups that do not mix; must divide both numbers of channels.
        bias: whether b is learned.
        dilation: distance between the window's elements: one number or (D, H, W).
        padding_mode: "zeros"; nothing else is supported.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, in_channels, D, H, W) or (in_channels, D, H, W); the first one gives in_channels.
        output_size: sizes of the output, as many as the window has dims, instead of output_padding.
        returns: (N, out_channels, D_out, H_out, W_out) or (out_channels, D_out, H_out, W_out),
            D_out = (D - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1;
            H_out and W_out likewise.
        weight: (in_channels, out_channels / groups, KD, KH, KW), bias: (out_channels).

    Raises:
        RuntimeError: for a first input of a wrong number of dims.

    Example:
        >>> conv = clew.nn.LazyConvTranspose3d(6, 3)
        >>> conv(clew.ones(2, 4, 7, 7, 7)).shape, conv.in_channels
        (clew.Size([2, 6, 9, 9, 9]), 4)
        >>> type(conv).__name__
        'ConvTranspose3d'
    """

    cls_to_become = ConvTranspose3d
