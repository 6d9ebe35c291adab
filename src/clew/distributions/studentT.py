"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.chi2 import Chi2
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t: p(x) ∝ (1 + z² / df) ** (-(df + 1) / 2), with z = (x - loc) / scale.

    The factor is Γ((df + 1) / 2) / (Γ(df / 2) √(π df) scale).

    batch_shape is the shape to which df, loc and scale broadcast; event_shape is ().

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2 (1995), chapter
    28.

    Args:
        df: the degrees of freedom, positive.
        loc: the mode.
        scale: the spread, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """There is none, NaN, for df ≤ 1."""
        return clew.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite for 1 < df ≤ 2, and NaN below."""
        finite = self.df > 2
        df = clew.where(finite, self.df, 3.0)
        variance = clew.where(finite, self.scale.square() * df / (df - 2), math.inf)
        return clew.where(self.df > 1, variance, math.nan)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(StudentT, batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = clew.randn(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half = self.df / 2
        z = (value - self.loc) / self.scale
        scale = self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi))
        normalizer = scale + half.lgamma() - (half + 0.5).lgamma()
        return -(half + 0.5) * (z.square() / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half = self.df / 2
        log_beta = half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()
        spread = (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
