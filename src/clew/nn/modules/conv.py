"""Convolutions and transposed convolutions, lazy ones too."""

from __future__ import annotations

import math
from typing import Any

import clew

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _reverse_repeat_tuple, check_whole, ntuple

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


class _ConvNd(Module):
    """What all convolutions share."""

    weight: Any
    bias: Any
    _nd = 0
    _op: str  # of nn.functional, looked up at every call: others may stand in for it

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_whole(
            self,
            in_channels=in_channels,
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=() if isinstance(padding, str) else padding,
            dilation=dilation,
            output_padding=output_padding,
            groups=groups,
        )
        name = type(self).__name__
        if groups <= 0:
            raise ValueError(f"{name}: groups must be a positive integer; got {groups}")
        if in_channels % groups != 0:
            raise ValueError(
                f"{name}: in_channels must be divisible by groups; got {in_channels} and {groups}"
            )
        if out_channels % groups != 0:
            raise ValueError(
                f"{name}: out_channels must be divisible by groups; got {out_channels} and {groups}"
            )
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"{name}: Invalid padding string {padding!r}, should be one of ('same', "
                    "'valid')"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError(
                    f"{name}: padding='same' is not supported for strided convolutions; "
                    f"got stride {stride}"
                )
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of ('zeros', 'reflect', 'replicate', 'circular'), but "
                "got "
                f"padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # How much pad() adds in the modes other than zeros: last dim first.
        if isinstance(padding, str):
            self._reversed_padding_repeated_twice = [0, 0] * len(kernel_size)
            if padding == "same":
                for i, (d, k) in enumerate(zip(dilation, kernel_size, strict=True)):
                    total = d * (k - 1)
                    at = 2 * (len(kernel_size) - 1 - i)
                    self._reversed_padding_repeated_twice[at] = total // 2
                    self._reversed_padding_repeated_twice[at + 1] = total - total // 2
        else:
            self._reversed_padding_repeated_twice = list(_reverse_repeat_tuple(padding, 2))
        first, second = (
            (in_channels, out_channels // groups)
            if transposed
            else (out_channels, in_channels // groups)
        )
        self.weight = Parameter(
            clew.empty((first, second, *kernel_size), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(clew.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, evenly within 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._nd
        super().__init__(
            in_channels,
            out_channels,
            ntuple(n, kernel_size),
            ntuple(n, stride),
            padding if isinstance(padding, str) else ntuple(n, padding),
            ntuple(n, dilation),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        if self.padding_mode == "zeros":
            return getattr(F, self._op)(
                input, weight, bias, self.stride, self.padding, self.dilation, self.groups
            )
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return getattr(F, self._op)(
            padded, weight, bias, self.stride, 0, self.dilation, self.groups
        )

    def forward(self, input: Any) -> Any:
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # parametrized
            weight, bias = self.weight, self.bias
        return self._conv_forward(input, weight, bias)


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


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._nd
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {self.__class__.__name__}'
            )
        super().__init__(
            in_channels,
            out_channels,
            ntuple(n, kernel_size),
            ntuple(n, stride),
            ntuple(n, padding),
            ntuple(n, dilation),
            True,
            ntuple(n, output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Any, output_size: Any) -> Any:
        if output_size is None:
            return self.output_padding
        n = self._nd
        spatial = input.shape[-n:]
        sizes = [int(s) for s in output_size]
        if len(sizes) in (n + 1, n + 2):
            sizes = sizes[-n:]
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{n + 2} "
                f"elements (got {len(sizes)})"
            )
        least = [
            (spatial[d] - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        most = [least[d] + self.stride[d] - 1 for d in range(n)]
        if any(not lo <= s <= hi for s, lo, hi in zip(sizes, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {least} to "
                f"{most} "
                f"(for an input of {tuple(spatial)})"
            )
        return tuple(s - lo for s, lo in zip(sizes, least, strict=True))

    def forward(self, input: Any, output_size: Any = None) -> Any:
        return getattr(F, self._op)(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


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


class _LazyConv(LazyModuleMixin):
    """Takes in_channels from the first input."""

    def _start(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        me: Any = self
        me.weight = UninitializedParameter(device=device, dtype=dtype)
        me.out_channels = out_channels
        if bias:
            me.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        me: Any = self
        if not self.has_uninitialized_params() and me.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        me: Any = self
        if not self.has_uninitialized_params():
            return
        n = me._nd
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        me.in_channels = input.shape[-n - 1]
        if me.in_channels % me.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        with clew.no_grad():
            first, second = (
                (me.in_channels, me.out_channels // me.groups)
                if me.transposed
                else (me.out_channels, me.in_channels // me.groups)
            )
            me.weight.materialize((first, second, *me.kernel_size))
            if me.bias is not None:
                me.bias.materialize((me.out_channels,))
            me.reset_parameters()


class _LazyPlainConv(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        # Built without channels, and the bias comes after, so that no shape is needed.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._start(out_channels, bias, device, dtype)


class _LazyTransposedConv(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._start(out_channels, bias, device, dtype)


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
