"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._probs import ProbsOrLogits
from clew.nn.functional import softplus

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """How many of ``total_count`` independent trials succeed.

    P(k) = n! / (k! (n - k)!) probsᵏ (1 - probs)ⁿ⁻ᵏ for k = 0 ... n, n the total_count.

    batch_shape is the shape to which total_count and probs (or logits) broadcast; event_shape is
    ().

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions (2005), chapter 3.

    Args:
        total_count: the number of trials.
        probs: the probability of success; give either this or ``logits``.
        logits: log(probs / (1 - probs)).
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Binomial(4, clew.tensor(0.25)).mean
        tensor(1.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        count, given = self._keep(probs, logits, total_count)
        self.total_count = count.type_as(given)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Binomial, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with clew.no_grad():
            return clew.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * softplus(self.logits)

    def _single_count(self, what: str) -> int:
        count = self.total_count
        if count.numel() == 0 or not bool((count == count.max()).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return int(count.max().item())

    def entropy(self) -> Tensor:
        self._single_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._single_count("enumerate_support")
        values = clew.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
