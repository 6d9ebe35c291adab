"""Divergences against sums, integrals and closed forms; dispatch."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from cases import COVARIANCE, L3, P4, near
from scipy import integrate, stats

import clew
from clew import distributions as D
from clew.distributions import _kl_pairs
from clew.distributions.kl import kl_divergence, register_kl


def t(*values: float) -> clew.Tensor:
    return clew.tensor(values, dtype=clew.float64)


# Two of each family, and the interval on which the first can be integrated.
PAIRS = {
    D.Beta: (D.Beta(t(2.5), t(1.7)), D.Beta(t(1.3), t(3.0))),
    D.Cauchy: (D.Cauchy(t(0.5), t(1.5)), D.Cauchy(t(-1.0), t(0.7))),
    D.ContinuousBernoulli: (D.ContinuousBernoulli(t(0.3)), D.ContinuousBernoulli(t(0.5001))),
    D.Exponential: (D.Exponential(t(0.8)), D.Exponential(t(2.5))),
    D.Gamma: (D.Gamma(t(2.3), t(0.8)), D.Gamma(t(1.4), t(2.0))),
    D.Gumbel: (D.Gumbel(t(0.3), t(1.2)), D.Gumbel(t(-0.5), t(2.0))),
    D.HalfNormal: (D.HalfNormal(t(0.8)), D.HalfNormal(t(2.0))),
    D.Laplace: (D.Laplace(t(0.3), t(0.8)), D.Laplace(t(1.0), t(1.5))),
    D.LogNormal: (D.LogNormal(t(0.3), t(0.5)), D.LogNormal(t(-0.2), t(0.9))),
    D.Normal: (D.Normal(t(0.3), t(0.8)), D.Normal(t(1.0), t(1.5))),
    D.Pareto: (D.Pareto(t(1.5), t(3.5)), D.Pareto(t(0.7), t(2.5))),
    D.Uniform: (D.Uniform(t(0.2), t(0.9)), D.Uniform(t(-0.5), t(1.5))),
    D.Weibull: None,
}
ENDS = {
    D.Beta: (0, 1), D.ContinuousBernoulli: (0, 1), D.Exponential: (0, 60), D.Gamma: (0, 60),
    D.Gumbel: (-8, 50), D.HalfNormal: (0, 12), D.Laplace: (-30, 30), D.LogNormal: (1e-9, 100),
    D.Normal: (-10, 10), D.Pareto: (1.5, 5000), D.Uniform: (0.2, 0.9), D.Cauchy: (-1e5, 1e5),
}  # fmt: skip
COVERED = [(p, p) for p in ENDS]
COVERED += [(p, q) for p, row in _kl_pairs._FINITE.items() for q in row if p is not D.Bernoulli]


@pytest.mark.parametrize(("p", "q"), COVERED, ids=lambda kind: kind.__name__)
def test_against_an_integral(p: type, q: type):
    left, right = PAIRS[p][0], PAIRS[q][1]
    if q is D.Pareto and p is D.Uniform:
        right = D.Pareto(t(0.1), t(2.5))
    low, high = ENDS[p]
    left._validate_args = right._validate_args = False

    def integrand(x: float) -> float:
        log_p = left.log_prob(t(x)).item()
        return math.exp(log_p) * (log_p - right.log_prob(t(x)).item()) if log_p > -600 else 0.0

    middle = left.mean.item() if p is not D.Cauchy else 0.5
    points = [middle, 0.3, 1.0]
    expected, _ = integrate.quad(
        integrand, low, high, points=[v for v in points if low < v < high], limit=400
    )
    got = kl_divergence(left, right)
    assert got.shape == (1,)
    assert got.item() == pytest.approx(expected, rel=1e-3 if p is D.Cauchy else 1e-5)
    assert got >= 0


LATTICE = clew.arange(200, dtype=clew.float64).unsqueeze(-1)


@pytest.mark.parametrize(
    ("p", "q", "values"),
    [
        (D.Bernoulli(t(0.3)), D.Bernoulli(t(0.6)), 2),
        (D.Bernoulli(t(0.3)), D.Poisson(t(0.6)), 2),
        (D.Binomial(7, t(0.3)), D.Binomial(7, t(0.6)), 8),
        (D.Geometric(t(0.3)), D.Geometric(t(0.6)), 200),
        (D.Poisson(t(3.0)), D.Poisson(t(2.0)), 100),
        (D.Categorical(clew.tensor([P4[0]])), D.Categorical(clew.tensor([P4[1]])), 4),
    ],
)
def test_against_a_sum(p, q, values: int):
    x = LATTICE[:values]
    log_p = p.log_prob(x)
    near(kl_divergence(p, q), (log_p.exp() * (log_p - q.log_prob(x))).sum(0), 1e-5)
    near(kl_divergence(p, p), [0.0], atol=1e-7)


def test_one_hot_and_independent():
    p, q = clew.tensor(P4), clew.tensor(P4).flip(-1)
    expected = kl_divergence(D.Categorical(p), D.Categorical(q))
    near(kl_divergence(D.OneHotCategorical(p), D.OneHotCategorical(q)), expected)
    a, b = D.Normal(clew.zeros(2, 3), 1.0), D.Normal(clew.ones(3), 2.0)
    each = kl_divergence(a, b)
    assert each.shape == (2, 3)
    both = kl_divergence(D.Independent(a, 1), D.Independent(b.expand((2, 3)), 1))
    near(both, each.sum(-1), 1e-6)
    with pytest.raises(NotImplementedError):
        kl_divergence(D.Independent(a, 1), D.Independent(a, 2))


def test_binomial_counts():
    p, q = D.Binomial(5, t(0.3)), D.Binomial(4, t(0.3))
    assert kl_divergence(p, q).item() == math.inf
    with pytest.raises(NotImplementedError, match="total_count"):
        kl_divergence(q, p)


@pytest.mark.parametrize(
    ("p", "q"),
    [(p, q) for p, row in _kl_pairs._INFINITE.items() for q in row],
    ids=lambda kind: kind.__name__,
)
def test_infinite(p: type, q: type):
    make = {D.Poisson: D.Poisson(t(2.0)), D.Bernoulli: D.Bernoulli(t(0.5)),
            D.Binomial: D.Binomial(3, t(0.5))}  # fmt: skip
    left = make[p] if p in make else PAIRS[p][0]
    right = (make[q] if q in make else PAIRS[q][1]).expand((4, 1))
    got = kl_divergence(left, right)
    assert got.shape == (4, 1) and (got == math.inf).all() and got.dtype == clew.float64


def test_infinite_where_the_support_does_not_reach():
    inside, across = D.Uniform(0.2, 0.8), D.Uniform(-0.2, 1.2)
    for q in (D.Beta(1.5, 1.5), D.ContinuousBernoulli(0.3), D.Uniform(0.0, 1.0)):
        assert kl_divergence(inside, q).isfinite() and kl_divergence(across, q) == math.inf
    for q in (D.Exponential(1.0), D.Gamma(2.0, 1.0), D.Pareto(0.1, 1.0)):
        assert kl_divergence(inside, q).isfinite() and kl_divergence(across, q) == math.inf
    for p in (D.Beta(1.5, 1.5), D.ContinuousBernoulli(0.3)):
        assert kl_divergence(p, inside) == math.inf and kl_divergence(p, across).isfinite()
    assert kl_divergence(D.Pareto(1.0, 1.0), D.Pareto(2.0, 1.0)) == math.inf
    heavy = D.Pareto(1.0, clew.tensor([0.9, 1.5, 2.5]))
    assert kl_divergence(heavy, D.Exponential(1.0)).isinf().tolist() == [True, False, False]
    assert kl_divergence(heavy, D.Normal(0.0, 1.0)).isinf().tolist() == [True, True, False]
    zero, one = D.Bernoulli(clew.tensor([0.0, 1.0])), D.Bernoulli(clew.tensor([0.5, 0.5]))
    near(kl_divergence(zero, one), [math.log(2)] * 2, 1e-6)
    assert kl_divergence(one, zero).isinf().all()
    p, q = D.Categorical(t(0.0, 0.5, 0.5)), D.Categorical(t(0.2, 0.3, 0.5))
    assert kl_divergence(p, q).isfinite() and kl_divergence(q, p) == math.inf


def test_multivariate_normals():
    def dense(loc, cov):
        return D.MultivariateNormal(loc, cov)

    loc, cov = clew.tensor(L3).double(), clew.tensor(COVARIANCE).double()
    thin = clew.tensor([[1.0, 0.5], [0.0, -1.0], [2.0, 0.1]]).double()
    diag = t(0.5, 1.0, 0.2)
    low = [D.LowRankMultivariateNormal(loc, thin, diag),
           D.LowRankMultivariateNormal(loc.flip(0), thin[:, :1], 2 * diag)]  # fmt: skip
    whole = [dense(loc, cov), dense(loc[0], cov[1])]
    for p in low + whole:
        for q in low + whole:
            m, s, n, w = (v.numpy() for v in (p.mean, p.covariance_matrix, q.mean,
                                              q.covariance_matrix))  # fmt: skip
            m, s, n, w = (np.broadcast_to(v, np.broadcast_shapes(v.shape, (2,) + r))
                          for v, r in ((m, (3,)), (s, (3, 3)), (n, (3,)), (w, (3, 3))))  # fmt: skip
            solved = np.linalg.inv(w)
            expected = 0.5 * (
                np.trace(solved @ s, axis1=-2, axis2=-1)
                + np.einsum("ni,nij,nj->n", n - m, solved, n - m)
                - 3
                + np.linalg.slogdet(w)[1]
                - np.linalg.slogdet(s)[1]
            )
            near(kl_divergence(p, q), expected)
    with pytest.raises(ValueError, match="event shapes"):
        kl_divergence(whole[0], dense(t(0.0, 0.0), clew.eye(2).double()))


def test_within_exponential_families():
    """The generic rule agrees with the families' own."""
    generic = D.kl._KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]
    for p, q in (
        (D.Normal(t(0.3), t(0.8)), D.Normal(t(1.0), t(1.5))),
        (D.Gamma(t(2.3), t(0.8)), D.Gamma(t(1.4), t(2.0))),
        (D.Beta(t(2.3), t(0.8)), D.Beta(t(1.4), t(2.0))),
        (D.Dirichlet(t(2.3, 0.8, 1.0)), D.Dirichlet(t(1.4, 2.0, 0.7))),
        (D.Exponential(t(2.3)), D.Exponential(t(1.4))),
        (D.Poisson(t(2.3)), D.Poisson(t(1.4))),
        (D.Bernoulli(t(0.3)), D.Bernoulli(t(0.4))),
        (D.ContinuousBernoulli(t(0.3)), D.ContinuousBernoulli(t(0.5001))),
    ):
        near(generic(p, q), kl_divergence(p, q), 1e-7)
    with pytest.raises(NotImplementedError):
        generic(D.Normal(0.0, 1.0), D.Poisson(1.0))
    p = D.Wishart(t(4.0, 6.0), clew.tensor(COVARIANCE).double())
    q = D.Wishart(5.0, clew.tensor(COVARIANCE[0]).double())
    x = p.sample((20000,))
    monte_carlo = (p.log_prob(x) - q.log_prob(x)).mean(0)
    near(kl_divergence(p, q), monte_carlo, 0.03, 0.02)


def test_entropy_of_exponential_families_and_its_gradient():
    generic = D.ExponentialFamily.entropy
    for make in (
        lambda v: D.Normal(0.5, v),
        lambda v: D.Gamma(v, 2.0),
        lambda v: D.Exponential(v),
        lambda v: D.Bernoulli(v / 3),
        lambda v: D.ContinuousBernoulli(v / 3),
    ):
        v = clew.tensor([0.7, 1.6], dtype=clew.float64, requires_grad=True)
        d = make(v)
        near(generic(d), d.entropy(), 1e-7)
        (got,) = clew.autograd.grad(generic(d).sum(), v)
        (expected,) = clew.autograd.grad(make(v).entropy().sum(), v)
        near(got, expected, 1e-6)


@pytest.mark.parametrize(("p", "q"), COVERED, ids=lambda kind: kind.__name__)
def test_gradients_flow(p: type, q: type):
    def parameters(d):
        names = [n for n in d.arg_constraints if n != "logits"]
        return {n: getattr(d, n).detach().clone().requires_grad_() for n in names}

    left, right = parameters(PAIRS[p][0]), parameters(PAIRS[q][1])
    if p is D.Uniform and q is D.Pareto:
        right = {"scale": t(0.1).requires_grad_(), "alpha": t(2.5).requires_grad_()}
    kl_divergence(p(**left), q(**right)).sum().backward()
    for leaf in [*left.values(), *right.values()]:
        assert leaf.grad is not None and leaf.grad.isfinite().all()


class Left(D.Normal):
    pass


class Right(D.Normal):
    pass


def test_dispatch():
    assert kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == 0  # the base's rule
    with pytest.raises(NotImplementedError, match="Cauchy and q type Normal"):
        kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0))
    with pytest.raises(TypeError):
        register_kl("Normal", D.Normal)
    with pytest.raises(TypeError):
        register_kl(D.Normal, D.Normal(0.0, 1.0))
    registry = dict(D.kl._KL_REGISTRY)
    try:
        register_kl(Left, D.Normal)(lambda p, q: clew.tensor(1.0))
        assert kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == 1
        register_kl(D.Normal, Right)(lambda p, q: clew.tensor(2.0))
        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            assert kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == 1
        register_kl(Left, Right)(lambda p, q: clew.tensor(3.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == 3
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(registry)
        D.kl._KL_MEMOIZE.clear()


def test_transformed():
    p, q = D.LogNormal(0.0, 1.0), D.LogNormal(1.0, 2.0)
    assert kl_divergence(p, q) == kl_divergence(p.base_dist, q.base_dist)
    other = D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(0.0, 2.0))
    with pytest.raises(NotImplementedError):
        kl_divergence(p, other)


def test_poisson_against_a_sum():
    p, q, k = 2.5, 4.0, np.arange(120)
    mass, other = stats.poisson.pmf(k, p), stats.poisson.logpmf(k, q)
    expected = (mass * (stats.poisson.logpmf(k, p) - other)).sum()
    rate = clew.tensor([p, q, 0.0], dtype=clew.float64)
    got = kl_divergence(D.Poisson(rate), D.Poisson(rate.new_full((3,), q)))
    assert got.tolist() == pytest.approx([expected, 0.0, q])


def test_an_infinite_divergence_from_a_pareto_has_no_slope_and_spoils_no_other():
    alpha = clew.tensor([0.5, 1.5, 2.0, 2.5], requires_grad=True)
    scale = clew.tensor([[1.2], [0.5]], requires_grad=True)
    spread = clew.tensor([[1.1], [0.4]], requires_grad=True)
    divergence = kl_divergence(D.Pareto(scale, alpha), D.Normal(clew.tensor(0.3), spread))
    assert divergence[:, :3].isinf().all() and divergence[:, 3].isfinite().all()
    finite = kl_divergence(D.Pareto(scale, alpha[3:]), D.Normal(clew.tensor(0.3), spread))
    expected = clew.autograd.grad(finite.sum(), (alpha, scale, spread))
    got = clew.autograd.grad(divergence.sum(), (alpha, scale, spread))
    for g, e in zip(got, expected, strict=True):
        assert g.tolist() == e.tolist()


def test_pareto_against_an_integral():
    (scale, alpha), (low, beta) = (2.0, 3.0), (1.5, 1.2)
    p, q = stats.pareto(alpha, scale=scale), stats.pareto(beta, scale=low)
    expected, _ = integrate.quad(
        lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), scale, np.inf, epsabs=1e-12
    )

    def made(a, b):
        return D.Pareto(clew.tensor(a, dtype=clew.float64), clew.tensor(b, dtype=clew.float64))

    assert kl_divergence(made(scale, alpha), made(low, beta)).item() == pytest.approx(expected)
    assert kl_divergence(made(low, beta), made(scale, alpha)).item() == math.inf


def test_intervals_that_reach_beyond_the_other_on_one_side():
    q = D.Uniform(0.0, 1.0)
    for low, high in ((-0.5, 0.5), (0.5, 1.5), (-1.0, 2.0)):
        assert kl_divergence(D.Uniform(low, high), q).item() == math.inf
    assert kl_divergence(D.Uniform(0.25, 0.75), q).item() == pytest.approx(math.log(2))
