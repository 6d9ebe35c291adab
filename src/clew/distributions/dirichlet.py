"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._implicit import standard_dirichlet
from clew.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over probability vectors: p(x) ∝ ∏ xᵢ ** (aᵢ - 1).

    The factor is Γ(Σ aᵢ) / ∏ Γ(aᵢ).

    With concentration (*B, K), batch_shape is B and event_shape is (K,).

    Source: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions 1 (2000), chapter
    49.

    Args:
        concentration: a, positive; its last dim is the event.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Dirichlet(clew.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(
            concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Dirichlet, batch_shape, _instance)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return standard_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return clew.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """Where all concentrations are below 1, the corner with the largest."""
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, keepdim=True)
        corner = (self.concentration < 1).all(-1, keepdim=True)
        k = self.concentration.shape[-1]
        index = self.concentration.argmax(-1, keepdim=True)
        one_hot = (clew.arange(k, device=index.device) == index).to(mode.dtype)
        return clew.where(corner, one_hot, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        share = self.concentration / total
        return share * (1 - share) / (total + 1)

    def entropy(self) -> Tensor:
        a = self.concentration
        k, total = a.shape[-1], a.sum(-1)
        return (
            a.lgamma().sum(-1)
            - total.lgamma()
            - (k - total) * total.digamma()
            - ((a - 1) * a.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
