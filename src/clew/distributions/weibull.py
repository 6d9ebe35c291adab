"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.exponential import Exponential
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AffineTransform, PowerTransform
from clew.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution: cdf(x) = 1 - exp(-(x / scale) ** concentration).

    p(x) = c / scale zᶜ⁻¹ exp(-zᶜ) for x > 0, with z = x / scale and c the concentration.

    batch_shape is the shape to which scale and concentration broadcast; event_shape is ().

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1 (1994), chapter
    21.

    Args:
        scale: the 63rd percentile, positive.
        concentration: the shape, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        super().__init__(
            Exponential(clew.ones_like(self.scale), validate_args=validate_args),
            [
                PowerTransform(exponent=self.concentration_reciprocal),
                AffineTransform(loc=0, scale=self.scale),
            ],
            validate_args=validate_args,
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        """Zero where the density falls from the start, that is for concentration ≤ 1."""
        rise = (1 - self.concentration_reciprocal).clamp(min=0)
        return self.scale * rise.pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        first = (1 + self.concentration_reciprocal).lgamma()
        second = (1 + 2 * self.concentration_reciprocal).lgamma()
        return self.scale.square() * (second.exp() - (2 * first).exp())

    def entropy(self) -> Tensor:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + (self.scale * self.concentration_reciprocal).log()
            + 1
        )
