"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from clew import Tensor
from clew.distributions import constraints
from clew.distributions.normal import Normal
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probability vectors of K + 1 parts made from K normal numbers by stick-breaking.

    log p(y) = Σ log N(xᵢ; locᵢ, scaleᵢ) - log |det dy/dx|, with x the numbers that give y.

    With loc and scale (*B, K), batch_shape is B and event_shape is (K + 1,).

    Source: Aitchison and Shen, Logistic-normal distributions: some properties and uses (1980).

    Args:
        loc: the normal numbers' means.
        scale: their standard deviations, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.LogisticNormal(clew.zeros(2), clew.ones(2)).event_shape
        clew.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Any

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LogisticNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def loc(self) -> Tensor:
        """The normal numbers' means."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The normal numbers' standard deviations."""
        return self.base_dist.base_dist.scale
