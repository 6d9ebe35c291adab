"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from clew import Tensor
from clew.distributions import constraints
from clew.distributions._half import Half
from clew.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|x| for a normal x with mean 0.

    p(x) = √(2 / π) exp(-x² / (2 scale²)) / scale for x ≥ 0.

    batch_shape is the shape of scale; event_shape is ().

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1 (1994), chapter
    13.

    Args:
        scale: the standard deviation of x, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.HalfNormal(1.0).mean
        tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}
    base_dist: Normal

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0.0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
