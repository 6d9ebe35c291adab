"""What convolutions share, transposed and lazy ones too: their constructors and the calls."""

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


def _check_conv(
    name: str, in_channels: int, out_channels: int, groups: int, padding: Any, stride: Any
) -> None:
    """Raises where channels do not fit the groups, or a padding's name the strides."""
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
                f"{name}: Invalid padding string {padding!r}, should be one of ('same', 'valid')"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError(
                f"{name}: padding='same' is not supported for strided convolutions; "
                f"got stride {stride}"
            )


def _pads(padding: Any, dilation: tuple[int, ...], kernel_size: tuple[int, ...]) -> list[int]:
    """What pad() adds in the modes other than zeros: before and after each dim, the last first."""
    if not isinstance(padding, str):
        return list(_reverse_repeat_tuple(padding, 2))
    pads = [0, 0] * len(kernel_size)
    if padding == "same":
        for i, (d, k) in enumerate(zip(dilation, kernel_size, strict=True)):
            total = d * (k - 1)
            at = 2 * (len(kernel_size) - 1 - i)
            pads[at] = total // 2
            pads[at + 1] = total - total // 2
    return pads


class _ConvNd(Module):
    """What all convolutions share."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

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
        _check_conv(type(self).__name__, in_channels, out_channels, groups, padding, stride)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"{type(self).__name__}: padding_mode must be one of ('zeros', 'reflect', "
                f"'replicate', 'circular'), but got padding_mode='{padding_mode}'"
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
        self._reversed_padding_repeated_twice = _pads(padding, dilation, kernel_size)
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
                f"{type(self).__name__}: requested an output size of {sizes}, but valid sizes "
                f"range from {least} to {most} (for an input of {tuple(spatial)})"
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
