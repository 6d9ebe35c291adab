"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.gamma import Gamma
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for a gamma distributed x.

    p(x) = rateᵃ x⁻ᵃ⁻¹ exp(-rate / x) / Γ(a) for x > 0, with a the concentration.

    batch_shape is the shape to which concentration and rate broadcast; event_shape is ().

    Source: Gelman et al., Bayesian Data Analysis (2013), appendix A.

    Args:
        concentration: the gamma distribution's concentration, positive.
        rate: the gamma distribution's rate, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.InverseGamma(2.0, 3.0).mean
        tensor(3.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-clew.ones_like(base.rate, requires_grad=False))
        super().__init__(base, inverse, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def concentration(self) -> Tensor:
        """The gamma distribution's concentration."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The gamma distribution's rate."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        """Infinite for concentration ≤ 1."""
        mean = self.rate / (self.concentration - 1)
        return clew.where(self.concentration > 1, mean, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """Infinite for concentration ≤ 2."""
        a = self.concentration
        variance = (self.rate / (a - 1)).square() / (a - 2)
        return clew.where(a > 2, variance, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
