"""Pooling modules."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .module import Module
from .utils import _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    _op: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._op(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Greatest value of each window of (N, C, L).

    Args:
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        padding: added on both sides.
        dilation: distance between the window's elements.
        return_indices: give the places of the values too.
        ceil_mode: count a last window that reaches over the end.
    """

    _op = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Greatest value of each window of (N, C, H, W).

    Args:
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        padding: added on both sides.
        dilation: distance between the window's elements.
        return_indices: give the places of the values too.
        ceil_mode: count a last window that reaches over the end.

    Example:
        >>> clew.nn.MaxPool2d(2)(clew.tensor([[[[1., 2.], [3., 4.]]]])).item()
        4.0
    """

    _op = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Greatest value of each window of (N, C, D, H, W).

    Args:
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        padding: added on both sides.
        dilation: distance between the window's elements.
        return_indices: give the places of the values too.
        ceil_mode: count a last window that reaches over the end.
    """

    _op = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    _op: Any = None
    _repeat: Any = None

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._repeat(kernel_size)
        self.stride = self._repeat(stride if stride is not None else kernel_size)
        self.padding = self._repeat(padding)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return self._op(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Inverse of MaxPool1d, with zeros where values were lost.

    Args:
        kernel_size: as in MaxPool1d.
        stride: as in MaxPool1d.
        padding: as in MaxPool1d.
    """

    _op = staticmethod(F.max_unpool1d)
    _repeat = staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    """Inverse of MaxPool2d, with zeros where values were lost.

    Args:
        kernel_size: as in MaxPool2d.
        stride: as in MaxPool2d.
        padding: as in MaxPool2d.
    """

    _op = staticmethod(F.max_unpool2d)
    _repeat = staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """Inverse of MaxPool3d, with zeros where values were lost.

    Args:
        kernel_size: as in MaxPool3d.
        stride: as in MaxPool3d.
        padding: as in MaxPool3d.
    """

    _op = staticmethod(F.max_unpool3d)
    _repeat = staticmethod(_triple)


class AvgPool1d(Module):
    """Mean of each window of (N, C, L).

    Args:
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        padding: zeros added on both sides.
        ceil_mode: count a last window that reaches over the end.
        count_include_pad: count the added zeros.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    _op: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return self._op(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPoolNd):
    """Mean of each window of (N, C, H, W).

    Args:
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        padding: zeros added on both sides.
        ceil_mode: count a last window that reaches over the end.
        count_include_pad: count the added zeros.
        divisor_override: divide by this instead.
    """

    _op = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolNd):
    """Mean of each window of (N, C, D, H, W).

    Args:
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        padding: zeros added on both sides.
        ceil_mode: count a last window that reaches over the end.
        count_include_pad: count the added zeros.
        divisor_override: divide by this instead.
    """

    _op = staticmethod(F.avg_pool3d)


class _FractionalMaxPoolNd(Module):
    _op: Any = None
    _repeat: Any = None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._repeat(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = self._repeat(output_size) if output_size is not None else None
        self.output_ratio = self._repeat(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        return self._op(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling of images with windows at random places.

    Args:
        kernel_size: size of the window.
        output_size: the output's size.
        output_ratio: or its part of the input's size.
        return_indices: give the places of the values too.
    """

    _op = staticmethod(F.fractional_max_pool2d)
    _repeat = staticmethod(_pair)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling of volumes with windows at random places.

    Args:
        kernel_size: size of the window.
        output_size: the output's size.
        output_ratio: or its part of the input's size.
        return_indices: give the places of the values too.
    """

    _op = staticmethod(F.fractional_max_pool3d)
    _repeat = staticmethod(_triple)


class _LPPoolNd(Module):
    _op: Any = None

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._op(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """p-norm of each window of (N, C, L).

    Args:
        norm_type: the norm's order.
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        ceil_mode: count a last window that reaches over the end.
    """

    _op = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """p-norm of each window of (N, C, H, W).

    Args:
        norm_type: the norm's order.
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        ceil_mode: count a last window that reaches over the end.
    """

    _op = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """p-norm of each window of (N, C, D, H, W).

    Args:
        norm_type: the norm's order.
        kernel_size: size of the window.
        stride: step of the window, its size by default.
        ceil_mode: count a last window that reaches over the end.
    """

    _op = staticmethod(F.lp_pool3d)


class _AdaptiveMaxPoolNd(Module):
    _op: Any = None

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return self._op(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, L) to a given size.

    Args:
        output_size: the size.
        return_indices: give the places of the values too.
    """

    _op = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, H, W) to a given size.

    Args:
        output_size: the size; None keeps the input's.
        return_indices: give the places of the values too.
    """

    _op = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, D, H, W) to a given size.

    Args:
        output_size: the size; None keeps the input's.
        return_indices: give the places of the values too.
    """

    _op = staticmethod(F.adaptive_max_pool3d)


class _AdaptiveAvgPoolNd(Module):
    _op: Any = None

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return self._op(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean pooling of (N, C, L) to a given size.

    Args:
        output_size: the size.
    """

    _op = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean pooling of (N, C, H, W) to a given size.

    Args:
        output_size: the size; None keeps the input's.
    """

    _op = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean pooling of (N, C, D, H, W) to a given size.

    Args:
        output_size: the size; None keeps the input's.
    """

    _op = staticmethod(F.adaptive_avg_pool3d)
