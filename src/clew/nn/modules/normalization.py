"""Layer, group, RMS and local response normalisation."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import clew

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._affine import add_affine
from ._shortcut import one_call
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides by a power of the mean square over neighbouring channels.

    y_c = x_c / (k + alpha / size sum over the window of x_j^2)^beta. Krizhevsky et al. 2012,
    section 3.3.

    Args:
        size: how many channels are summed, the own one in their middle.
        alpha: factor of the mean square.
        beta: the power.
        k: summand, so that it is never zero.

    Shapes:
        input: (N, C, ...), 3 or more dims.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LocalResponseNorm(1, alpha=1., beta=1.)
        >>> norm(clew.tensor([[[1.], [3.]]])).flatten()
        tensor([0.5000, 0.3000])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm under its oldest name.

    y_c = x_c / (k + alpha / size sum over the window of x_j^2)^beta. Krizhevsky et al. 2012,
    section 3.3.

    Args:
        size: how many channels are summed, the own one in their middle.
        alpha: factor of the mean square.
        beta: the power.
        k: summand, so that it is never zero.

    Shapes:
        input: (N, C, H, W) or another of 3 or more dims.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.CrossMapLRN2d(1, alpha=1., beta=1.)
        >>> norm(clew.tensor([[[[1.]], [[3.]]]])).flatten()
        tensor([0.5000, 0.3000])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class LayerNorm(Module):
    """Normalises over the last dims of each sample.

    y = (x - mean) / sqrt(var + eps) weight + bias with the (biased) var, in training and evaluation
    alike. Ba et al. 2016, arXiv:1607.06450.

    Args:
        normalized_shape: sizes of these dims: one number for the last dim, or several.
        eps: added to the variance, so that it is never zero.
        elementwise_affine: learn weight and bias, one number for each element.
        bias: learn the bias; False leaves the weight alone.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (..., *normalized_shape).
        returns: input's shape.
        weight, bias: normalized_shape.

    Example:
        >>> norm = clew.nn.LayerNorm(2, eps=1e-12)
        >>> norm(clew.tensor([[1., 3.], [10., 30.]])).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    weight: Any
    bias: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, Integral):  # NumPy's are no int
            normalized_shape = (int(normalized_shape),)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        add_affine(self, self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    @one_call(F.layer_norm, "input", "normalized_shape", "weight", "bias", "eps")
    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        text = (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
        return f"{text}, bias={self.bias is not None}"


class GroupNorm(Module):
    """Normalises each group of channels of each sample.

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var over C / num_groups
    channels and all further dims. Wu and He 2018, arXiv:1803.08494.

    Args:
        num_groups: how many groups; must divide num_channels. 1 is like LayerNorm, C like
            InstanceNorm.
        num_channels: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        affine: learn weight and bias, one number for each channel.
        device: where the parameters live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, ...).
        returns: input's shape.
        weight, bias: (C).

    Raises:
        ValueError: for a num_groups that does not divide num_channels.

    Example:
        >>> norm = clew.nn.GroupNorm(1, 2, eps=1e-12)
        >>> norm(clew.tensor([[1., 3.], [10., 30.]])).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    weight: Any
    bias: Any

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        add_affine(self, num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    @one_call(F.group_norm, "input", "num_groups", "weight", "bias", "eps")
    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        text = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{text}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Divides by the root mean square over the last dims of each sample.

    y = x / sqrt(mean(x^2) + eps) weight. Zhang and Sennrich 2019, arXiv:1910.07467.

    Args:
        normalized_shape: sizes of these dims: one number for the last dim, or several.
        eps: added to the mean square; None takes the dtype's epsilon.
        elementwise_affine: learn the weight, one number for each element.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        x: (..., *normalized_shape).
        returns: x's shape.
        weight: normalized_shape.

    Example:
        >>> norm = clew.nn.RMSNorm(2, elementwise_affine=False)
        >>> norm(clew.tensor([[1., 7.]]))
        tensor([[0.2000, 1.4000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    weight: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, Integral):  # NumPy's are no int
            normalized_shape = (int(normalized_shape),)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(clew.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Any) -> Any:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
