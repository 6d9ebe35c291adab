"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._probs import ProbsOrLogits
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import SigmoidTransform
from clew.distributions.utils import broadcast_all, clamp_probs
from clew.nn.functional import softplus

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logit of a relaxed Bernoulli number: (logits + logistic noise) / temperature.

    Args:
        temperature: how soft the draw is.
        probs: the probability of 1; give either this or ``logits``.
        logits: log(probs / (1 - probs)).
        validate_args: whether parameters and values are checked.

    Example:
        >>> d = clew.distributions.relaxed_bernoulli.LogitRelaxedBernoulli(clew.tensor(1.0), 0.5)
        >>> d.log_prob(clew.tensor(0.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        (given,) = self._keep(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LogitRelaxedBernoulli, batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(clew.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = u.log() - (-u).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        return clew.as_tensor(self.temperature).log() + difference - 2 * softplus(difference)


class RelaxedBernoulli(TransformedDistribution):
    """A differentiable stand-in for a Bernoulli number, in (0, 1); harder as temperature falls.

    p(x) = t a (x (1 - x)) ** (-t - 1) / (a x⁻ᵗ + (1 - x)⁻ᵗ)² for x in (0, 1), with a = exp(logits)
    and t the temperature.

    A draw is sigmoid((logits + log u - log(1 - u)) / temperature), u uniform in (0, 1).

    batch_shape is the shape of probs or logits; event_shape is ().

    Source: Maddison, Mnih and Teh, The Concrete distribution (2017), and Jang, Gu and Poole,
    Categorical reparameterization with Gumbel-softmax (2017).

    Args:
        temperature: how soft the draw is.
        probs: the probability of 1; give either this or ``logits``.
        logits: log(probs / (1 - probs)).
        validate_args: whether parameters and values are checked.

    Example:
        >>> d = clew.distributions.RelaxedBernoulli(clew.tensor(0.01), clew.tensor([0.001, 0.999]))
        >>> d.sample().round()
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(RelaxedBernoulli, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self) -> Tensor:
        """How soft the draw is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs
