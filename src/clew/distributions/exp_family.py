"""Exponential families: densities exp(t(x)·θ - F(θ) + k(x))."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions.distribution import Distribution
from clew.distributions.utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with density exp(t(x)·θ - F(θ) + k(x)).

    θ are the natural parameters, F is the log normalizer and k the carrier measure. With them the
    entropy and divergences within the family follow from F's gradient (Bregman divergences).

    Source: Nielsen and Nock, Entropies and cross-entropies of exponential families (2010).

    Args:
        batch_shape: as in Distribution.
        event_shape: as in Distribution.
        validate_args: as in Distribution.

    Example:
        >>> issubclass(clew.distributions.Normal, clew.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        self._lacks("_natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        """The expected value of k(x)."""
        self._lacks("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """F(θ) - θ·∇F(θ) - E[k(x)], with ∇F by automatic differentiation."""
        carrier = self._mean_carrier_measure
        with clew.enable_grad():
            natural = [
                p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params
            ]
            normalizer = self._log_normalizer(*natural)
            gradients = clew.autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - carrier
        for parameter, gradient in zip(natural, gradients):
            product = parameter * gradient
            result = result - sum_rightmost(product, product.ndim - len(self._batch_shape))
        return result
