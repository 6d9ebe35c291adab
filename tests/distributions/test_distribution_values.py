"""Densities, probabilities, quantiles, entropies and moments against SciPy, sums and integrals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import ALL, CONTINUOUS, DISCRETE, LOC, P4, SCALE, Case, near
from scipy import integrate, stats

import clew
from clew import distributions as D
from clew.distributions import relaxed_bernoulli

QUANTILES = np.array([0.01, 0.2, 0.5, 0.77, 0.99])
WITH_SCIPY = [c for c in CONTINUOUS if c.scipy]


def implemented(function, *args):
    try:
        return function(*args)
    except NotImplementedError:
        return None


def points(case: Case) -> np.ndarray:
    frozen = case.frozen()
    shape = np.broadcast_shapes(*(np.shape(v) for v in case.params.values()))
    return frozen.ppf(QUANTILES.reshape((-1,) + (1,) * len(shape)) * np.ones(shape))


@pytest.mark.parametrize("case", WITH_SCIPY + DISCRETE, ids=str)
def test_log_prob(case: Case):
    x = points(case)
    frozen = case.frozen()
    expected = frozen.logpmf(x) if case in DISCRETE else frozen.logpdf(x)
    near(case.make().log_prob(clew.tensor(x)), expected)


@pytest.mark.parametrize("case", WITH_SCIPY, ids=str)
def test_cdf_and_icdf(case: Case):
    x, frozen, d = points(case), case.frozen(), case.make()
    cdf = implemented(d.cdf, clew.tensor(x))
    if case.kind in (D.Beta, D.FisherSnedecor, D.StudentT, D.VonMises):
        assert cdf is None  # as in PyTorch
    else:
        near(cdf, frozen.cdf(x))
    q = QUANTILES[:, None, None] * np.ones(x.shape)
    icdf = implemented(d.icdf, clew.tensor(q))
    if icdf is not None:
        near(icdf, frozen.ppf(q))
    elif case.kind not in (D.Chi2, D.Gamma, D.InverseGamma):
        assert cdf is None


@pytest.mark.parametrize("case", WITH_SCIPY + DISCRETE, ids=str)
def test_moments_and_entropy(case: Case):
    frozen, d = case.frozen(), case.make()
    if case.kind is D.VonMises:  # PyTorch's variance is the circular one
        near(d.mean, case.params["loc"])
        k = np.array(case.params["concentration"])
        points_, step = np.linspace(-np.pi, np.pi, 4001)[:-1], 2 * np.pi / 4000
        density = stats.vonmises.pdf(points_, k[..., None])
        near(d.variance, 1 - (density * np.cos(points_)).sum(-1) * step, 1e-8)
        return
    if case.kind is D.HalfCauchy:
        assert (d.mean == math.inf).all() and (d.variance == math.inf).all()
    elif case.kind is D.Cauchy:
        assert d.mean.isnan().all() and (d.variance == math.inf).all()
    else:
        near(d.mean, frozen.mean(), 1e-7)
        near(d.variance, frozen.var(), 1e-7)
        near(d.stddev, frozen.std(), 1e-7)
    entropy = implemented(d.entropy)
    if entropy is None:  # no closed form, or of several counts at once
        several = case.kind is D.Binomial and "total_count" in case.params
        assert case.kind in (D.FisherSnedecor, D.NegativeBinomial, D.Poisson) or several
    else:
        near(entropy, frozen.entropy(), 1e-6)
        near(d.perplexity(), np.exp(frozen.entropy()), 1e-6)


@pytest.mark.parametrize("case", [c for c in CONTINUOUS if not c.scipy], ids=str)
def test_without_scipy(case: Case):
    """The density integrates to 1, to the cdf, to the moments and to the entropy."""
    d = case.make()
    if case.kind is D.RelaxedBernoulli:  # integrable singularities at the ends: over the logit
        w = clew.linspace(-60, 60, 40001, dtype=clew.float64).reshape(-1, 1, 1)
        x = w.sigmoid()
        weight = d.log_prob(x).exp() * x * (1 - x) * (120 / 40000)
        near(weight.sum(0), np.ones(d.batch_shape), 1e-6)
        return
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # Substituting x = s² (3 - 2s) tames what is infinite at the ends.
    s, ds = clew.tensor((nodes + 1) / 2), clew.tensor(weights / 2)
    for _ in range(2):
        s, ds = s * s * (3 - 2 * s), ds * 6 * s * (1 - s)
    shape = (-1,) + (1,) * len(d.batch_shape)
    x, dx = s.reshape(shape), ds.reshape(shape)
    log_prob = d.log_prob(x)
    weight = log_prob.exp() * dx
    near(weight.sum(0), np.ones(d.batch_shape), 1e-6)
    mean = (weight * x).sum(0)
    near(d.mean, mean, 1e-6)
    near(d.variance, (weight * (x - mean).square()).sum(0), 1e-5)
    near(d.entropy(), -(weight * log_prob).sum(0), 1e-4, 1e-5)
    q = clew.tensor(QUANTILES).reshape(shape).expand((5,) + d.batch_shape)
    near(d.cdf(d.icdf(q)), q)
    middle = d.icdf(q)
    gradient = clew.autograd.functional.jvp(d.cdf, middle, clew.ones_like(middle))[1]
    near(gradient, d.log_prob(middle).exp(), 1e-6)


def test_continuous_bernoulli_does_not_jump_where_the_series_takes_over():
    p = clew.tensor([0.4989999, 0.4990001, 0.5009999, 0.5010001], dtype=clew.float64)
    d = D.ContinuousBernoulli(p)
    for value in (d.mean, d.variance, d.log_prob(clew.tensor(0.3)), d.entropy()):
        assert abs(value[0] - value[1]) < 1e-6 and abs(value[2] - value[3]) < 1e-6


def test_poisson_zero_rate():
    d = D.Poisson(clew.tensor([0.0, 0.0]))
    assert d.log_prob(clew.tensor([0.0, 1.0])).tolist() == [0.0, -math.inf]
    assert d.sample((3,)).sum() == 0


def test_geometric_certain_success():
    d = D.Geometric(clew.tensor(1.0))
    assert d.log_prob(clew.tensor(0.0)) == 0 and d.log_prob(clew.tensor(2.0)) == -math.inf
    assert d.mean == 0


@pytest.mark.parametrize("name", ["probs", "logits"])
def test_categorical(name: str):
    p = np.array(P4)
    p = np.exp(p) if name == "logits" else p
    p = p / p.sum(-1, keepdims=True)
    d = D.Categorical(**{name: clew.tensor(P4, dtype=clew.float64)})
    near(d.probs, p)
    near(d.logits, np.log(p))
    near(d.log_prob(clew.tensor([[0, 1], [3, 2], [1, 1]])),
         np.log([[p[0, 0], p[1, 1]], [p[0, 3], p[1, 2]], [p[0, 1], p[1, 1]]]))  # fmt: skip
    near(d.entropy(), stats.entropy(p, axis=-1))
    assert d.mode.tolist() == p.argmax(-1).tolist()
    assert d.mean.isnan().all() and d.mean.shape == (2,) and d.variance.isnan().all()
    assert d.enumerate_support().tolist() == [[i, i] for i in range(4)]
    assert d.enumerate_support(False).shape == (4, 1)
    near(d.log_prob(d.enumerate_support()).exp().sum(0), [1, 1])
    assert d.support.upper_bound == 3 and d.support.is_discrete


def test_categorical_impossible_category():
    d = D.Categorical(clew.tensor([0.0, 0.5, 0.5]))
    near(d.entropy(), math.log(2), 1e-6)
    d = D.Categorical(logits=clew.tensor([-math.inf, 0.0, 0.0]))
    near(d.entropy(), math.log(2), 1e-6)


def test_one_hot():
    d = D.OneHotCategorical(clew.tensor(P4, dtype=clew.float64))
    support = d.enumerate_support()
    assert support.shape == (4, 2, 4) and d.enumerate_support(False).shape == (4, 1, 4)
    near(d.log_prob(support).exp().sum(0), [1, 1])
    near(d.log_prob(support)[2], np.log(np.array(P4)[:, 2]))
    near(d.mean, P4)
    near(d.variance, np.array(P4) * (1 - np.array(P4)))
    assert d.mode.tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]
    near(d.entropy(), stats.entropy(P4, axis=-1))


def test_multinomial():
    p = np.array(P4)
    d = D.Multinomial(3, clew.tensor(P4, dtype=clew.float64))
    every = np.array([c for c in itertools.product(range(4), repeat=4) if sum(c) == 3])
    log_prob = d.log_prob(clew.tensor(every[:, None].astype(float)))
    for row in range(2):
        expected = stats.multinomial(3, p[row]).logpmf(every)
        near(log_prob[:, row], expected)
        near(d.entropy()[row], -(np.exp(expected) * expected).sum())
    near(d.mean, 3 * p)
    near(d.variance, 3 * p * (1 - p))
    impossible = D.Multinomial(1, clew.tensor([0.0, 1.0]))
    assert impossible.log_prob(clew.tensor([0.0, 1.0])).abs() < 1e-6


def test_dirichlet():
    a = np.array([[0.4, 1.0, 2.5], [7.0, 0.9, 30.0]])
    d = D.Dirichlet(clew.tensor(a))
    x = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    for row in range(2):
        reference = stats.dirichlet(a[row])
        near(d.log_prob(clew.tensor(x[:, None]))[:, row], reference.logpdf(x.T))
        near(d.mean[row], reference.mean())
        near(d.variance[row], reference.var())
        near(d.entropy()[row], reference.entropy())
    assert d.mode.sum(-1).tolist() == pytest.approx([1, 1])


def test_binomial_support_and_entropy():
    d = D.Binomial(3, clew.tensor([0.2, 0.7]))
    assert d.enumerate_support().shape == (4, 2) and d.enumerate_support(False).shape == (4, 1)
    mixed = D.Binomial(clew.tensor([2, 3]), clew.tensor(0.5))
    for call in (mixed.enumerate_support, mixed.entropy):
        with pytest.raises(NotImplementedError, match="Inhomogeneous total count"):
            call()
    with pytest.raises(NotImplementedError, match="inhomogeneous total_count"):
        D.Multinomial(clew.tensor([1, 2]), clew.ones(3))


FLAT = (D.Kumaraswamy, D.FisherSnedecor, D.Bernoulli, D.Beta)
NO_MODE = (D.Uniform, D.RelaxedBernoulli, D.ContinuousBernoulli)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_mode_is_the_most_probable(case: Case):
    d = case.make(validate_args=False)
    mode = implemented(lambda: d.mode)
    if case.kind in NO_MODE or mode is None:
        assert mode is None or mode.isnan().all()
        return
    at_mode = d.log_prob(mode)
    other = d.log_prob(d.sample((50,)))
    fine = (at_mode >= other - 1e-9) | at_mode.isnan()
    # Densities without a maximum have their infinite end, or NaN, as mode.
    assert fine.all(), (mode, at_mode)
    assert case.kind in FLAT or mode.isnan().sum() == 0


def test_mixture():
    weights = np.array([0.2, 0.5, 0.3])
    loc, scale = np.array(LOC), np.array(SCALE)
    d = D.MixtureSameFamily(
        D.Categorical(clew.tensor(weights)), D.Normal(clew.tensor(loc), clew.tensor(scale))
    )
    assert d.batch_shape == (2,) and d.event_shape == ()
    x = np.array([[-1.0], [0.3], [4.0]])
    each = stats.norm(loc, scale)
    near(d.log_prob(clew.tensor(x)), np.log((weights * each.pdf(x[..., None])).sum(-1)))
    near(d.cdf(clew.tensor(x)), (weights * each.cdf(x[..., None])).sum(-1))
    near(d.mean, (weights * loc).sum(-1))
    second = (weights * (loc**2 + scale**2)).sum(-1)
    near(d.variance, second - (weights * loc).sum(-1) ** 2)
    assert d.expand((4, 2)).sample((3,)).shape == (3, 4, 2)


def test_mixture_of_vectors():
    base = D.Independent(D.Normal(clew.tensor(LOC), clew.tensor(SCALE)), 1)
    d = D.MixtureSameFamily(D.Categorical(clew.tensor([0.5, 0.5])), base)
    assert d.batch_shape == () and d.event_shape == (3,)
    assert d.sample((5,)).shape == (5, 3) and d.log_prob(d.sample((5,))).shape == (5,)
    near(d.mean, np.mean(LOC, 0), 1e-6)
    drawn = d.sample((20000,))
    near(drawn.mean(0), d.mean, 0.05, 0.1)
    near(drawn.var(0), d.variance, 0.1, 0.1)


def test_mixture_arguments():
    weights, normal = D.Categorical(clew.ones(3)), D.Normal(clew.zeros(3), 1.0)
    for mixture, component in (
        (normal, normal),
        (weights, D.Normal),
        (weights, D.Normal(0.0, 1.0)),
        (weights, D.Normal(clew.zeros(2), 1.0)),
        (D.Categorical(clew.ones(4, 3)), D.Normal(clew.zeros(2, 3), 1.0)),
    ):
        with pytest.raises(ValueError, match="MixtureSameFamily"):
            D.MixtureSameFamily(mixture, component)
    d = D.MixtureSameFamily(weights, normal)
    assert d.mixture_distribution is weights and d.component_distribution is normal
    assert repr(d).startswith("MixtureSameFamily(\n  Categorical(")


def test_generalized_pareto_tails():
    d = D.GeneralizedPareto(*(clew.tensor(v, dtype=clew.float64) for v in (1.0, 2.0, 0.3)))
    law, x = stats.genpareto(0.3, 1.0, 2.0), np.array([1.5, 4.0, 30.0])
    near(d.log_survival_function(clew.tensor(x)), law.logsf(x))
    near(d.log_cdf(clew.tensor(x)), law.logcdf(x))


def test_bernoulli_support():
    d = D.Bernoulli(clew.tensor([0.2, 0.7], dtype=clew.float64))
    assert d.enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert d.enumerate_support(False).shape == (2, 1)
    near(d.log_prob(d.enumerate_support()).exp().sum(0), [1, 1])


def test_independent():
    normal = D.Normal(clew.tensor(LOC), clew.tensor(SCALE))
    for n in range(3):
        d = D.Independent(normal, n)
        assert d.batch_shape == (2, 3)[: 2 - n] and d.event_shape == (2, 3)[2 - n :]
        x = d.sample((4,))
        dims = tuple(range(-n, 0))
        expected = normal.log_prob(x).sum(dims) if n else normal.log_prob(x)
        near(d.log_prob(x), expected, 1e-5)
        near(d.entropy(), normal.entropy().sum(dims) if n else normal.entropy(), 1e-5)
        assert d.support.event_dim == n
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        D.Independent(normal, 3)
    assert D.Independent(D.Bernoulli(clew.ones(2)), 0).has_enumerate_support
    with pytest.raises(NotImplementedError):
        D.Independent(D.Bernoulli(clew.ones(2)), 1).enumerate_support()


def test_relaxed_one_hot_integrates_to_one():
    d = D.RelaxedOneHotCategorical(clew.tensor(0.8), clew.tensor([0.3, 0.7], dtype=clew.float64))
    # Over the logit of the first part, as the density is infinite at the ends.
    w = clew.linspace(-40, 40, 20001, dtype=clew.float64)
    x = clew.stack([w.sigmoid(), (-w).sigmoid()], -1)
    total = (d.log_prob(x).exp() * x.prod(-1)).sum() * (80 / 20000)
    assert total.item() == pytest.approx(1, abs=1e-6)
    with pytest.raises(ValueError):
        d.log_prob(clew.tensor([0.5, 0.6]))


def test_logistic_normal_integrates_to_one():
    d = D.LogisticNormal(clew.tensor([0.3]), clew.tensor([0.7]))
    got = integrate.quad(lambda x: float(d.log_prob(clew.tensor([x, 1 - x])).exp()), 1e-6, 1 - 1e-6)
    assert got[0] == pytest.approx(1, abs=1e-3)


def test_float32_densities_stay_exact():
    """What would cancel in float32 does not."""
    assert D.Gumbel(0.0, 1.0).log_prob(clew.tensor(0.0)) == -1
    assert D.Laplace(0.0, 1.0).cdf(clew.tensor(-30.0)) >= 0
    assert D.Exponential(1.0).cdf(clew.tensor(1e-6)) == pytest.approx(1e-6, rel=1e-5)
    d = D.GeneralizedPareto(0.0, 1.0, clew.tensor([1e-9, 0.0, 1e-5]))
    near(d.log_prob(clew.tensor(2.0)), [-2, -2, -2], 1e-4)
    d = D.GeneralizedPareto(0.0, 1.0, clew.tensor([-0.5, 0.0, 2.0]), validate_args=False)
    assert d.cdf(clew.tensor(math.inf))[1:].tolist() == [1, 1]
    assert d.icdf(clew.tensor(1.0)).tolist() == [2, math.inf, math.inf]
    for d in (D.Cauchy(0.0, 1.0), D.HalfCauchy(1.0)):
        assert d.icdf(clew.tensor(1.0)) == math.inf
    assert D.VonMises(0.0, 1000.0).log_prob(clew.tensor(0.0)).isfinite()


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_samples_of_shares_lie_inside(dtype):
    clew.manual_seed(0)

    def number(x):
        return clew.tensor(x, dtype=dtype)

    for a, b in ((0.3, 0.3), (0.5, 0.02), (0.01, 1.0)):
        d = D.Beta(number(a), number(b))
        v = d.rsample((20000,))
        assert v.min() > 0 and v.max() < 1
        assert d.log_prob(v).isfinite().all()
    d = D.Dirichlet(clew.full((3,), 0.02, dtype=dtype))
    v = d.sample((5000,))
    assert v.min() > 0 and v.max() < 1 and d.log_prob(v).isfinite().all()
    assert D.Dirichlet(number([2.0])).sample().item() == 1


@pytest.mark.parametrize("logit", [-100.0, -20.0, -3.0, 3.0, 20.0, 90.0])
def test_continuous_bernoulli_of_any_logits(logit):
    def exact(x):
        # log p(x) = x l - log((e^l - 1) / l), and the mean is the slope of the normalizer.
        return x * x_logit - (max(x_logit, 0) + np.log(-np.expm1(-abs(x_logit)) / abs(x_logit)))

    x_logit = np.float64(logit)
    mean = 1 / -np.expm1(-x_logit) - 1 / x_logit
    for dtype, rtol in ((clew.float32, 2e-5), (clew.float64, 1e-9)):
        eta = clew.tensor(logit, dtype=dtype, requires_grad=True)
        d = D.ContinuousBernoulli(logits=eta)
        x = clew.tensor(0.3, dtype=dtype)
        got = d.log_prob(x)
        np.testing.assert_allclose(got.item(), exact(0.3), rtol=rtol)
        got.backward()
        np.testing.assert_allclose(eta.grad.item(), 0.3 - mean, rtol=1e-4)
        np.testing.assert_allclose(d.mean.item(), mean, rtol=rtol)
        spread = 1 / x_logit**2 - 1 / (4 * np.sinh(x_logit / 2) ** 2)
        np.testing.assert_allclose(d.variance.item(), spread, rtol=1e-4)
        np.testing.assert_allclose(d.entropy().item(), -exact(mean), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("logit", [-200.0, -20.0, -1.1, -0.9, 0.9, 1.1, 20.0, 80.0])
def test_continuous_bernoulli_quantiles_at_the_ends(logit, dtype):
    d = D.ContinuousBernoulli(logits=clew.tensor(logit, dtype=dtype))
    wide = np.longdouble(logit)
    u = clew.tensor([0.0, 1e-30, 1e-9, 0.3, 0.75], dtype=dtype, requires_grad=True)
    x = d.icdf(u)
    # log(1 + u (exp(l) - 1)) / l
    np.testing.assert_allclose(
        x.tolist(), np.log1p(np.array(u.tolist()) * np.expm1(wide)).astype(float) / logit,
        rtol=3e-6, atol=1e-30,
    )  # fmt: skip
    assert clew.autograd.grad(x.sum(), u)[0].isfinite().all()
    assert d.icdf(clew.tensor(1.0, dtype=dtype)).item() == 1.0
    value = clew.tensor([1e-6, 0.01, 0.25, 0.9], dtype=dtype)
    want = np.expm1(wide * np.array(value.tolist())) / np.expm1(wide)
    np.testing.assert_allclose(d.cdf(value).tolist(), want.astype(float), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_entropy_of_rare_success(dtype):
    p = clew.tensor([1e-30, 1e-12, 1e-8], dtype=dtype, requires_grad=True)
    entropy = D.Geometric(p).entropy()
    near(entropy, 1 - np.log(p.detach().double().numpy()), 1e-6)
    slope = clew.autograd.grad(entropy.sum(), p)[0] * p
    near(slope, -np.ones(3), 1e-5)
    logits = clew.tensor([-2000.0, -200.0, -40.0], dtype=dtype, requires_grad=True)
    entropy = D.Geometric(logits=logits).entropy()
    near(entropy, 1 - logits.detach(), 1e-6)
    near(clew.autograd.grad(entropy.sum(), logits)[0], -np.ones(3), 1e-6)


def test_no_kumaraswamy_variance_is_negative():
    a = clew.tensor([1e-6, 0.1, 0.5, 1.0, 2.0, 10.0, 1e4])
    d = D.Kumaraswamy(a[:, None].expand(7, 7), a.expand(7, 7))
    assert (d.variance >= 0).all() and not d.stddev.isnan().any()


def test_what_cannot_happen_and_did():
    d = D.Multinomial(3, logits=clew.tensor([0.0, -np.inf, 0.0]))
    possible, impossible = d.log_prob(clew.tensor([[2.0, 0.0, 1.0], [1.0, 1.0, 1.0]])).tolist()
    assert possible == pytest.approx(np.log(3 / 8)) and impossible == -np.inf


def test_logistic_normal_of_numbers():
    d = D.LogisticNormal(0.0, 1.0)
    assert d.event_shape == (2,) and d.batch_shape == ()
    # The logit of the first share y is normal, and its slope is 1 / (y (1 - y)).
    want = stats.norm.logpdf(np.log(0.3 / 0.7)) - np.log(0.3 * 0.7)
    assert d.log_prob(clew.tensor([0.3, 0.7])).item() == pytest.approx(want, rel=1e-5)


def test_no_failures_to_wait_for():
    d = D.NegativeBinomial(clew.tensor([0.0, 2.0]), clew.tensor(0.5))
    assert d.log_prob(clew.tensor(0.0)).tolist() == pytest.approx([0.0, 2 * math.log(0.5)])


def test_density_without_a_mode():
    a, b = clew.tensor([0.5, 2.0, 0.5, 2.0]), clew.tensor([2.0, 0.5, 0.5, 2.0])
    mode = D.Kumaraswamy(a, b).mode
    assert mode.isnan().tolist() == [True, True, True, False]


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_relaxed_samples_are_finite_at_the_ends_of_the_noise(noise, monkeypatch):
    monkeypatch.setattr(clew, "rand", lambda *size, **options: clew.full(size[0], noise))
    one_hot = D.RelaxedOneHotCategorical(0.5, probs=clew.tensor([0.2, 0.8]))
    assert one_hot.rsample().isfinite().all()
    for p in (0.0, 0.3, 1.0):
        assert (
            relaxed_bernoulli.LogitRelaxedBernoulli(0.5, probs=clew.tensor(p))
            .rsample()
            .isfinite()
            .all()
        )


def test_geometric_of_certain_success():
    for given in ({"logits": clew.tensor(17.0)}, {"probs": clew.tensor(1.0)}):
        p = next(iter(given.values())).requires_grad_()
        d = D.Geometric(**given, validate_args=False)
        got = d.log_prob(clew.tensor([0.0, 1.0]))
        assert got.tolist() == [0, -np.inf]
        d.log_prob(clew.tensor(0.0)).backward()
        assert p.grad.item() == (0 if "logits" in given else 1)


def test_variance_of_student_t_at_the_ends_of_its_ranges():
    df = clew.tensor([0.5, 1.0, 1.5, 2.0, 2.5, 4.0], dtype=clew.float64)
    variance = D.StudentT(df, 0.0, 3.0).variance.tolist()
    assert np.isnan(variance[:2]).all() and variance[2:4] == [np.inf, np.inf]
    assert variance[4:] == pytest.approx([9 * 2.5 / 0.5, 9 * 4 / 2])
    df = clew.tensor([2.0, 3.0], dtype=clew.float64, requires_grad=True)
    D.StudentT(df).variance.sum().backward()
    assert df.grad.tolist() == [0.0, -2.0]  # of an infinite variance there is none


def test_geometric_log_prob_falls_with_the_value_from_zero_on():
    p = clew.tensor([0.2, 0.6, 1.0, 1.0], dtype=clew.float64, requires_grad=True)
    value = clew.tensor([0.0, 3.0, 0.0, 0.0], dtype=clew.float64, requires_grad=True)
    log_prob = D.Geometric(p).log_prob(value)
    assert log_prob.tolist()[2:] == [0.0, 0.0]
    slope, of_p = clew.autograd.grad(log_prob.sum(), (value, p))
    assert slope.tolist()[:2] == pytest.approx([math.log(0.8), math.log(0.4)])
    assert of_p.tolist() == pytest.approx([5.0, 1 / 0.6 - 3 / 0.4, 1.0, 1.0])


def test_quantiles_of_half_distributions_are_of_prob():
    near(D.HalfNormal(2.0).icdf(prob=clew.tensor(0.3)), stats.halfnorm(scale=2.0).ppf(0.3), 1e-6)
    near(D.HalfCauchy(2.0).icdf(prob=clew.tensor(0.3)), stats.halfcauchy(scale=2.0).ppf(0.3), 1e-6)
