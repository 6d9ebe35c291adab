"""Pooling modules."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._pool_base import (
    _AdaptiveAvgPoolNd,
    _AdaptiveMaxPoolNd,
    _AvgPoolNd,
    _FractionalMaxPoolNd,
    _LPPoolNd,
    _MaxPoolNd,
    _MaxUnpoolNd,
)
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


class MaxPool1d(_MaxPoolNd):
    """Greatest value of each window of (N, C, L).

    Args:
        kernel_size: size of the window: a number.
        stride: step of the window: a number; its size by default.
        padding: -inf added on both sides: a number; at most half the window.
        dilation: distance between the window's elements: a number.
        return_indices: also return the place of each value, an index into the last dim.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: (N, C, L_out) or (C, L_out),
            L_out = floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1; with
            return_indices a pair of that and int64 indices of the same shape.

    Raises:
        RuntimeError: for a padding of more than half the window.

    Example:
        >>> clew.nn.MaxPool1d(2)(clew.tensor([[[1., 3., 2., 0., 9.]]])).tolist()
        [[[3.0, 2.0]]]
        >>> clew.nn.MaxPool1d(2, ceil_mode=True)(clew.tensor([[[1., 3., 2., 0., 9.]]])).tolist()
        [[[3.0, 2.0, 9.0]]]
    """

    _op = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """Greatest value of each window of (N, C, H, W).

    Args:
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W); its size by default.
        padding: -inf added on both sides: one number or (H, W); at most half the window.
        dilation: distance between the window's elements: one number or (H, W).
        return_indices: also return the place of each value, an index into the last 2 dims laid
            flat.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C, H_out, W_out) or (C, H_out, W_out),
            H_out = floor((H + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1 and W_out
            likewise; with return_indices a pair of that and int64 indices of the same shape.

    Raises:
        RuntimeError: for a padding of more than half the window.

    Example:
        >>> clew.nn.MaxPool2d(2)(clew.tensor([[[[1., 2.], [3., 4.]]]])).item()
        4.0
    """

    _op = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """Greatest value of each window of (N, C, D, H, W).

    Args:
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W); its size by default.
        padding: -inf added on both sides: one number or (D, H, W); at most half the window.
        dilation: distance between the window's elements: one number or (D, H, W).
        return_indices: also return the place of each value, an index into the last 3 dims laid
            flat.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out),
            D_out = floor((D + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1; H_out and
            W_out likewise; with return_indices a pair of that and int64 indices of the same shape.

    Raises:
        RuntimeError: for a padding of more than half the window.

    Example:
        >>> clew.nn.MaxPool3d(2)(clew.ones(1, 2, 5, 7, 9)).shape
        clew.Size([1, 2, 2, 3, 4])
    """

    _op = "max_pool3d"


class MaxUnpool1d(_MaxUnpoolNd):
    """Inverse of MaxPool1d, with zeros where values were lost.

    Args:
        kernel_size: as in MaxPool1d.
        stride: as in MaxPool1d. Its size by default.
        padding: as in MaxPool1d.

    Shapes:
        input: (N, C, L) or (C, L), what MaxPool1d gave.
        indices: input's shape, the places that it gave with return_indices.
        output_size: sizes of the output, where several sizes are pooled to input's.
        returns: (N, C, L_out) or (C, L_out),
            L_out = (L - 1) stride - 2 padding + kernel_size, or output_size.

    Example:
        >>> pool = clew.nn.MaxPool1d(2, return_indices=True)
        >>> values, places = pool(clew.tensor([[[1., 3., 4., 2.]]]))
        >>> clew.nn.MaxUnpool1d(2)(values, places).tolist()
        [[[0.0, 3.0, 4.0, 0.0]]]
    """

    _op = "max_unpool1d"
    _repeat = staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    """Inverse of MaxPool2d, with zeros where values were lost.

    Args:
        kernel_size: as in MaxPool2d.
        stride: as in MaxPool2d. Its size by default.
        padding: as in MaxPool2d.

    Shapes:
        input: (N, C, H, W) or (C, H, W), what MaxPool2d gave.
        indices: input's shape, the places that it gave with return_indices.
        output_size: sizes of the output, where several sizes are pooled to input's.
        returns: (N, C, H_out, W_out) or (C, H_out, W_out),
            H_out = (H - 1) stride - 2 padding + kernel_size and W_out likewise, or output_size.

    Example:
        >>> pool = clew.nn.MaxPool2d(2, return_indices=True)
        >>> values, places = pool(clew.tensor([[[1., 2.], [4., 3.]]]))
        >>> clew.nn.MaxUnpool2d(2)(values, places).tolist()
        [[[0.0, 0.0], [4.0, 0.0]]]
    """

    _op = "max_unpool2d"
    _repeat = staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """Inverse of MaxPool3d, with zeros where values were lost.

    Args:
        kernel_size: as in MaxPool3d.
        stride: as in MaxPool3d. Its size by default.
        padding: as in MaxPool3d.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W), what MaxPool3d gave.
        indices: input's shape, the places that it gave with return_indices.
        output_size: sizes of the output, where several sizes are pooled to input's.
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out),
            D_out = (D - 1) stride - 2 padding + kernel_size; H_out and W_out likewise, or
            output_size.

    Example:
        >>> pool = clew.nn.MaxPool3d(2, return_indices=True)
        >>> values, places = pool(clew.ones(1, 1, 4, 4, 4))
        >>> clew.nn.MaxUnpool3d(2)(values, places).sum().item()
        8.0
    """

    _op = "max_unpool3d"
    _repeat = staticmethod(_triple)


class AvgPool1d(_AvgPoolNd):
    """Mean of each window of (N, C, L).

    Args:
        kernel_size: size of the window: a number.
        stride: step of the window: a number; its size by default.
        padding: zeros added on both sides: a number; at most half the window.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.
        count_include_pad: count the added zeros as elements of the mean.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: (N, C, L_out) or (C, L_out),
            L_out = floor((L + 2 padding - kernel_size) / stride) + 1.

    Raises:
        RuntimeError: for a padding of more than half the window.

    Example:
        >>> clew.nn.AvgPool1d(2)(clew.tensor([[[1., 3., 2., 0.]]])).tolist()
        [[[2.0, 1.0]]]
    """

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        step = _single(kernel_size if stride is None else stride)
        super().__init__(_single(kernel_size), step, _single(padding), ceil_mode, count_include_pad)
        del self.divisor_override  # it has none

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPoolNd):
    """Mean of each window of (N, C, H, W).

    Args:
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W); its size by default.
        padding: zeros added on both sides: one number or (H, W); at most half the window.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.
        count_include_pad: count the added zeros as elements of the mean.
        divisor_override: divide by this instead of the number of elements.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C, H_out, W_out) or (C, H_out, W_out),
            H_out = floor((H + 2 padding - kernel_size) / stride) + 1 and W_out likewise.

    Raises:
        RuntimeError: for a padding of more than half the window.

    Example:
        >>> clew.nn.AvgPool2d(2)(clew.tensor([[[1., 2.], [3., 4.]]])).item()
        2.5
        >>> clew.nn.AvgPool2d(3, stride=2, padding=1)(clew.ones(1, 2, 8, 8)).shape
        clew.Size([1, 2, 4, 4])
    """

    _op = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """Mean of each window of (N, C, D, H, W).

    Args:
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W); its size by default.
        padding: zeros added on both sides: one number or (D, H, W); at most half the window.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.
        count_include_pad: count the added zeros as elements of the mean.
        divisor_override: divide by this instead of the number of elements.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out),
            D_out = floor((D + 2 padding - kernel_size) / stride) + 1; H_out and W_out likewise.

    Raises:
        RuntimeError: for a padding of more than half the window.

    Example:
        >>> clew.nn.AvgPool3d(2)(clew.ones(1, 2, 5, 7, 9)).shape
        clew.Size([1, 2, 2, 3, 4])
    """

    _op = "avg_pool3d"


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling of images with windows at random places.

    The windows may overlap, and their steps change at random from call to call. Graham 2014,
    arXiv:1412.6071.

    Args:
        kernel_size: size of the window: one number or (H, W).
        output_size: the output's size: one number or (H, W).
        output_ratio: or its part of the input's size, in (0, 1); one of the two must be given.
        return_indices: also return the place of each value, an index into the last 2 dims laid
            flat.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C, H_out, W_out) or (C, H_out, W_out), output_size or
            H_out = floor(output_ratio H) and W_out likewise; with return_indices a pair of that and
            int64 indices of the same shape.

    Raises:
        ValueError: for neither or both of output_size and output_ratio, or a ratio out of (0, 1).

    Example:
        >>> clew.nn.FractionalMaxPool2d(2, output_ratio=0.7)(clew.ones(1, 2, 10, 10)).shape
        clew.Size([1, 2, 7, 7])
    """

    _op = "fractional_max_pool2d"
    _repeat = staticmethod(_pair)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling of volumes with windows at random places.

    The windows may overlap, and their steps change at random from call to call. Graham 2014,
    arXiv:1412.6071.

    Args:
        kernel_size: size of the window: one number or (D, H, W).
        output_size: the output's size: one number or (D, H, W).
        output_ratio: or its part of the input's size, in (0, 1); one of the two must be given.
        return_indices: also return the place of each value, an index into the last 3 dims laid
            flat.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), output_size or
            D_out = floor(output_ratio D); H_out and W_out likewise; with return_indices a pair of
            that and int64 indices of the same shape.

    Raises:
        ValueError: for neither or both of output_size and output_ratio, or a ratio out of (0, 1).

    Example:
        >>> clew.nn.FractionalMaxPool3d(2, output_size=4)(clew.ones(1, 2, 9, 9, 9)).shape
        clew.Size([1, 2, 4, 4, 4])
    """

    _op = "fractional_max_pool3d"
    _repeat = staticmethod(_triple)


class LPPool1d(_LPPoolNd):
    """p-norm of each window of (N, C, L).

    (sum over the window of x^p)^(1/p) with p = norm_type; an odd p is meant for inputs that are not
    negative.

    Args:
        norm_type: p, the norm's order: 1 sums, a great one tends to the maximum.
        kernel_size: size of the window: a number.
        stride: step of the window: a number; its size by default.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: (N, C, L_out) or (C, L_out),
            L_out = floor((L - kernel_size) / stride) + 1.

    Example:
        >>> clew.nn.LPPool1d(2., 2)(clew.tensor([[[3., -4.]]])).tolist()
        [[[5.0]]]
    """

    _op = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """p-norm of each window of (N, C, H, W).

    (sum over the window of x^p)^(1/p) with p = norm_type; an odd p is meant for inputs that are not
    negative.

    Args:
        norm_type: p, the norm's order: 1 sums, a great one tends to the maximum.
        kernel_size: size of the window: one number or (H, W).
        stride: step of the window: one number or (H, W); its size by default.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C, H_out, W_out) or (C, H_out, W_out),
            H_out = floor((H - kernel_size) / stride) + 1 and W_out likewise.

    Example:
        >>> clew.nn.LPPool2d(1., 2)(clew.tensor([[[1., 2.], [3., 4.]]])).tolist()
        [[[10.0]]]
    """

    _op = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """p-norm of each window of (N, C, D, H, W).

    (sum over the window of x^p)^(1/p) with p = norm_type; an odd p is meant for inputs that are not
    negative.

    Args:
        norm_type: p, the norm's order: 1 sums, a great one tends to the maximum.
        kernel_size: size of the window: one number or (D, H, W).
        stride: step of the window: one number or (D, H, W); its size by default.
        ceil_mode: ceil instead of floor below; a last window that would start after the input is
            left out.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out),
            D_out = floor((D - kernel_size) / stride) + 1; H_out and W_out likewise.

    Example:
        >>> clew.nn.LPPool3d(2., 2)(clew.ones(1, 2, 5, 7, 9)).shape
        clew.Size([1, 2, 2, 3, 4])
    """

    _op = "lp_pool3d"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, L) to a given size, whatever the input's.

    Window i reaches from floor(i L / L_out) to ceil((i + 1) L / L_out).

    Args:
        output_size: the output's size: a number.
        return_indices: also return the place of each value, an index into the last dim.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: (N, C, L_out) or (C, L_out), L_out = output_size; with return_indices a pair of
            that and int64 indices of the same shape.

    Example:
        >>> clew.nn.AdaptiveMaxPool1d(2)(clew.tensor([[[1., 2., 3., 4., 5.]]])).tolist()
        [[[3.0, 5.0]]]
    """

    _op = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, H, W) to a given size, whatever the input's.

    Window i reaches from floor(i H / H_out) to ceil((i + 1) H / H_out), and so over W.

    Args:
        output_size: the output's size: one number or (H, W); None keeps the input's.
        return_indices: also return the place of each value, an index into the last 2 dims laid
            flat.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C, H_out, W_out) or (C, H_out, W_out), (H_out, W_out) = output_size; with
            return_indices a pair of that and int64 indices of the same shape.

    Example:
        >>> clew.nn.AdaptiveMaxPool2d((2, None))(clew.ones(1, 2, 7, 9)).shape
        clew.Size([1, 2, 2, 9])
    """

    _op = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, D, H, W) to a given size, whatever the input's.

    Window i reaches from floor(i D / D_out) to ceil((i + 1) D / D_out), and so over H and W.

    Args:
        output_size: the output's size: one number or (D, H, W); None keeps the input's.
        return_indices: also return the place of each value, an index into the last 3 dims laid
            flat.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), (D_out, H_out, W_out) =
            output_size; with return_indices a pair of that and int64 indices of the same shape.

    Example:
        >>> clew.nn.AdaptiveMaxPool3d(2)(clew.ones(1, 2, 5, 7, 9)).shape
        clew.Size([1, 2, 2, 2, 2])
    """

    _op = "adaptive_max_pool3d"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean pooling of (N, C, L) to a given size, whatever the input's.

    Window i reaches from floor(i L / L_out) to ceil((i + 1) L / L_out).

    Args:
        output_size: the output's size: a number.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: (N, C, L_out) or (C, L_out), L_out = output_size.

    Example:
        >>> clew.nn.AdaptiveAvgPool1d(2)(clew.tensor([[[1., 2., 3., 4., 5.]]])).tolist()
        [[[2.0, 4.0]]]
    """

    _op = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean pooling of (N, C, H, W) to a given size, whatever the input's.

    Window i reaches from floor(i H / H_out) to ceil((i + 1) H / H_out), and so over W.

    Args:
        output_size: the output's size: one number or (H, W); None keeps the input's.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C, H_out, W_out) or (C, H_out, W_out), (H_out, W_out) = output_size.

    Example:
        >>> clew.nn.AdaptiveAvgPool2d((2, None))(clew.ones(1, 2, 7, 9)).shape
        clew.Size([1, 2, 2, 9])
    """

    _op = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean pooling of (N, C, D, H, W) to a given size, whatever the input's.

    Window i reaches from floor(i D / D_out) to ceil((i + 1) D / D_out), and so over H and W.

    Args:
        output_size: the output's size: one number or (D, H, W); None keeps the input's.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), (D_out, H_out, W_out) =
            output_size.

    Example:
        >>> clew.nn.AdaptiveAvgPool3d(2)(clew.ones(1, 2, 5, 7, 9)).shape
        clew.Size([1, 2, 2, 2, 2])
    """

    _op = "adaptive_avg_pool3d"
