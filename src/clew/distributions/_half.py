"""What the half of a distribution is that lies as much on either side of 0."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AbsTransform

__all__ = ["Half"]


class Half(TransformedDistribution):
    """|x| for an x whose distribution is symmetric around 0, where it is highest.

    Args:
        base: the distribution of x.
        validate_args: whether parameters and values are checked.
    """

    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    def __init__(self, base: Any, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return clew.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (self.base_dist.log_prob(value) + math.log(2)).masked_fill(value < 0, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
