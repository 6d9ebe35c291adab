"""Instance normalisation, lazy forms too."""

from __future__ import annotations

import warnings
from typing import Any

from clew._base.provenance import user_level

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase
from .utils import check_dims

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _nd = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Any) -> None:
        check_dims(self, input, self._nd + 1, self._nd + 2)

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        single = input.dim() == self._nd + 1
        channels = input.shape[0 if single else 1]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={0 if single else 1} to match num_features "
                    f"({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={0 if single else 1} does not match num_features; it is not "
                "used, since affine=False",
                stacklevel=user_level(),
            )
        out = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L).

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var over L of each channel of
    each sample, in training and evaluation alike unless track_running_stats. Ulyanov et al. 2016,
    arXiv:1607.08022.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: input's shape.

    Raises:
        ValueError: for an input of a wrong number of dims, or, with affine, of channels.

    Example:
        >>> norm = clew.nn.InstanceNorm1d(1, eps=1e-12)
        >>> norm(clew.tensor([[[1., 3.]], [[10., 30.]]])).tolist()
        [[[-1.0, 1.0]], [[-1.0, 1.0]]]
    """

    _nd = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W).

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var over H and W of each
    channel of each sample, in training and evaluation alike unless track_running_stats. Ulyanov et
    al. 2016, arXiv:1607.08022.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: input's shape.

    Raises:
        ValueError: for an input of a wrong number of dims, or, with affine, of channels.

    Example:
        >>> norm = clew.nn.InstanceNorm2d(3, affine=True)
        >>> norm(clew.ones(2, 3, 4, 4)).shape, norm.weight.shape
        (clew.Size([2, 3, 4, 4]), clew.Size([3]))
    """

    _nd = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W).

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var over D, H and W of each
    channel of each sample, in training and evaluation alike unless track_running_stats. Ulyanov et
    al. 2016, arXiv:1607.08022.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: input's shape.

    Raises:
        ValueError: for an input of a wrong number of dims, or, with affine, of channels.

    Example:
        >>> clew.nn.InstanceNorm3d(3)(clew.ones(2, 3, 4, 4, 4)).abs().max().item()
        0.0
    """

    _nd = 3


class _LazyInstanceNorm(_LazyNormBase):
    def initialize_parameters(self, input: Any) -> None:
        me: Any = self
        at = 0 if input.dim() == me._nd + 1 else 1
        if self.has_uninitialized_params():
            me.num_features = input.shape[at]
            for t in (me.weight, me.bias, me.running_mean, me.running_var):
                if t is not None:
                    t.materialize((me.num_features,))
            me.reset_parameters()
        elif me.num_features == 0:
            me.num_features = input.shape[at]


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """An InstanceNorm1d that takes num_features from its first input; then it is one.

    Args:
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, L) or (C, L); the first one's C becomes num_features.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LazyInstanceNorm1d(affine=True)
        >>> norm(clew.ones(2, 3, 5)).shape, norm.num_features
        (clew.Size([2, 3, 5]), 3)
        >>> type(norm).__name__
        'InstanceNorm1d'
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """An InstanceNorm2d that takes num_features from its first input; then it is one.

    Args:
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, H, W) or (C, H, W); the first one's C becomes num_features.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LazyInstanceNorm2d(affine=True)
        >>> norm(clew.ones(2, 3, 5, 5)).shape, norm.num_features
        (clew.Size([2, 3, 5, 5]), 3)
        >>> type(norm).__name__
        'InstanceNorm2d'
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """An InstanceNorm3d that takes num_features from its first input; then it is one.

    Args:
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W); the first one's C becomes num_features.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LazyInstanceNorm3d(affine=True)
        >>> norm(clew.ones(2, 3, 4, 5, 5)).shape, norm.num_features
        (clew.Size([2, 3, 4, 5, 5]), 3)
        >>> type(norm).__name__
        'InstanceNorm3d'
    """

    cls_to_become = InstanceNorm3d
