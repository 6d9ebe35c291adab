"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

import clew

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from ._shortcut import one_call
from .lazy import LazyModuleMixin
from .module import Module
from .utils import check_whole

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Gives its input back; takes any arguments.

    Args:
        args: not used.
        kwargs: not used.

    Shapes:
        input: anything, of any shape.
        returns: input itself.

    Example:
        >>> clew.nn.Identity(54, unused=True)(3)
        3
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """Affine map of the last dim: y = x A^T + b, A the weight.

    Args:
        in_features: size of each input row.
        out_features: size of each output row.
        bias: whether b is learned.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (..., in_features).
        returns: (..., out_features).
        weight: (out_features, in_features), bias: (out_features).

    Raises:
        TypeError: for a size that is no whole number.

    Example:
        >>> layer = clew.nn.Linear(20, 30)
        >>> layer(clew.ones(5, 20)).shape, layer.weight.shape
        (clew.Size([5, 30]), clew.Size([30, 20]))
    """

    __constants__ = ["in_features", "out_features"]

    in_features: int
    out_features: int
    weight: Any
    bias: Any

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_whole(self, in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(clew.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(clew.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, evenly within 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    @one_call(F.linear, "input", "weight", "bias")
    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear; the class of MultiheadAttention's out_proj."""


class Bilinear(Module):
    """Bilinear form of two inputs, one for each output: y_o = x1^T A_o x2 + b_o.

    Args:
        in1_features: size of each row of the first input.
        in2_features: size of each row of the second input.
        out_features: size of each output row.
        bias: whether b is learned.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input1: (..., in1_features).
        input2: (..., in2_features), the other dims as input1's.
        returns: (..., out_features).
        weight: (out_features, in1_features, in2_features), bias: (out_features).

    Raises:
        ValueError: for an in1_features that is not positive.

    Example:
        >>> form = clew.nn.Bilinear(2, 3, 4)
        >>> form(clew.ones(5, 2), clew.ones(5, 3)).shape
        clew.Size([5, 4])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    weight: Any
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(
            clew.empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(clew.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, evenly within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that takes in_features from its first input; then it is one.

    Args:
        out_features: size of each output row.
        bias: whether b is learned.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (..., in_features); the first one gives in_features.
        returns: (..., out_features).

    Example:
        >>> layer = clew.nn.LazyLinear(3)
        >>> layer(clew.ones(5, 4)).shape, layer.in_features
        (clew.Size([5, 3]), 4)
        >>> type(layer).__name__
        'Linear'
    """

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        if self.has_uninitialized_params():
            with clew.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        elif self.in_features == 0:  # the parameters came from a state_dict
            self.in_features = self.weight.shape[-1]
