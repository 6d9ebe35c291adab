"""Activations; _piecewise.py has those of straight pieces, attention.py MultiheadAttention."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._piecewise import (
    Hardshrink,
    Hardsigmoid,
    Hardtanh,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Softshrink,
    Threshold,
    _Inplace,
)
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

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


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

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


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
