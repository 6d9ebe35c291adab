"""What the distributions that take either probabilities or logits share."""

from __future__ import annotations

from typing import Any

from clew import Size, Tensor
from clew.distributions.distribution import Distribution
from clew.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class ProbsOrLogits(Distribution):
    """Keeps whichever of ``probs`` and ``logits`` was given; the other follows when asked for."""

    _is_binary = True

    @staticmethod
    def _one_of(probs: Any, logits: Any) -> Any:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return logits if probs is None else probs

    def _keep(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Keeps the one of both that was given; returns it behind the others, all broadcast."""
        found = tuple(broadcast_all(*others, self._one_of(probs, logits)))
        if probs is None:
            self.logits = found[-1]
        else:
            self.probs = found[-1]
        return found

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds, or the unnormalized log-probabilities of categories."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Size:
        """The shape of ``probs`` and of ``logits``."""
        return self._param.shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new_empty(*args, **kwargs)
