"""Categorical distributions whose draws are one-hot vectors."""

from __future__ import annotations

from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Vectors with a single 1, at a place with the given probabilities.

    P(x) = ∏ probsᵢ ** xᵢ.

    With probs (*B, K), batch_shape is B and event_shape is (K,).

    Source: Bishop, Pattern Recognition and Machine Learning (2006), section 2.2.

    Args:
        probs: the probabilities along the last dim; give either this or ``logits``.
        logits: logarithms of the probabilities, up to a constant.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.OneHotCategorical(clew.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return self._expanded(OneHotCategorical, batch_shape, new)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

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
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        places = clew.arange(self._event_shape[0], device=index.device)
        return (index.unsqueeze(-1) == places).to(self._param.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = clew.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n,) + self._batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is passed to the probabilities as if they were the draw.

    P(x) = ∏ probsᵢ ** xᵢ; a draw is x + probs - probs.detach().

    With probs (*B, K), batch_shape is B and event_shape is (K,).

    Source: Bengio, Léonard and Courville, Estimating or propagating gradients through stochastic
    neurons for conditional computation (2013).

    Args:
        probs: the probabilities along the last dim; give either this or ``logits``.
        logits: logarithms of the probabilities, up to a constant.
        validate_args: whether parameters and values are checked.

    Example:
        >>> p = clew.tensor([0.0, 1.0], requires_grad=True)
        >>> d = clew.distributions.OneHotCategoricalStraightThrough(p)
        >>> d.rsample()
        tensor([0., 1.], grad_fn=<...>)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
