"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._probs import ProbsOrLogits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """Integers 0 ... K-1 with given probabilities.

    P(k) = probs[..., k].

    With probs (*B, K), batch_shape is B and event_shape is ().

    Source: Bishop, Pattern Recognition and Machine Learning (2006), section 2.2.

    Args:
        probs: the probabilities along the last dim, which are made to sum to 1; give either this
            or ``logits``.
        logits: logarithms of the probabilities, up to a constant.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Categorical(clew.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._one_of(probs, logits)
        if given.ndim < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Categorical, batch_shape, _instance)
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """Categories have no mean: NaN."""
        return clew.full_like(self._param[..., 0], math.nan, requires_grad=False)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """Categories have no variance: NaN."""
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        count = clew.Size(sample_shape).numel()
        rows = self.probs.detach().reshape(-1, self._num_events)
        if shape.numel() == 0:
            return clew.empty(shape, dtype=clew.int64, device=rows.device)
        return clew.multinomial(rows, count, True).T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index, logits = clew.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        least = clew.finfo(self.logits.dtype).min  # 0 * -inf counts as 0
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = clew.arange(self._num_events, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
