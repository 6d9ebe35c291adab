"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution of what exceeds a threshold.

    cdf(x) = 1 - (1 + ξ z) ** (-1 / ξ) with z = (x - loc) / scale and ξ the concentration;
    for ξ = 0 it is 1 - exp(-z).

    p(x) = (1 + ξ z) ** (-1 / ξ - 1) / scale for x ≥ loc, and, where ξ < 0, x ≤ loc - scale / ξ.

    batch_shape is the shape to which loc, scale and concentration broadcast; event_shape is ().

    Source: Pickands, Statistical inference using extreme order statistics (1975).

    Args:
        loc: the threshold, which is the least value.
        scale: the spread, positive.
        concentration: ξ; a positive one makes the tail heavy, a negative one bounds the values.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
        tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(GeneralizedPareto, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        negative = self.concentration < 0
        length = self.scale / clew.where(negative, -self.concentration, 1.0)
        return constraints.interval(self.loc, clew.where(negative, self.loc + length, math.inf))

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Where ξ x is near 0, so that series take over, ξ x itself, and ξ safe to divide by."""
        y = self.concentration * x.clamp(max=clew.finfo(x.dtype).max)
        near = y.abs() < 1e-3
        return near, y, clew.where(near, 1.0, self.concentration)

    def _hazard(self, value: Tensor) -> Tensor:
        """-log of the probability to exceed ``value``: log(1 + ξ z) / ξ."""
        z = (value - self.loc) / self.scale
        near, y, xi = self._split(z)
        n = clew.where(near, y, 0.0)
        series = z * (1 - n * (1 / 2 - n * (1 / 3 - n * (1 / 4 - n / 5))))
        return clew.where(near, series, clew.where(near, 0.0, y).log1p() / xi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(clew.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(1 + self.concentration) * self._hazard(value) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability to exceed ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        return -self._hazard(value)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the cdf."""
        return self.cdf(value).log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(-self._hazard(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        hazard = -(-value).log1p()
        near, y, xi = self._split(hazard)
        n = clew.where(near, y, 0.0)
        series = hazard * (1 + n * (1 / 2 + n * (1 / 6 + n * (1 / 24 + n / 120))))
        z = clew.where(near, series, clew.where(near, 0.0, y).expm1() / xi)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        """Infinite for concentration ≥ 1."""
        finite = self.concentration < 1
        rest = 1 - clew.where(finite, self.concentration, 0.0)
        return clew.where(finite, self.loc + self.scale / rest, math.inf)

    @property
    def variance(self) -> Tensor:
        """Infinite for concentration ≥ 1/2."""
        finite = self.concentration < 0.5
        xi = clew.where(finite, self.concentration, 0.0)
        variance = self.scale.square() / ((1 - xi).square() * (1 - 2 * xi))
        return clew.where(finite, variance, math.inf)

    @property
    def mode(self) -> Tensor:
        """The least value; the greatest where the density rises, that is below ξ = -1."""
        rises = self.concentration < -1
        length = self.scale / clew.where(rises, -self.concentration, 1.0)
        return clew.where(rises, self.loc + length, self.loc)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
