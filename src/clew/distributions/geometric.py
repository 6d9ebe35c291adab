"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._probs import ProbsOrLogits
from clew.distributions.utils import all_true, broadcast_all
from clew.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """How many failures come before the first success: P(k) = (1 - probs)ᵏ probs.

    k is 0, 1, 2 and so on.

    batch_shape is the shape of probs or logits; event_shape is ().

    Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions (2005), chapter 5.

    Args:
        probs: the probability of success, in (0, 1]; give either this or ``logits``.
        logits: log(probs / (1 - probs)).
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (given,) = self._keep(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not all_true(given > 0):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(given.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{given}"
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Geometric, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return clew.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        tiny = clew.finfo(self.probs.dtype).tiny
        with clew.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # No failure has probability 1 even where success is certain.
        certain = (probs == 1) & (value == 0)
        return value * (-clew.where(certain, 0.0, probs)).log1p() + probs.log()

    def entropy(self) -> Tensor:
        """Near 1 - log(probs) where success is rare: there logits, or probs, may have rounded."""
        probs, logits = self.probs, self.logits
        rare = probs < clew.finfo(probs.dtype).eps
        log_probs = clew.where(probs > 0, clew.where(probs > 0, probs, 1.0).log(), logits)
        safe_probs, safe_logits = clew.where(rare, 0.5, probs), clew.where(rare, 0.0, logits)
        cross = binary_cross_entropy_with_logits(safe_logits, safe_probs, reduction="none")
        return clew.where(rare, 1 - log_probs, cross / safe_probs)
