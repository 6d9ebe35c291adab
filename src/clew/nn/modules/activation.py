"""Activations; MultiheadAttention is in attention.py."""

from __future__ import annotations

import warnings
from typing import Any

import clew
from clew._provenance import user_level

from .. import functional as F
from ..parameter import Parameter
from ._shortcut import one_call
from .attention import MultiheadAttention
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Inplace(Module):
    """An activation whose only argument is inplace."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(0, x).

    Args:
        inplace: overwrite the input.

    Example:
        >>> clew.nn.ReLU()(clew.tensor([-1., 2.])).tolist()
        [0.0, 2.0]
    """

    @one_call(F.relu, "input", unset=("inplace",))
    def forward(self, input: Any) -> Any:
        return F.relu(input, inplace=True) if self.inplace else F.relu(input)


class Hardtanh(Module):
    """The input, kept within two bounds.

    Args:
        min_val: lower bound.
        max_val: upper bound.
        inplace: overwrite the input.
        min_value: old name of min_val.
        max_value: old name of max_val.
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn(
                "Hardtanh: min_value is deprecated; use min_val",
                FutureWarning,
                stacklevel=user_level(),
            )
            min_val = min_value
        if max_value is not None:
            warnings.warn(
                "Hardtanh: max_value is deprecated; use max_val",
                FutureWarning,
                stacklevel=user_level(),
            )
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(
                f"Hardtanh: max_val must be greater than min_val; got {max_val} and {min_val}"
            )

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (
            ", inplace=True" if self.inplace else ""
        )


class ReLU6(Hardtanh):
    """min(max(0, x), 6).

    Args:
        inplace: overwrite the input.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """The input where it is above a threshold, elsewhere a value.

    Args:
        threshold: the threshold.
        value: the value.
        inplace: overwrite the input.
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (
            ", inplace=True" if self.inplace else ""
        )


class RReLU(Module):
    """Leaky ReLU with a slope drawn at random for each element while training.

    Args:
        lower: least slope.
        upper: greatest slope.
        inplace: overwrite the input.
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (
            ", inplace=True" if self.inplace else ""
        )


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    @one_call(F.sigmoid, "input")
    def forward(self, input: Any) -> Any:
        return F.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent."""

    @one_call(F.tanh, "input")
    def forward(self, input: Any) -> Any:
        return F.tanh(input)


class Hardsigmoid(Module):
    """min(max(0, x / 6 + 1 / 2), 1).

    Args:
        inplace: overwrite the input.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """x times Hardsigmoid(x).

    Args:
        inplace: overwrite the input.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)


class SiLU(_Inplace):
    """x times sigmoid(x).

    Args:
        inplace: overwrite the input.
    """

    def forward(self, input: Any) -> Any:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """x times tanh(softplus(x)).

    Args:
        inplace: overwrite the input.
    """

    def forward(self, input: Any) -> Any:
        return F.mish(input, inplace=self.inplace)


class SELU(_Inplace):
    """The self-normalising exponential linear unit.

    Args:
        inplace: overwrite the input.
    """

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class _Alpha(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """x above zero, alpha (exp(x) - 1) below.

    Args:
        alpha: the lower limit is -alpha.
        inplace: overwrite the input.
    """

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)).

    Args:
        alpha: the lower limit is -alpha.
        inplace: overwrite the input.
    """

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class GLU(Module):
    """One half of the input times the sigmoid of the other.

    Args:
        dim: the dim that is halved.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """x times the normal distribution function of x.

    Args:
        approximate: "none", or "tanh" for the approximation.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """x above zero, a fraction of it below.

    Args:
        negative_slope: the fraction.
        inplace: overwrite the input.
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """Leaky ReLU whose slope is learned.

    Args:
        num_parameters: one slope, or one for each channel.
        init: the slope at the start.
        device: where the parameter lives.
        dtype: what it holds.
    """

    weight: Any

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(clew.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all slopes to init."""
        from ..init import constant_

        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class LogSigmoid(Module):
    """log(sigmoid(x)), without overflow."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta.

    Args:
        beta: the steepness.
        threshold: beyond it (for beta x) the input itself is given.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """Zero within [-lambd, lambd], elsewhere the input.

    Args:
        lambd: the bound.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """The input moved towards zero by lambd, zero within it.

    Args:
        lambd: the bound.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class _AlongDim(Module):
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along a dim.

    Args:
        dim: the dim that sums to one.
    """

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim)


class Softmin(_AlongDim):
    """Softmax of the negated input.

    Args:
        dim: the dim that sums to one.
    """

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of Softmax.

    Args:
        dim: the dim whose exponentials sum to one.
    """

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
