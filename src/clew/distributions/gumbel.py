"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import AffineTransform, ExpTransform
from clew.distributions.uniform import Uniform
from clew.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of maxima: cdf(x) = exp(-exp(-(x - loc) / scale)).

    p(x) = exp(-z - exp(-z)) / scale with z = (x - loc) / scale.

    batch_shape is the shape to which loc and scale broadcast; event_shape is ().

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2 (1995), chapter
    22.

    Args:
        loc: the mode.
        scale: the spread, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Gumbel(0.0, 1.0).mean
        tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = clew.finfo(self.loc.dtype)
        low = clew.full_like(self.loc, finfo.tiny, requires_grad=False)
        high = clew.full_like(self.loc, 1 - finfo.eps, requires_grad=False)
        super().__init__(
            Uniform(low, high, validate_args=validate_args),
            [
                ExpTransform().inv,
                AffineTransform(loc=0, scale=-clew.ones_like(self.scale)),
                ExpTransform().inv,
                AffineTransform(loc=self.loc, scale=-self.scale),
            ],
            validate_args=validate_args,
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
