"""Draws: their law, shapes, dtypes, repeatability; gradients through them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import ALL, CONTINUOUS, COVARIANCE, DISCRETE, P4, Case, near
from scipy import special, stats

import clew
from clew import distributions as D
from clew.distributions import _implicit

N = 4000
# A test makes at most 30 comparisons: with this bound a right sampler fails one seed in 300.
LEAST_P = 1e-4


@pytest.mark.parametrize("case", [c for c in CONTINUOUS if c.scipy], ids=str)
def test_continuous_law(case: Case):
    """Kolmogorov-Smirnov against SciPy's cdf."""
    x, law = case.make().sample((N,)).numpy(), case.frozen()
    if case.kind is D.VonMises:  # SciPy does not wrap
        loc = np.array(case.params["loc"])
        x, law = (
            (x - loc + np.pi) % (2 * np.pi) - np.pi,
            stats.vonmises(case.params["concentration"]),
        )
    u = law.cdf(x)
    for column in u.reshape(N, -1).T:
        assert stats.kstest(column, "uniform").pvalue > LEAST_P


@pytest.mark.parametrize("case", [c for c in CONTINUOUS if not c.scipy], ids=str)
def test_continuous_law_without_scipy(case: Case):
    d = case.make()
    if case.kind is D.RelaxedBernoulli:  # above 1/2 with the probability of 1
        share = (d.sample((N,)) > 0.5).double().mean(0)
        assert ((share - d.probs).abs() < 5 * (d.probs * (1 - d.probs) / N).sqrt()).all()
        return
    u = d.cdf(d.sample((N,))).numpy()
    for column in u.reshape(N, -1).T:
        assert stats.kstest(column, "uniform").pvalue > LEAST_P


@pytest.mark.parametrize("case", DISCRETE, ids=str)
def test_discrete_law(case: Case):
    """Chi-squared over the values that are expected five times or more."""
    drawn = case.make().sample((N,)).numpy()
    values = np.arange(int(drawn.max()) + 1)
    shape = (-1,) + (1,) * (drawn.ndim - 1)
    expected = N * case.frozen().pmf(values.reshape(shape) * np.ones(drawn.shape[1:]))
    for row in np.ndindex(*drawn.shape[1:]):
        counts = np.bincount(drawn[(slice(None), *row)].astype(int), minlength=len(values))
        often = expected[(slice(None), *row)] >= 5
        f_exp = np.append(expected[(slice(None), *row)][often], 0)
        f_exp[-1] = N - f_exp.sum()
        f_obs = np.append(counts[often], counts[~often].sum())
        if f_exp[-1] < 1e-3:
            assert f_obs[-1] == 0
            f_exp, f_obs = f_exp[:-1], f_obs[:-1]
        if len(f_exp) > 1:
            f_exp *= f_obs.sum() / f_exp.sum()
            assert stats.chisquare(f_obs, f_exp).pvalue > LEAST_P


@pytest.mark.parametrize("case", ALL, ids=str)
def test_moments(case: Case):
    if case.kind in (D.Cauchy, D.HalfCauchy, D.VonMises, D.LKJCholesky, D.LogisticNormal):
        return
    if case.kind in (D.RelaxedBernoulli, D.RelaxedOneHotCategorical, D.Categorical):
        return
    d = case.make()
    x = d.sample((N,))
    error = (x.mean(0) - d.mean).abs() / (d.variance / N).sqrt().clamp(min=1e-12)
    # Heavy tails make the variance of the mean itself uncertain.
    assert (error[d.variance < math.inf] < 6).all(), error


@pytest.mark.parametrize("case", ALL, ids=str)
def test_shapes_dtypes_and_seeds(case: Case):
    for dtype in (clew.float32, clew.float64):
        d = case.make()
        if dtype == clew.float32:
            params = {k: clew.tensor(v, dtype=dtype) for k, v in case.params.items()}
            d = case.kind(**params, **(case.other or {}))
        for shape in ((), (3,), (2, 1), (0,)):
            clew.manual_seed(5)
            x = d.sample(shape)
            assert x.shape == shape + tuple(d.batch_shape) + tuple(d.event_shape)
            assert x.dtype == (clew.int64 if case.kind is D.Categorical else dtype)
            assert not x.requires_grad
            clew.manual_seed(5)
            assert clew.equal(x, d.sample(shape))
            assert d.support.check(x).all()
        assert not clew.equal(d.sample((20,)), d.sample((20,)))
        assert d.log_prob(d.sample((2,))).shape == (2,) + tuple(d.batch_shape)
        with pytest.warns(FutureWarning):
            assert d.sample_n(4).shape[0] == 4


@pytest.mark.parametrize("case", ALL, ids=str)
def test_rsample_is_differentiable_where_it_says_so(case: Case):
    params = {
        k: clew.tensor(v, dtype=clew.float64, requires_grad=True) for k, v in case.params.items()
    }
    d = case.kind(**params, **(case.other or {}))
    assert not d.sample((2,)).requires_grad
    if not d.has_rsample:
        with pytest.raises(NotImplementedError):
            d.rsample()
        return
    x = d.rsample((2,))
    assert x.requires_grad
    (x * clew.randn(x.shape, dtype=x.dtype)).sum().backward()
    for name, p in params.items():
        if (case.kind, name) in ((D.LogisticNormal, ""),):
            continue
        assert p.grad is not None and p.grad.isfinite().all() and (p.grad != 0).any(), name


def test_known_streams():
    """What a seed gives where a draw is one fill of a tensor, as PyTorch programs expect."""
    clew.manual_seed(0)
    near(D.Normal(clew.zeros(3), 2.0).sample(), [3.0820, -0.5869, -4.3576], 1e-4)
    clew.manual_seed(0)
    near(D.Uniform(clew.zeros(2), 10.0).sample(), [4.9626, 7.6822], 1e-4)
    clew.manual_seed(0)
    near(D.Laplace(clew.zeros(2), 1.0).sample(), [-0.0075, 0.7685], 1e-2)


def test_known_streams_of_rejection_samplers():
    """PyTorch's draws from equal seeds; each element takes as many numbers as it needs."""
    a = clew.tensor([0.05, 0.5, 1.0, 2.0, 30.0, 0.9, 1e-3])
    draws = {
        D.Gamma(a, 1.0): [
            [7.98967e-10, 1.35336947, 0.05217972, 0.86331952, 26.7310562, 1.97670329, 1.17549e-38]
        ],
        D.Dirichlet(a[1:4]): [
            [0.02944198, 0.36861032, 0.60194772],
            [0.00272898, 0.1009353, 0.89633572],
            [0.22913843, 0.61425209, 0.15660948],
        ],
        D.Beta(a[1:4], a[2:5]): [[0.07396510, 0.70529383, 0.02358168]],
        D.Chi2(a[1:4]): [[0.02832275, 2.70673895, 0.10435943]],
        D.StudentT(a[1:4]): [[-0.3449972, -1.12278736, -1.26373383]],
        D.NegativeBinomial(clew.tensor([3.0, 5.0]), clew.tensor([0.3, 0.5])): [[1, 3], [0, 8]],
        D.Binomial(
            clew.tensor([5.0, 100.0, 1e4, 40.0, 0.0, 3.0]),
            clew.tensor([0.3, 0.5, 0.01, 0.9, 0.5, 1.0]),
        ): [[1, 48, 93, 35, 0, 3], [1, 43, 96, 36, 0, 3]],
        D.VonMises(clew.tensor([0.0, 1.0, 2.0]), clew.tensor([3.0, 0.5, 10.0])): [
            [0.85650235, 2.16622829, 1.48650360],
            [-0.40887865, 1.07423162, 1.80780411],
        ],
    }
    for law, want in draws.items():
        clew.manual_seed(5)
        got = law.sample((len(want),)).numpy()
        np.testing.assert_allclose(got, want, rtol=2e-5, err_msg=str(law))


def test_binomial_of_a_count_that_is_not_finite_ends():
    n = clew.tensor([math.inf, math.nan, 5.0, 5.0], dtype=clew.float64)
    p = clew.tensor([0.5, 0.5, math.nan, 1.0], dtype=clew.float64)
    assert clew._C.ops._binomial_draws(n, p).tolist()[3] == 5
    assert clew._C.ops._binomial_draws(n, p)[:3].isnan().all()


def test_samplers_of_the_core_follow_the_seed_and_the_state():
    for draw in (
        lambda: D.Gamma(clew.ones(3), 1.0).sample(),
        lambda: D.Dirichlet(clew.ones(3)).sample(),
        lambda: D.Binomial(50, clew.tensor([0.2, 0.7])).sample(),
    ):
        clew.manual_seed(1)
        state = clew.get_rng_state()
        first, second = draw(), draw()
        assert not clew.equal(first, second)
        clew.set_rng_state(state)
        assert clew.equal(first, draw()) and clew.equal(second, draw())


def test_small_concentrations_do_not_underflow():
    x = D.Dirichlet(clew.full((100, 4), 1e-3)).sample()
    assert x.isfinite().all() and ((x.sum(-1) - 1).abs() < 1e-6).all()
    z = D.Gamma(clew.full((100,), 1e-3), 1.0).sample()
    assert (z > 0).all()


# ---- implicit gradients ----

QUANTILES = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("a", [0.01, 0.2, 0.9, 1.0, 1.5, 4.0, 30.0, 1e3, 1e5])
def test_gamma_derivative(a: float):
    """dz / da at a fixed quantile, against differences of SciPy's inverse cdf."""
    z = special.gammaincinv(a, QUANTILES)
    keep = z > 1e-290
    z, q, h = z[keep], QUANTILES[keep], 1e-4 * a
    steps = [special.gammaincinv(a + k * h, q) for k in (-2, -1, 1, 2)]
    logs = np.log(steps)
    expected = (logs[0] - 8 * logs[1] + 8 * logs[2] - logs[3]) / (12 * h)
    near(_implicit.gamma_log_derivative(clew.full_like(clew.tensor(z), a), clew.tensor(z)),
         expected, 1e-6)  # fmt: skip


def test_gamma_derivative_of_exponentials():
    """a = 1 and z small: d log z / d a = ψ(2) - log z, up to O(z)."""
    z = clew.tensor([1e-12, 1e-200], dtype=clew.float64)
    one = clew.ones_like(z)
    near(_implicit.gamma_log_derivative(one, z), (2 * one).digamma() - z.log(), 1e-10)


@pytest.mark.parametrize("a", [0.02, 0.5, 1.0, 3.0, 40.0, 1e3])
@pytest.mark.parametrize("b", [0.02, 0.5, 1.0, 3.0, 40.0, 1e3])
def test_beta_derivative(a: float, b: float):
    """d logit(x) / da at a fixed quantile, against differences of SciPy's inverse cdf."""

    def logit(a: float) -> np.ndarray:
        x, rest = special.betaincinv(a, b, QUANTILES), special.betaincinv(b, a, 1 - QUANTILES)
        with np.errstate(divide="ignore"):
            return np.log(x) - np.log(rest)

    h = 2e-4 * a
    steps = [logit(a + k * h) for k in (-2, -1, 1, 2)]
    expected = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    at = logit(a)
    keep = np.isfinite(expected) & np.isfinite(at)
    full = clew.full((int(keep.sum()),), a, dtype=clew.float64)
    rest = clew.full_like(full, b)
    got = _implicit.beta_logit_derivative(full, rest, clew.tensor(at[keep]))
    near(got, expected[keep], 1e-6)


def test_beta_derivative_at_extremes_does_not_depend_on_the_nodes(monkeypatch):
    a, b = clew.tensor(10 ** np.random.default_rng(0).uniform(-3, 4, (2, 500)))
    logit = _implicit.x_logit(D.Dirichlet(clew.stack([a, b], -1)).sample())[:, 0]
    expected = _implicit.beta_logit_derivative(a, b, logit)
    nodes, weights = np.polynomial.legendre.leggauss(90)
    monkeypatch.setattr(_implicit, "_NODES", (nodes + 1) / 2)
    monkeypatch.setattr(_implicit, "_WEIGHTS", weights / 2)
    near(_implicit.beta_logit_derivative(a, b, logit), expected, 1e-10)
    # logit(1 - x) moves the other way with the other parameter's role
    other = _implicit.beta_logit_derivative(b, a, -logit)
    assert (expected > 0).all() and (other > 0).all()


def test_beta_rsample_gradients():
    a = clew.tensor([0.5, 2.0, 7.0], dtype=clew.float64, requires_grad=True)
    b = clew.tensor([1.5, 0.7, 4.0], dtype=clew.float64, requires_grad=True)
    x = D.Beta(a, b).rsample((5,))
    x.sum().backward()
    q = special.betainc(a.detach().numpy(), b.detach().numpy(), x.detach().numpy())
    h = 1e-5
    for leaf, other in ((a, lambda s: (a.detach().numpy() + s, b.detach().numpy())),
                        (b, lambda s: (a.detach().numpy(), b.detach().numpy() + s))):  # fmt: skip
        difference = special.betaincinv(*other(h), q) - special.betaincinv(*other(-h), q)
        near(leaf.grad, (difference / (2 * h)).sum(0), 1e-6)


def test_dirichlet_gradient_moves_each_marginal_as_its_beta_quantile():
    a = clew.tensor([0.5, 2.0, 7.0], dtype=clew.float64, requires_grad=True)
    x = D.Dirichlet(a).rsample()
    for i in range(3):
        (row,) = clew.autograd.grad(x[i], a, retain_graph=True)
        value, rest = a.detach().numpy(), a.detach().numpy().sum() - a.detach().numpy()
        q, h = special.betainc(value[i], rest[i], x[i].item()), 1e-5
        ends = [special.betaincinv(value[i] + s, rest[i], q) for s in (h, -h)]
        assert row[i].item() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)
        total = sum(clew.autograd.grad(x[j], a, retain_graph=True)[0][i] for j in range(3))
        assert abs(total.item()) < 1e-12  # stays on the simplex


@pytest.mark.parametrize("kind", ["gamma", "dirichlet"])
def test_gradient_of_an_expectation(kind: str):
    """The mean of d f(z) / d a is d E f(z) / d a."""
    value = [0.6, 2.0, 5.0]
    a = clew.tensor(value, dtype=clew.float64, requires_grad=True)
    if kind == "gamma":
        z = D.Gamma(a, 2.0).rsample((20000,))
        z.square().mean(0).sum().backward()
        expected = (2 * np.array(value) + 1) / 4  # E z² = a (a + 1) / rate²
        near(a.grad, expected, 0.05)
    else:
        x = D.Dirichlet(a).rsample((20000,))
        x[:, 0].square().mean().backward()
        b = clew.tensor(value, dtype=clew.float64, requires_grad=True)
        t = b.sum()
        (b[0] * (b[0] + 1) / (t * (t + 1))).backward()
        near(a.grad, b.grad, 0.05, 1e-3)


def test_second_derivatives_of_samples():
    """Backward through backward, against differences of the first derivative at fixed quantiles."""
    for a in (0.3, 2.5, 50.0):
        for q in (0.05, 0.6, 0.99):

            def first(a: float, q: float = q) -> clew.Tensor:
                z = clew.tensor(special.gammaincinv(a, q), dtype=clew.float64)
                return z * _implicit.gamma_log_derivative(clew.full_like(z, a), z)

            h = 1e-4 * a
            expected = (first(a + h) - first(a - h)) / (2 * h)
            leaf = clew.tensor(a, dtype=clew.float64, requires_grad=True)
            z = clew.tensor(special.gammaincinv(a, q), dtype=clew.float64, requires_grad=True)
            slope = z * _implicit.gamma_log_derivative(leaf, z)
            by_a, by_z = clew.autograd.grad(slope, (leaf, z))
            near(by_a + by_z * slope, expected, 1e-5)
    for a, b, q in ((0.3, 2.0, 0.1), (0.02, 0.5, 0.6), (30.0, 4.0, 0.97), (3.0, 0.02, 0.2)):

        def slope(a: float, b: float = b, q: float = q) -> tuple[clew.Tensor, clew.Tensor]:
            x, rest = special.betaincinv(a, b, q), special.betaincinv(b, a, 1 - q)
            w = clew.tensor(math.log(x) - math.log(rest), dtype=clew.float64, requires_grad=True)
            leaf = clew.tensor(a, dtype=clew.float64, requires_grad=True)
            other = clew.tensor(b, dtype=clew.float64)
            h = _implicit.beta_logit_derivative(leaf, other, w)
            by_a, by_w = clew.autograd.grad(h, (leaf, w))
            return h.detach(), by_a + by_w * h.detach()

        h = 1e-4 * a
        near(slope(a)[1], (slope(a + h)[0] - slope(a - h)[0]) / (2 * h), 1e-5)
    leaf = clew.tensor([0.7, 3.0], dtype=clew.float64, requires_grad=True)
    for rsample in (D.Gamma(leaf, 1.0).rsample, D.Dirichlet(leaf).rsample):
        (g,) = clew.autograd.grad(rsample()[0], leaf, create_graph=True)
        (h,) = clew.autograd.grad(g.sum(), leaf)
        assert h.isfinite().all() and (h != 0).any()


def test_many_elements_are_handled_in_pieces(monkeypatch):
    a = clew.rand(100, dtype=clew.float64) * 3 + 0.1
    z = a.clone()
    whole = _implicit._chunked(_implicit.gamma_log_derivative, a, z)
    monkeypatch.setattr(_implicit, "_CHUNK", 7)
    near(_implicit._chunked(_implicit.gamma_log_derivative, a, z), whole)


def test_reparameterized_gradients_are_exact():
    """Of families whose draw is a formula: value and gradient belong to the same noise."""
    scale = clew.tensor([0.5, 2.0], dtype=clew.float64, requires_grad=True)
    for make in (
        lambda s: D.Normal(0.0, s), lambda s: D.Laplace(0.0, s), lambda s: D.Cauchy(0.0, s),
        lambda s: D.Gumbel(0.0, s), lambda s: D.HalfNormal(s), lambda s: D.HalfCauchy(s),
        lambda s: D.Exponential(1 / s), lambda s: D.Weibull(s, 1.5),
    ):  # fmt: skip
        x = make(scale).rsample()
        (g,) = clew.autograd.grad(x.sum(), scale)
        near(g, x / scale)  # all scale families with location 0


@pytest.mark.parametrize(
    "make",
    [
        lambda k: D.Kumaraswamy(k, 1.7),
        lambda k: D.Kumaraswamy(0.8, k),
        lambda k: D.Weibull(1.3, k),
        lambda k: D.Pareto(1.3, k),
        lambda k: D.ContinuousBernoulli(k / 3),
        lambda k: D.ContinuousBernoulli(logits=k - 1.2),
        lambda k: D.GeneralizedPareto(0.0, 1.0, k - 1),
    ],
)
def test_rsample_gradient_is_that_of_the_quantile(make):
    k = clew.tensor([0.6, 1.2, 1.5003, 2.0], dtype=clew.float64, requires_grad=True)
    x = make(k).rsample()
    (g,) = clew.autograd.grad(x.sum(), k)
    q, h = make(k.detach()).cdf(x.detach()), 1e-5
    near(g, (make(k.detach() + h).icdf(q) - make(k.detach() - h).icdf(q)) / (2 * h), 1e-5)


def test_straight_through():
    p = clew.tensor(P4, dtype=clew.float64, requires_grad=True)
    d = D.OneHotCategoricalStraightThrough(p)
    x = d.rsample((3,))
    assert D.constraints.one_hot.check(x.detach().round()).all()
    weight = clew.randn(3, 2, 4, dtype=clew.float64)
    (x * weight).sum().backward()
    q = clew.tensor(P4, dtype=clew.float64, requires_grad=True)
    ((q / q.sum(-1, keepdim=True)) * weight).sum().backward()
    near(p.grad, q.grad)


def test_von_mises_extremes():
    for k in (1e-6, 1e-3, 1e4):
        x = D.VonMises(clew.tensor(3.0, dtype=clew.float64), k).sample((2000,))
        assert ((x >= -math.pi) & (x < math.pi)).all()
        turned = (x - 3).cos().mean().item()
        assert turned == pytest.approx(special.i1e(k) / special.i0e(k), abs=0.06)


def test_multivariate_covariances():
    cov = clew.tensor(COVARIANCE[0], dtype=clew.float64)
    loc = clew.tensor([1.0, -2.0, 0.5], dtype=clew.float64)
    factor = clew.tensor([[1.0, 0.5], [0.0, -1.0], [2.0, 0.1]], dtype=clew.float64)
    for d in (
        D.MultivariateNormal(loc, cov),
        D.MultivariateNormal(loc, precision_matrix=clew.linalg.inv(cov)),
        D.LowRankMultivariateNormal(loc, factor, clew.tensor([0.5, 1.0, 0.2], dtype=clew.float64)),
    ):
        x = d.sample((20000,)).numpy()
        near(np.cov(x.T), d.covariance_matrix, 0.05, 0.06)
        near(x.mean(0), loc, 0.05, 0.05)


def test_wishart_moments():
    d = D.Wishart(clew.tensor(4.5, dtype=clew.float64), clew.tensor(COVARIANCE[0]).double())
    x = d.sample((20000,))
    near(x.mean(0), d.mean, 0.05, 0.05)
    near(x.var(0), d.variance, 0.1, 0.1)
    with pytest.raises(NotImplementedError):
        d.rsample((2,), max_try_correction=3)


@pytest.mark.parametrize("eta", [0.5, 1.0, 4.0])
def test_lkj_correlations(eta: float):
    """Each correlation is 2 Beta(η - 1 + dim / 2, same) - 1."""
    dim = 4
    factor = D.LKJCholesky(dim, clew.tensor(eta, dtype=clew.float64)).sample((N,))
    matrix = (factor @ factor.mT).numpy()
    near(np.einsum("nii->ni", matrix), np.ones((N, dim)))
    law = stats.beta(eta - 1 + dim / 2, eta - 1 + dim / 2)
    for i, j in ((1, 0), (3, 0), (3, 2)):
        assert stats.kstest((matrix[:, i, j] + 1) / 2, law.cdf).pvalue > LEAST_P


def test_function_transforms():
    """Samples inside vmap, grad and jvp: their own numbers, the same implicit derivative."""
    from clew.func import grad, jvp, vmap

    def draw(a: clew.Tensor) -> clew.Tensor:
        return D.Gamma(a, 1.0, validate_args=False).rsample()

    a = clew.tensor([0.5, 2.0, 30.0, 30.0], dtype=clew.float64)
    x = vmap(draw, randomness="different")(a)
    assert x.shape == (4,) and x[2] != x[3] and x[0] < x[2]
    alike = vmap(lambda s: draw(clew.ones((), dtype=clew.float64)) + 0 * s, randomness="different")
    assert len(set(alike(a).tolist())) == 4
    for randomness in ("error", "same"):
        with pytest.raises(RuntimeError, match="randomness"):
            vmap(draw, randomness=randomness)(a)
    value, tangent = jvp(draw, (a,), (clew.ones_like(a),))
    near(tangent, value * _implicit.gamma_log_derivative(a, value), 1e-7)
    clew.manual_seed(3)
    value = draw(a)
    clew.manual_seed(3)
    near(grad(lambda v: draw(v).sum())(a), value * _implicit.gamma_log_derivative(a, value), 1e-7)
    inside = vmap(grad(draw), randomness="different")(a)
    assert inside.shape == (4,) and (inside > 0).all()
    pairs = vmap(
        lambda v: D.Dirichlet(clew.stack([v, v + 1]), validate_args=False).rsample(),
        randomness="different",
    )(a)
    near(pairs.sum(-1), np.ones(4))


@pytest.mark.parametrize("shape", [(0,), (), (3,), (0, 2)])
@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16, clew.float32])
def test_empty_and_narrow(shape, dtype):
    a = clew.ones(shape, dtype=dtype, requires_grad=True)
    x = D.Gamma(a, clew.ones(shape, dtype=dtype)).rsample((2,))
    x.sum().backward()
    assert x.dtype == dtype and a.grad.shape == shape and a.grad.isfinite().all()
    if shape:
        x = D.Dirichlet(a, validate_args=False).rsample((2,))
        x.sum().backward()
        assert x.dtype == dtype and a.grad.isfinite().all()
