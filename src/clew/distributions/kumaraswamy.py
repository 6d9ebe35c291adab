"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AffineTransform, PowerTransform
from clew.distributions.uniform import Uniform
from clew.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution: cdf(x) = 1 - (1 - xᵃ)ᵇ for x in (0, 1).

    p(x) = a b xᵃ⁻¹ (1 - xᵃ)ᵇ⁻¹.

    batch_shape is the shape to which concentration1 and concentration0 broadcast; event_shape is
    ().

    Source: Kumaraswamy, A generalized probability density function for double-bounded random
    processes (1980).

    Args:
        concentration1: a, positive.
        concentration0: b, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Kumaraswamy(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = clew.zeros_like(self.concentration0, requires_grad=False)
        super().__init__(
            Uniform(zeros, zeros + 1, validate_args=validate_args),
            [
                PowerTransform(exponent=self.concentration0.reciprocal()),
                AffineTransform(loc=1.0, scale=-1.0),
                PowerTransform(exponent=self.concentration1.reciprocal()),
            ],
            validate_args=validate_args,
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        rest = clew.special.xlog1py(b - 1, -value.pow(a))
        return a.log() + b.log() + clew.xlogy(a - 1, value) + rest

    def _moment(self, n: int) -> Tensor:
        """E[xⁿ] = b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return (b.log() + first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """NaN where a or b is below 1: the density has no maximum, or it lies at an end."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return mode.masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        # The difference may round below 0, where stddev would be NaN.
        return (self._moment(2) - self._moment(1).square()).clamp(min=0)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
