"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions._probs import ProbsOrLogits
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.utils import all_true, broadcast_all, clamp_probs
from clew.nn.functional import binary_cross_entropy_with_logits, logsigmoid

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The density p(x) ∝ λˣ (1 - λ)¹⁻ˣ over [0, 1].

    The factor is 2 artanh(1 - 2λ) / (1 - 2λ), and 2 for λ = 1/2.

    batch_shape is the shape of probs or logits; event_shape is ().

    Source: Loaiza-Ganem and Cunningham, The continuous Bernoulli: fixing a pervasive error in
    variational autoencoders (2019).

    Args:
        probs: λ, in (0, 1); give either this or ``logits``.
        logits: log(λ / (1 - λ)).
        lims: between these values of λ Taylor series around 1/2 replace formulas that cancel.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.ContinuousBernoulli(0.5).mean
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (given,) = broadcast_all(self._one_of(probs, logits))
        if probs is None:
            self.logits = given
        else:
            check = ContinuousBernoulli._validate_args if validate_args is None else validate_args
            if check and not all_true(self.arg_constraints["probs"].check(given)):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(given)
        self._lims = lims
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(ContinuousBernoulli, batch_shape, _instance)
        new._lims = self._lims
        return new

    def _regular(self) -> Tensor:
        """Where λ is far enough from 1/2 for the plain formulas."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where the plain formulas hold, η = log λ / (1 - λ) safe for them, λ - 1/2 for the series.

        With η nothing rounds to a certainty that λ = 1 would be.
        """
        regular = self._regular()
        odds = clew.where(regular, self.logits, 1.0)
        return regular, odds, clew.where(regular, 0.0, self.probs - 0.5)

    def _log_constant(self) -> Tensor:
        """The logarithm of the normalizing factor, η / tanh(η / 2)."""
        regular, odds, x = self._cut()
        plain = odds.abs().log() - (odds / 2).tanh().abs().log()
        series = math.log(2) + (4 / 3 + 104 / 45 * x.square()) * x.square()
        return clew.where(regular, plain, series)

    @property
    def mean(self) -> Tensor:
        regular, odds, x = self._cut()
        plain = odds.sigmoid() / (odds / 2).tanh() - 1 / odds
        return clew.where(regular, plain, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        regular, odds, x = self._cut()
        spread = odds.sigmoid() * (-odds).sigmoid() / (odds / 2).tanh().square()
        plain = odds.square().reciprocal() - spread
        series = 1 / 12 - (1 / 15 - 128 / 945 * x.square()) * x.square()
        return clew.where(regular, plain, series)

    @property
    def param_shape(self) -> Size:
        return self._param.shape

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(clew.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        cross = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_constant() - cross

    def _log_odds_cut(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where the plain formulas hold, η = log λ / (1 - λ) safe for them, and for the series."""
        regular = self._regular()
        odds = self.logits
        return regular, clew.where(regular, odds, 1.0), clew.where(regular, 0.0, odds)

    def cdf(self, value: Tensor) -> Tensor:
        """(exp(η x) - 1) / (exp(η) - 1), with η = log λ / (1 - λ)."""
        if self._validate_args:
            self._validate_sample(value)
        regular, odds, n = self._log_odds_cut()
        # Where η > 0 the power comes out in front, so that nothing overflows and small results keep
        # their digits.
        down, x = -odds.abs(), value
        shift = clew.where(odds > 0, down * (1 - x), 0.0)
        plain = shift.exp() * (down * x).expm1() / down.expm1()
        series = x * (1 + n * (x - 1) * (1 / 2 + n * ((2 * x - 1) / 12 + n * x * (x - 1) / 24)))
        inside = clew.where(regular, plain, series)
        return clew.where(value <= 0, 0.0, clew.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        regular, odds, n = self._log_odds_cut()
        u, info = value, clew.finfo(odds.dtype)
        # log(1 - u + u exp(η)) / η: by log1p near 0, else by both summands' logarithms, of which
        # neither overflows nor loses what it adds to 1.
        far = odds.abs() > 1
        near = clew.where(far, 1.0, odds)
        inner = u.clamp(info.tiny, 1 - info.eps / 2)
        summed = clew.logaddexp((-inner).log1p(), inner.log() + odds) / odds
        summed = clew.where(u <= 0, 0.0, clew.where(u >= 1, 1.0, summed))
        plain = clew.where(far, summed, (u * near.expm1()).log1p() / near)
        third = (1 - u * (7 - u * (12 - 6 * u))) / 24
        second = (1 - u * (3 - 2 * u)) / 6
        series = u * (1 + n * ((1 - u) / 2 + n * (second + n * third)))
        return clew.where(regular, plain, series)

    def entropy(self) -> Tensor:
        return -self.mean * self.logits - self._log_constant() - logsigmoid(-self.logits)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        regular = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = clew.where(regular, x, self._lims[0] - 0.5)
        # log((exp(x) - 1) / x) without overflow
        size = safe.abs()
        plain = safe.clamp(min=0) + (-(-size).expm1()).log() - size.log()
        series = 0.5 * x + x.square() / 24 - x.pow(4) / 2880
        return clew.where(regular, plain, series)
