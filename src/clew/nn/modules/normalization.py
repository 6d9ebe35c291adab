"""Layer, group, RMS and local response normalisation."""

from __future__ import annotations

from typing import Any

import clew

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._shortcut import one_call
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides by a power of the mean square over neighbouring channels.

    Args:
        size: how many channels.
        alpha: factor of the mean square.
        beta: the power.
        k: summand.
    """

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

    Args:
        size: how many channels.
        alpha: factor of the mean square.
        beta: the power.
        k: summand.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class LayerNorm(Module):
    """Normalises over the last dims.

    Args:
        normalized_shape: their sizes.
        eps: added to the variance.
        elementwise_affine: learn a factor and a summand for each element.
        bias: learn the summand.
        device: where the parameters live.
        dtype: what they hold.

    Example:
        >>> tuple(clew.nn.LayerNorm(4)(clew.ones(2, 4)).shape)
        (2, 4)
    """

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
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(clew.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if elementwise_affine and bias:
            self.bias = Parameter(clew.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
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

    Args:
        num_groups: how many groups.
        num_channels: how many channels.
        eps: added to the variance.
        affine: learn a factor and a summand for each channel.
        device: where the parameters live.
        dtype: what they hold.
        bias: learn the summand.
    """

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
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = Parameter(clew.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(clew.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
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
    """Divides by the root mean square over the last dims.

    Args:
        normalized_shape: their sizes.
        eps: added to the mean square; None takes the dtype's epsilon.
        elementwise_affine: learn a factor for each element.
        device: where the parameters live.
        dtype: what they hold.
    """

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
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
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
