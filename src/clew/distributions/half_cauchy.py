"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._half import Half
from clew.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| for a Cauchy distributed x with median 0.

    p(x) = 2 / (π scale (1 + (x / scale)²)) for x ≥ 0.

    batch_shape is the shape of scale; event_shape is ().

    Source: Gelman, Prior distributions for variance parameters in hierarchical models (2006).

    Args:
        scale: the median of |x|, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.HalfCauchy(2.0).cdf(clew.tensor(2.0))
        tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    base_dist: Cauchy

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0.0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return clew.full_like(self.scale, math.inf, requires_grad=False)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
