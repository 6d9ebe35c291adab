"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._probs import ProbsOrLogits
from clew.distributions.gamma import Gamma
from clew.distributions.utils import lazy_property
from clew.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """How many successes come before ``total_count`` failures.

    P(k) = Γ(r + k) / (k! Γ(r)) probsᵏ (1 - probs)ʳ for k = 0, 1, ..., r the total_count.

    batch_shape is the shape to which total_count and probs (or logits) broadcast; event_shape is
    ().

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions (2005), chapter 5.

    Args:
        total_count: the number of failures that end the trials; may be fractional.
        probs: the probability of success, in [0, 1); give either this or ``logits``.
        logits: log(probs / (1 - probs)).
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.NegativeBinomial(3.0, clew.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        count, given = self._keep(probs, logits, total_count)
        self.total_count = count.type_as(given)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(NegativeBinomial, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with clew.no_grad():
            return clew.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        chances = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return chances + ways.masked_fill(n + value == 0, 0.0)
