"""Activations; MultiheadAttention is in attention.py."""

from __future__ import annotations

import warnings
from typing import Any

import clew
from clew._base.provenance import user_level

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

    __constants__ = ["inplace"]

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """Rectified linear unit, elementwise: max(0, x).

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.ReLU()(clew.tensor([-1., 2.])).tolist()
        [0.0, 2.0]
    """

    @one_call(F.relu, "input", unset=("inplace",))
    def forward(self, input: Any) -> Any:
        return F.relu(input, inplace=True) if self.inplace else F.relu(input)


class Hardtanh(Module):
    """Keeps each element within two bounds: min(max(x, min_val), max_val).

    Args:
        min_val: lower bound.
        max_val: upper bound.
        inplace: overwrite the input with the result.
        min_value: old name of min_val; warns.
        max_value: old name of max_val; warns.

    Shapes:
        input: any shape.
        returns: input's shape.

    Raises:
        AssertionError: for a max_val that is not above min_val.

    Example:
        >>> clew.nn.Hardtanh(-1., 2.)(clew.tensor([-3., 0.5, 3.])).tolist()
        [-1.0, 0.5, 2.0]
    """

    __constants__ = ["min_val", "max_val", "inplace"]

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
    """ReLU with an upper bound of 6, elementwise: min(max(0, x), 6).

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.ReLU6()(clew.tensor([-1., 2., 9.])).tolist()
        [0.0, 2.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """The elements that are above a threshold, and a fixed value for the others.

    x where x > threshold, else value.

    Args:
        threshold: an element must be greater to be kept.
        value: what replaces the others.
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Threshold(1., 20.)(clew.tensor([0., 1., 2.])).tolist()
        [20.0, 20.0, 2.0]
    """

    __constants__ = ["threshold", "value", "inplace"]

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

    x where x >= 0, else slope x; slope is uniform in [lower, upper] in training and their mean in
    evaluation (Xu et al. 2015, arXiv:1505.00853).

    Args:
        lower: least slope.
        upper: greatest slope.
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> act = clew.nn.RReLU(0.25, 0.75).eval()
        >>> act(clew.tensor([-2., 4.])).tolist()
        [-1.0, 4.0]
    """

    __constants__ = ["lower", "upper", "inplace"]

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
    """Logistic function, elementwise: 1 / (1 + exp(-x)).

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Sigmoid()(clew.tensor([0., 2.]))
        tensor([0.5000, 0.8808])
    """

    @one_call(F.sigmoid, "input")
    def forward(self, input: Any) -> Any:
        return F.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent, elementwise: (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Tanh()(clew.tensor([-1., 0., 1.]))
        tensor([-0.7616,  0.0000,  0.7616])
    """

    @one_call(F.tanh, "input")
    def forward(self, input: Any) -> Any:
        return F.tanh(input)


class Hardsigmoid(Module):
    """Sigmoid made of three straight lines: min(max(0, x / 6 + 1 / 2), 1).

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Hardsigmoid()(clew.tensor([-4., 0., 1.5, 4.])).tolist()
        [0.0, 0.5, 0.75, 1.0]
    """

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """SiLU made cheap: x min(max(0, x + 3), 6) / 6, which is x times Hardsigmoid(x).

    Howard et al. 2019, arXiv:1905.02244, section 5.2.

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Hardswish()(clew.tensor([-4., -1.5, 0., 4.])).tolist()
        [-0.0, -0.375, 0.0, 4.0]
    """

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)


class SiLU(_Inplace):
    """Sigmoid-weighted linear unit, elementwise: x sigmoid(x).

    Elfwing et al. 2018, arXiv:1702.03118; also known as Swish.

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.SiLU()(clew.tensor([-1., 0., 1.]))
        tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Any) -> Any:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """A smooth activation that is not monotonic: x tanh(log(1 + exp(x))).

    Misra 2020, arXiv:1908.08681.

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Mish()(clew.tensor([-1., 0., 1.]))
        tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input: Any) -> Any:
        return F.mish(input, inplace=self.inplace)


class SELU(_Inplace):
    """Self-normalising exponential linear unit: scale (max(0, x) + min(0, alpha (exp(x) - 1))).

    With alpha = 1.6733 and scale = 1.0507 mean 0 and variance 1 are kept from layer to layer
    (Klambauer et al. 2017, arXiv:1706.02515).

    Args:
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.SELU()(clew.tensor([-1., 0., 1.]))
        tensor([-1.1113,  0.0000,  1.0507])
    """

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class _Alpha(Module):
    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """Exponential linear unit: x above zero, alpha (exp(x) - 1) below.

    Clevert et al. 2016, arXiv:1511.07289.

    Args:
        alpha: factor of the negative part; the lower limit is -alpha.
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.ELU()(clew.tensor([-1., 0., 1.]))
        tensor([-0.6321,  0.0000,  1.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """ELU with a continuous slope: max(0, x) + min(0, alpha (exp(x / alpha) - 1)).

    Barron 2017, arXiv:1704.07483.

    Args:
        alpha: how slowly the negative part falls; the lower limit is -alpha.
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.CELU(2.)(clew.tensor([-1., 0., 1.]))
        tensor([-0.7869,  0.0000,  1.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class GLU(Module):
    """Gated linear unit: a sigmoid(b), where a and b are the input's two halves.

    Dauphin et al. 2017, arXiv:1612.08083.

    Args:
        dim: the dim that is halved; its size must be even.

    Shapes:
        input: (..., 2 C, ...) with size 2 C at dim.
        returns: (..., C, ...).

    Example:
        >>> clew.nn.GLU()(clew.tensor([[4., 6., 0., 0.]])).tolist()
        [[2.0, 3.0]]
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Gaussian error linear unit: x Phi(x), Phi the standard normal distribution function.

    Hendrycks and Gimpel 2016, arXiv:1606.08415. The approximation is x / 2 (1 + tanh(sqrt(2 / pi)
    (x + 0.044715 x^3))).

    Args:
        approximate: "none" for the exact function, "tanh" for the approximation.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.GELU()(clew.tensor([-1., 0., 1.]))
        tensor([-0.1587,  0.0000,  0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """ReLU with a small slope below zero: max(0, x) + negative_slope min(0, x).

    Args:
        negative_slope: slope of the negative part.
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.LeakyReLU(0.25)(clew.tensor([-2., 4.])).tolist()
        [-0.5, 4.0]
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """Leaky ReLU whose slope is learned: max(0, x) + weight min(0, x).

    He et al. 2015, arXiv:1502.01852.

    Args:
        num_parameters: 1 for one slope in all, or C for one for each channel.
        init: the slope at the start.
        device: where the parameter lives.
        dtype: what it holds.

    Shapes:
        input: any shape; with num_parameters = C it is (N, C, ...).
        returns: input's shape.

    Example:
        >>> clew.nn.PReLU(2)(clew.tensor([[-4., -8.]])).tolist()
        [[-1.0, -2.0]]
    """

    __constants__ = ["num_parameters"]

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
    """Logarithm of the sigmoid, without overflow: -log(1 + exp(-x)).

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.LogSigmoid()(clew.tensor([-100., 0.]))
        tensor([-100.0000,   -0.6931])
    """

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softsign(Module):
    """A sigmoid with slow tails, elementwise: x / (1 + |x|).

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Softsign()(clew.tensor([-1., 0., 3.])).tolist()
        [-0.5, 0.0, 0.75]
    """

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """What tanh takes away, elementwise: x - tanh(x).

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Tanhshrink()(clew.tensor([-1., 0., 1.]))
        tensor([-0.2384,  0.0000,  0.2384])
    """

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class Softplus(Module):
    """A smooth ReLU: log(1 + exp(beta x)) / beta.

    Args:
        beta: steepness of the bend.
        threshold: where beta x is greater, x itself is given.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Softplus()(clew.tensor([-1., 0., 30.]))
        tensor([ 0.3133,  0.6931, 30.0000])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """Zero within [-lambd, lambd], elsewhere the input: x where |x| > lambd, else 0.

    Args:
        lambd: bound of what becomes zero.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Hardshrink(1.)(clew.tensor([-2., 1., 3.])).tolist()
        [-2.0, 0.0, 3.0]
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """Moves each element towards zero by lambd: sign(x) max(|x| - lambd, 0).

    Args:
        lambd: how far; not negative.

    Shapes:
        input: any shape.
        returns: input's shape.

    Example:
        >>> clew.nn.Softshrink(1.)(clew.tensor([-2., 0.5, 3.])).tolist()
        [-1.0, 0.0, 2.0]
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class _AlongDim(Module):
    __constants__ = ["dim"]
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
    """Makes positive weights that sum to one along a dim: exp(x_i) / sum_j exp(x_j).

    Args:
        dim: the dim that sums to one; None chooses one by the number of dims and warns.

    Shapes:
        input: any shape with the dim.
        returns: input's shape.

    Example:
        >>> clew.nn.Softmax(dim=1)(clew.tensor([[0., 0., 0., 0.]])).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim)


class Softmin(_AlongDim):
    """Softmax of the negated input: exp(-x_i) / sum_j exp(-x_j).

    Args:
        dim: the dim that sums to one; None chooses one by the number of dims and warns.

    Shapes:
        input: any shape with the dim.
        returns: input's shape.

    Example:
        >>> clew.nn.Softmin(dim=0)(clew.tensor([0., 1.]))
        tensor([0.7311, 0.2689])
    """

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of Softmax, without overflow: x_i - log(sum_j exp(x_j)).

    Args:
        dim: the dim whose exponentials sum to one; None chooses one and warns.

    Shapes:
        input: any shape with the dim.
        returns: input's shape.

    Example:
        >>> clew.nn.LogSoftmax(dim=0)(clew.tensor([0., 1000.])).tolist()
        [-1000.0, 0.0]
    """

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of each pixel: exp(x_c) / sum_k exp(x_k).

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: input's shape.

    Raises:
        ValueError: for an input of other than 3 or 4 dims.

    Example:
        >>> clew.nn.Softmax2d()(clew.zeros(1, 2, 1, 3)).tolist()
        [[[[0.5, 0.5, 0.5]], [[0.5, 0.5, 0.5]]]]
    """

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
