"""Divergences between two members of one family."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions._kl_registry import kl_divergence, register_kl
from clew.distributions.bernoulli import Bernoulli
from clew.distributions.beta import Beta
from clew.distributions.binomial import Binomial
from clew.distributions.categorical import Categorical
from clew.distributions.cauchy import Cauchy
from clew.distributions.continuous_bernoulli import ContinuousBernoulli
from clew.distributions.dirichlet import Dirichlet
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.exponential import Exponential
from clew.distributions.gamma import Gamma
from clew.distributions.geometric import Geometric
from clew.distributions.gumbel import Gumbel
from clew.distributions.half_normal import HalfNormal
from clew.distributions.independent import Independent
from clew.distributions.laplace import Laplace
from clew.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from clew.distributions.multivariate_normal import MultivariateNormal, mahalanobis
from clew.distributions.normal import Normal
from clew.distributions.one_hot_categorical import OneHotCategorical
from clew.distributions.pareto import Pareto
from clew.distributions.poisson import Poisson
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.uniform import Uniform
from clew.distributions.utils import euler_constant, sum_rightmost
from clew.nn.functional import softplus

INF = math.inf


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    def side(chance: Tensor, other: Tensor, gain: Tensor) -> Tensor:
        return clew.where(chance == 0, 0.0, clew.where(other == 0, INF, chance * gain))

    ones = side(p.probs, q.probs, softplus(-q.logits) - softplus(-p.logits))
    zeros = side(1 - p.probs, 1 - q.probs, softplus(q.logits) - softplus(p.logits))
    return ones + zeros


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return clew.where(p.total_count > q.total_count, INF, p.total_count * trial)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = clew.where(p.probs == 0, 0.0, clew.where(q.probs == 0, INF, terms))
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    gain = p.mean * (p.logits - q.logits)
    own = p._log_constant() + (-p.probs).log1p()
    return gain + own - q._log_constant() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = total.lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    with clew.enable_grad():
        natural_p = [
            t if t.requires_grad else t.detach().requires_grad_() for t in p._natural_params
        ]
        normalizer = p._log_normalizer(*natural_p)
        gradients = clew.autograd.grad(normalizer.sum(), natural_p, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for own, other, gradient in zip(natural_p, q._natural_params, gradients):
        term = (other - own) * gradient
        result = result - sum_rightmost(term, own.ndim - len(p.batch_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + b.lgamma()
        - a.lgamma()
        + (a - b) * a.digamma()
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    bound = ((1 + ratio).lgamma() - apart).exp()
    return apart - ratio.log() + ratio * euler_constant + bound - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents of different reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return clew.where(p.scale < q.scale, INF, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    gain = clew.xlogy(p.rate, p.rate) - clew.xlogy(p.rate, q.rate)
    return gain - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL between TransformedDistributions needs equal transforms and event shapes"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return clew.where((q.low > p.low) | (q.high < p.high), INF, result)


def _gaussian(p: Any, spread: Tensor, distance: Tensor, log_dets: Tensor) -> Tensor:
    """½ (tr Σq⁻¹Σp + (μq - μp)ᵀ Σq⁻¹ (μq - μp) - K + log det Σq / det Σp)."""
    return 0.5 * (spread + distance - p.event_shape[0] + log_dets)


def _squares(matrix: Tensor) -> Tensor:
    return matrix.square().sum((-2, -1))


def _check_events(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between Multivariate Normals with different event shapes cannot be "
            f"computed; got {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )


@register_kl(MultivariateNormal, MultivariateNormal)
def _mvn(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    solved = clew.linalg.solve_triangular(
        q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril, upper=False
    )
    return _gaussian(
        p,
        _squares(solved),
        mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc),
        2 * (q._half_log_det() - p._half_log_det()),
    )


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _mvn_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q)
    spread = q._trace_of_solved(p._unbroadcasted_scale_tril)
    return _gaussian(p, spread, q._distance(q.loc - p.loc), q._log_det() - 2 * p._half_log_det())


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_mvn(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    spread = sum(
        _squares(clew.linalg.solve_triangular(q._unbroadcasted_scale_tril, part, upper=False))
        for part in (p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    )
    return _gaussian(
        p,
        spread,  # type: ignore[arg-type]
        mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc),
        2 * q._half_log_det() - p._log_det(),
    )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q)
    spread = q._trace_of_solved(p._unbroadcasted_cov_factor) + q._trace_of_solved(
        p._unbroadcasted_cov_diag.sqrt().diag_embed()
    )
    return _gaussian(p, spread, q._distance(q.loc - p.loc), q._log_det() - p._log_det())
