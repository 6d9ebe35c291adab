"""Divergences between different families: KL(p ‖ q) = -H(p) - E_p[log q(x)].

For each q the expectation needs a few moments of p only, so there is one function for each q and
a table of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew.distributions._kl_registry import register_kl
from clew.distributions.bernoulli import Bernoulli
from clew.distributions.beta import Beta
from clew.distributions.binomial import Binomial
from clew.distributions.continuous_bernoulli import ContinuousBernoulli
from clew.distributions.distribution import Distribution
from clew.distributions.exponential import Exponential
from clew.distributions.gamma import Gamma
from clew.distributions.gumbel import Gumbel
from clew.distributions.laplace import Laplace
from clew.distributions.normal import Normal
from clew.distributions.pareto import Pareto
from clew.distributions.poisson import Poisson
from clew.distributions.uniform import Uniform
from clew.distributions.utils import euler_constant

INF = math.inf


def _mean_log(p: Any) -> Tensor:
    """E[log x]."""
    if isinstance(p, Beta):
        a, b = p.concentration1, p.concentration0
        return a.digamma() - (a + b).digamma()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _uniform_mean_log(p.low, p.high)


def _uniform_mean_log(low: Tensor, high: Tensor) -> Tensor:
    return (clew.xlogy(high, high) - clew.xlogy(low, low)) / (high - low) - 1


def _mean_exp(p: Any, loc: Tensor, scale: Tensor) -> Tensor:
    """E[exp((loc - x) / scale)]."""
    if isinstance(p, Normal):
        return ((loc - p.loc) / scale + 0.5 * (p.scale / scale).square()).exp()
    if isinstance(p, Exponential):
        return (loc / scale).exp() * p.rate / (p.rate + 1 / scale)
    if isinstance(p, Gamma):
        return (loc / scale - p.concentration * (1 / (scale * p.rate)).log1p()).exp()
    ends = ((loc - p.low) / scale).exp() - ((loc - p.high) / scale).exp()
    return ends * scale / (p.high - p.low)


def _beta(p: Any, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    log_rest = _uniform_mean_log(1 - p.high, 1 - p.low)
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return normalizer - (a - 1) * _mean_log(p) - (b - 1) * log_rest


def _continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_constant()


def _exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _gamma(p: Any, q: Gamma) -> Tensor:
    a = q.concentration
    return a.lgamma() - a * q.rate.log() - (a - 1) * _mean_log(p) + q.rate * p.mean


def _gumbel(p: Any, q: Gumbel) -> Tensor:
    return q.scale.log() + (p.mean - q.loc) / q.scale + _mean_exp(p, q.loc, q.scale)


def _laplace(p: Any, q: Laplace) -> Tensor:
    """Of a normal p: E|x - loc| is the mean of a folded normal number."""
    apart = p.loc - q.loc
    z = apart / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.square()).exp()
    distance = distance + apart * (z * math.sqrt(0.5)).erf()
    return distance / q.scale + (2 * q.scale).log()


def _normal(p: Any, q: Normal) -> Tensor:
    squared = p.variance + (p.mean - q.loc).square()
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * squared / q.scale.square()


def _pareto(p: Any, q: Pareto) -> Tensor:
    return (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()


def _poisson(p: Any, q: Poisson) -> Tensor:
    """Of a Bernoulli p: both values have a factorial of 1."""
    return q.rate - clew.xlogy(p.probs, q.rate)


def _uniform(p: Any, q: Uniform) -> Tensor:
    """Of a p over the unit interval."""
    result = (q.high - q.low).log()
    return clew.where((q.low > 0) | (q.high < 1), INF, result)


_CROSS: dict[type, Callable[[Any, Any], Tensor]] = {
    Beta: _beta,
    ContinuousBernoulli: _continuous_bernoulli,
    Exponential: _exponential,
    Gamma: _gamma,
    Gumbel: _gumbel,
    Laplace: _laplace,
    Normal: _normal,
    Pareto: _pareto,
    Poisson: _poisson,
    Uniform: _uniform,
}

# For each p the families with a finite divergence, and those that lack part of p's support.
_FINITE: dict[type, tuple[type, ...]] = {
    Bernoulli: (Poisson,),
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _outside(p: Any, q: Any) -> Tensor | None:
    """Where q lacks part of p's support, or a moment that is needed is infinite."""
    if isinstance(p, Pareto):
        return p.alpha <= (2 if isinstance(q, Normal) else 1)
    if not isinstance(p, Uniform):
        return None
    if isinstance(q, (Beta, ContinuousBernoulli)):
        return (p.low < 0) | (p.high > 1)
    if isinstance(q, (Exponential, Gamma)):
        return p.low < 0
    return p.low < q.scale if isinstance(q, Pareto) else None


def _cross(p: Distribution, q: Distribution) -> Tensor:
    kind = next(k for k in type(q).__mro__ if k in _CROSS)
    outside = _outside(p, q)
    if outside is not None and isinstance(p, Pareto):
        # An infinite moment has the slope NaN, which would spoil the other elements' gradients.
        p = Pareto(p.scale, clew.where(outside, 3.0, p.alpha), validate_args=False)
    result = _CROSS[kind](p, q) - p.entropy()
    return result if outside is None else clew.where(outside, INF, result)


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    shape = clew.broadcast_shapes(p.batch_shape, q.batch_shape)
    return clew.full(shape, INF, dtype=p.mean.dtype, device=p.mean.device)


for _rule, _table in ((_cross, _FINITE), (_infinite, _INFINITE)):
    for _p, _families in _table.items():
        for _q in _families:
            register_kl(_p, _q)(_rule)
