"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.categorical import Categorical
from clew.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A draw from the component that a categorical distribution chooses.

    p(x) = Σₖ P(k) pₖ(x).

    Components of batch_shape (*B, K) and event_shape E give batch_shape B and event_shape E.

    Source: Bishop, Pattern Recognition and Machine Learning (2006), section 2.3.9.

    Args:
        mixture_distribution: the Categorical that chooses.
        component_distribution: the components, along its last batch dim.
        validate_args: whether parameters and values are checked.

    Example:
        >>> d = clew.distributions
        >>> weights = d.Categorical(clew.ones(2))
        >>> d.MixtureSameFamily(weights, d.Normal(clew.tensor([-1.0, 3.0]), 1.0)).mean
        tensor(1.)
    """

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                f"MixtureSameFamily: the mixture distribution must be a Categorical; got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                f"MixtureSameFamily: the component distribution must be a Distribution; got "
                f"{type(component_distribution).__name__}"
            )
        mixture, component = mixture_distribution.batch_shape, component_distribution.batch_shape
        for i, j in zip(reversed(mixture), reversed(component[:-1])):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"MixtureSameFamily: batch shape {tuple(mixture)} of the mixture distribution "
                    f"does not fit {tuple(component)} of the component distribution"
                )
        count = mixture_distribution.logits.shape[-1]
        if not component or count != component[-1]:
            raise ValueError(
                f"MixtureSameFamily: the last batch dim of the component distribution must be the "
                f"number of categories, {count}; got batch shape {tuple(component)}"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(
            component[:-1], component_distribution.event_shape, validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weighted(self, values: Tensor) -> Tensor:
        """The sum over components, each times its probability."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (probs * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the components' variances and the variance of their means."""
        component = self._component_distribution
        apart = component.mean - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._weighted(component.variance) + self._weighted(apart.square())

    def _pad(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        below = self._component_distribution.cdf(self._pad(value))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self._component_distribution.log_prob(self._pad(value))
        return (log_prob + clew.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with clew.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = drawn.ndim - 1 - self._event_ndims
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            return drawn.gather(
                dim, index.expand(drawn.shape[:dim] + (1,) + self.event_shape)
            ).squeeze(dim)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n"
            f"  {self._component_distribution})"
        )
