"""Activations made of straight pieces, as clew.nn.modules.activation offers them."""

from __future__ import annotations

import warnings
from typing import Any

import clew
from clew._base.provenance import user_level

from .. import functional as F
from ..parameter import Parameter
from ._shortcut import one_call
from .module import Module


class _Inplace(Module):
    """An activation whose only argument is inplace."""

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)


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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

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

    __module__ = "clew.nn.modules.activation"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)
