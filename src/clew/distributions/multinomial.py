"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.binomial import Binomial
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes up in ``total_count`` draws.

    P(x) = n! ∏ probsᵢ ** xᵢ / xᵢ! where Σ xᵢ = n, the total_count.

    With probs (*B, K), batch_shape is B and event_shape is (K,).

    Source: Johnson, Kotz and Balakrishnan, Discrete Multivariate Distributions (1997), chapter 35.

    Args:
        total_count: the number of draws, an int.
        probs: the probabilities along the last dim; give either this or ``logits``.
        logits: logarithms of the probabilities, up to a constant.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Multinomial(4, clew.tensor([0.25, 0.75])).mean
        tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = Size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self.event_shape)
        return self._expanded(Multinomial, batch_shape, new)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of ``probs`` and of ``logits``."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count,) + Size(sample_shape))
        index = drawn.movedim(0, -1)
        counts = clew.zeros(self._extended_shape(sample_shape), dtype=self.probs.dtype)
        return counts.scatter_add(-1, index, clew.ones(index.shape, dtype=counts.dtype))

    def entropy(self) -> Tensor:
        """log n! and the terms n H(p), less what the orders of equal counts share."""
        n = clew.tensor(float(self.total_count), dtype=self.probs.dtype)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        chance = self._binomial.log_prob(counts).exp()
        shared = (chance * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (n + 1).lgamma() + shared

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        # What cannot happen and did not happen adds nothing.
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0.0)
        return ways + (logits * value).sum(-1)
