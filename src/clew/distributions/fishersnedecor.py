"""The Fisher-Snedecor distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.gamma import Gamma
from clew.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: (x₁ / df1) / (x₂ / df2) for chi-squared x₁ and x₂.

    p(x) = (df1 / df2) ** (df1 / 2) x ** (df1 / 2 - 1) (1 + df1 x / df2) ** (-(df1 + df2) / 2) /
    B(df1 / 2, df2 / 2) for x > 0.

    batch_shape is the shape to which df1 and df2 broadcast; event_shape is ().

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2 (1995), chapter
    27.

    Args:
        df1: the numerator's degrees of freedom, positive.
        df2: the denominator's degrees of freedom, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.FisherSnedecor(2.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1, validate_args=False)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2, validate_args=False)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(FisherSnedecor, batch_shape, _instance)
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        """There is none, NaN, for df2 ≤ 2."""
        df2 = clew.where(self.df2 > 2, self.df2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """There is none, NaN, for df1 ≤ 2."""
        df1 = clew.where(self.df1 > 2, self.df1, math.nan)
        return (df1 - 2) / df1 * self.df2 / (self.df2 + 2)

    @property
    def variance(self) -> Tensor:
        """There is none, NaN, for df2 ≤ 4."""
        df2 = clew.where(self.df2 > 4, self.df2, math.nan)
        total = self.df1 + df2 - 2
        return 2 * df2.square() * total / (self.df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x1, x2 = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = clew.finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        shape = half1 * ratio.log() + (half1 - 1) * value.log()
        return normalizer + shape - (half1 + half2) * (ratio * value).log1p()
