"""The relaxed one-hot categorical distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import ExpTransform
from clew.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot vector: log_softmax((logits + Gumbel noise) / T).

    Args:
        temperature: T, how soft the draw is.
        probs: the probabilities along the last dim; give either this or ``logits``.
        logits: logarithms of the probabilities, up to a constant.
        validate_args: whether parameters and values are checked.

    Example:
        >>> d = clew.distributions.relaxed_categorical
        >>> d.ExpRelaxedCategorical(clew.tensor(1.0), clew.ones(3)).sample().exp().sum().round()
        tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._expanded(ExpRelaxedCategorical, batch_shape, new)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of ``probs`` and of ``logits``."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(clew.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        score = logits - value * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + math.lgamma(k) + (k - 1) * clew.as_tensor(self.temperature).log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """A differentiable stand-in for a one-hot vector; harder as temperature falls.

    p(x) = Γ(K) tᴷ⁻¹ (Σ aᵢ xᵢ⁻ᵗ)⁻ᴷ ∏ aᵢ xᵢ⁻ᵗ⁻¹ for x that sum to 1, with a = exp(logits) and t the
    temperature.

    A draw is softmax((logits + g) / temperature), with gᵢ from the Gumbel distribution.

    With probs (*B, K), batch_shape is B and event_shape is (K,).

    Source: Maddison, Mnih and Teh, The Concrete distribution (2017), and Jang, Gu and Poole,
    Categorical reparameterization with Gumbel-softmax (2017).

    Args:
        temperature: how soft the draw is.
        probs: the probabilities along the last dim; give either this or ``logits``.
        logits: logarithms of the probabilities, up to a constant.
        validate_args: whether parameters and values are checked.

    Example:
        >>> d = clew.distributions.RelaxedOneHotCategorical(clew.tensor(1.0), clew.ones(3))
        >>> d.rsample((2,)).shape
        clew.Size([2, 3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self) -> Tensor:
        """How soft the draw is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
