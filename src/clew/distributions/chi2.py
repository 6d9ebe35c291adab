"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from clew import Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of ``df`` squared standard normal numbers: Gamma(df / 2, 1 / 2).

    p(x) = x ** (df / 2 - 1) exp(-x / 2) / (2 ** (df / 2) Γ(df / 2)) for x > 0.

    batch_shape is the shape of df; event_shape is ().

    Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1 (1994), chapter
    18.

    Args:
        df: the degrees of freedom, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Chi2, _instance)
        new.concentration = self.concentration.expand(batch_shape)
        new.rate = self.rate.expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
