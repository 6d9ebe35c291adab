"""What all distributions share: shapes, expand, validation, texts, pickles, gradients; matrices."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from cases import ALL, COVARIANCE, L3, OTHERS, Case, near
from scipy import stats

import clew
from clew import distributions as D
from clew.distributions import constraints as C
from clew.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_expand(case: Case):
    d = case.make()
    x = d.sample((2,))
    before = d.log_prob(x)
    e = d.expand((2, *d.batch_shape))
    assert type(e) is type(d) and isinstance(e.batch_shape, clew.Size)
    assert e.batch_shape == (2, *d.batch_shape) and e.event_shape == d.event_shape
    near(e.log_prob(x), before)
    assert e.sample((3,)).shape == (3, 2) + tuple(d.batch_shape) + tuple(d.event_shape)
    for name in ("mean", "mode", "variance"):
        try:
            expected = getattr(d, name)
        except NotImplementedError:
            continue
        near(getattr(e, name), expected.expand((2, *expected.shape)))
    try:
        near(e.entropy(), d.entropy().expand(e.batch_shape))
    except NotImplementedError:
        pass
    for name in case.params:  # parameters are still there, and the other form of them
        assert getattr(e, name) is not None
    if "probs" in d.arg_constraints:
        near(e.probs, d.probs.expand((2, *d.probs.shape)))
        near(e.logits, d.logits.expand((2, *d.logits.shape)))
    assert e._validate_args == d._validate_args
    if d.batch_shape and d.batch_shape[-1] > 1:
        with pytest.raises(RuntimeError):
            d.expand((5, 7))
    quiet = case.make(validate_args=False).expand((2, *d.batch_shape))
    assert quiet._validate_args is False


@pytest.mark.parametrize("case", ALL, ids=str)
def test_bad_parameters(case: Case):
    for name, value in case.params.items():
        constraint = case.kind.arg_constraints if case.kind is not D.Wishart else {}
        constraint = constraint.get(name) if isinstance(constraint, dict) else None
        if name == "temperature" or constraint is None:
            continue
        bad = np.full(np.shape(value), -1.0 if constraint is not C.real else math.nan)
        if constraint.event_dim or name in ("loc", "logits"):
            bad = np.full(np.shape(value), math.nan)
        params = {**case.params, name: bad}
        tensors = {k: clew.tensor(v, dtype=clew.float64) for k, v in params.items()}
        with pytest.raises((ValueError, clew.linalg.LinAlgError)):
            case.kind(**tensors, **(case.other or {}))
    assert repr(case.make()).startswith(case.kind.__name__)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_bad_values(case: Case):
    d = case.make()
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        d.log_prob(0.5 if case.kind not in (D.Gamma, D.Chi2) else "0.5")
    x = d.sample()
    with pytest.raises(ValueError):
        d.log_prob(x.double() * math.nan)
    if d.event_shape:
        with pytest.raises(ValueError):
            d.log_prob(x[..., :-1])
    if d.batch_shape and d.batch_shape[-1] > 1:
        with pytest.raises(ValueError):
            d.log_prob(clew.cat([x, x, x], len(d.batch_shape) - 1))
    assert isinstance(d.log_prob(x), clew.Tensor)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_copies(case: Case):
    d = case.make()
    x = d.sample()
    for again in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
        near(again.log_prob(x), d.log_prob(x))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_log_prob_gradients(case: Case):
    """Against finite differences, of the first order."""
    d = case.make()
    x = d.sample()
    names = list(case.params)

    def log_prob(*values: clew.Tensor) -> clew.Tensor:
        made = dict(zip(names, values))
        if "covariance_matrix" in made or "precision_matrix" in made:
            for key in ("covariance_matrix", "precision_matrix"):
                if key in made:
                    made[key] = (made[key] + made[key].mT) / 2
        if "scale_tril" in made:
            made["scale_tril"] = made["scale_tril"].tril()
        return case.kind(**made, **(case.other or {}), validate_args=False).log_prob(x)

    leaves = [
        clew.tensor(case.params[n], dtype=clew.float64, requires_grad=n != "total_count")
        for n in names
    ]
    assert clew.autograd.gradcheck(log_prob, tuple(leaves), eps=1e-6, atol=1e-4, rtol=1e-4)


def test_messages():
    with pytest.raises(ValueError) as error:
        D.Normal(clew.zeros(2), clew.tensor([1.0, -1.0]))
    text = str(error.value)
    assert "parameter scale" in text and "shape (2,)" in text
    assert "GreaterThan(lower_bound=0.0)" in text and "-1" in text
    with pytest.raises(ValueError) as error:
        D.Uniform(0.0, 1.0).log_prob(clew.tensor(3.0))
    assert "within the support (Interval(" in str(error.value) and "3." in str(error.value)
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(3.0)
    for make in (D.Bernoulli, D.Geometric, D.Categorical, D.OneHotCategorical, D.Multinomial):
        with pytest.raises(ValueError, match="Either `probs` or `logits`"):
            make()
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli(probs=0.5, logits=0.0)
    with pytest.raises(ValueError, match="one-dimensional"):
        D.Categorical(clew.tensor(1.0))
    with pytest.raises(ValueError, match="positive"):
        D.Geometric(0.0)
    with pytest.raises(ValueError):
        D.Uniform(2.0, 1.0)
    with pytest.raises(ValueError, match="dim"):
        D.LKJCholesky(1)
    with pytest.raises(ValueError, match="df"):
        D.Wishart(0.5, clew.eye(2))
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        _ = D.Multinomial(1, clew.ones(2)).mode
    with pytest.raises(NotImplementedError):
        D.Normal(0.0, 1.0).enumerate_support()


def test_texts():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(clew.zeros(2), 1.0)) == (
        "Normal(loc: clew.Size([2]), scale: clew.Size([2]))"
    )
    assert repr(D.Independent(D.Normal(clew.zeros(1), 1.0), 1)).startswith("Independent(Normal(")
    assert repr(D.Wishart(3.0, clew.eye(2))) == (
        "Wishart(covariance_matrix: clew.Size([2, 2]), df: 3.0)"
    )


def test_validation_can_be_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(clew.tensor(2.0)) == -math.inf
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, -1.0).scale == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args(3)


class Own(D.Distribution):
    pass


def test_the_base():
    with pytest.warns(UserWarning, match="arg_constraints"):
        d = Own((2,), (3,))
    assert d.batch_shape == (2,) and d.event_shape == (3,)
    for name in ("mean", "mode", "variance", "stddev", "support", "arg_constraints"):
        with pytest.raises(NotImplementedError):
            getattr(d, name)
    x = clew.ones(2, 3)
    calls = [lambda: d.sample(), lambda: d.rsample(), lambda: d.log_prob(x), lambda: d.cdf(x),
             lambda: d.icdf(x), lambda: d.entropy(), lambda: d.perplexity(),
             lambda: d.enumerate_support(), lambda: d.expand((2,))]  # fmt: skip
    for call in calls:
        with pytest.raises(NotImplementedError):
            call()
    with pytest.warns(UserWarning, match="support"):
        d._validate_sample(x)
    assert d._extended_shape((4,)) == (4, 2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Own(validate_args=False)


def test_subclasses_with_their_own_init_must_expand_themselves():
    class Narrow(D.Normal):
        def __init__(self, loc):
            super().__init__(loc, 0.1)

    with pytest.raises(NotImplementedError, match="expand"):
        Narrow(0.0).expand((2,))

    class Same(D.Normal):
        pass

    assert type(Same(0.0, 1.0).expand((2,))) is Same


def test_numbers_and_broadcasting():
    d = D.Normal(clew.zeros(2, 1), clew.ones(3))
    assert d.batch_shape == (2, 3) and d.loc.shape == (2, 3)
    assert D.Normal(clew.zeros(2).double(), 1.0).scale.dtype == clew.float64
    assert D.Normal(0, 1).loc.dtype == clew.float32
    a, _ = broadcast_all(1, clew.ones(2, dtype=clew.float64))
    assert a.dtype == clew.float64 and a.shape == (2,)
    with pytest.raises(ValueError, match="numbers or tensors"):
        broadcast_all([1.0])
    assert D.Poisson(2).sample().dtype == clew.float32
    assert D.Beta(1, 2).sample().dtype == clew.float32


def test_probabilities_and_logits():
    p = clew.tensor([0.1, 0.6, 0.3], dtype=clew.float64)
    near(logits_to_probs(probs_to_logits(p)), p)
    near(logits_to_probs(probs_to_logits(p, True), True), p)
    assert probs_to_logits(clew.tensor([0.0, 1.0]), True).isfinite().all()
    d = D.Bernoulli(logits=clew.tensor(0.0))
    assert "probs" not in d.__dict__ and d.probs == 0.5 and d.probs is d.probs
    assert d.param_shape == () and d._new((2,)).shape == (2,)
    assert isinstance(D.Bernoulli.probs, lazy_property)
    p = clew.tensor(0.3, requires_grad=True)
    d = D.Bernoulli(p)
    with clew.no_grad():
        assert d.logits.requires_grad  # made as if grad mode were on


# ---- matrices ----


def test_multivariate_normal_log_prob():
    loc, cov = np.array(L3), np.array(COVARIANCE)
    x = np.array([[0.3, -1.0, 0.5], [1.0, 2.0, 3.0]])
    expected = [stats.multivariate_normal(loc[i], cov[i]).logpdf(x[i]) for i in range(2)]
    entropy = [stats.multivariate_normal(loc[i], cov[i]).entropy() for i in range(2)]
    for name, matrix in (
        ("covariance_matrix", cov),
        ("precision_matrix", np.linalg.inv(cov)),
        ("scale_tril", np.linalg.cholesky(cov)),
    ):
        if name == "precision_matrix":
            matrix = (matrix + matrix.swapaxes(-1, -2)) / 2
        d = D.MultivariateNormal(clew.tensor(loc), **{name: clew.tensor(matrix)})
        near(d.log_prob(clew.tensor(x)), expected)
        near(d.entropy(), entropy)
        near(d.covariance_matrix, cov)
        near(d.precision_matrix, np.linalg.inv(cov))
        near(d.scale_tril, np.linalg.cholesky(cov))
        near(d.variance, np.diagonal(cov, axis1=-2, axis2=-1))
    for given in ({}, {"scale_tril": clew.eye(3), "covariance_matrix": clew.eye(3)}):
        with pytest.raises(ValueError, match="Exactly one"):
            D.MultivariateNormal(clew.zeros(3), **given)
    with pytest.raises(ValueError):
        D.MultivariateNormal(clew.tensor(0.0), clew.eye(1))
    with pytest.raises(ValueError):
        D.MultivariateNormal(clew.zeros(2), clew.ones(2))
    with pytest.raises(ValueError, match="PositiveDefinite"):
        D.MultivariateNormal(clew.zeros(2), -clew.eye(2))


@pytest.mark.parametrize("batch", [(), (2,), (5, 1), (5, 2)])
@pytest.mark.parametrize("sample", [(), (4,), (4, 3)])
def test_mahalanobis_broadcasts(batch, sample):
    loc, cov = clew.zeros(3).double(), clew.tensor(COVARIANCE[0])
    cov = (cov.double() * (1 + clew.rand(*batch, 1, 1).double())).expand(*batch, 3, 3)
    d = D.MultivariateNormal(loc, cov)
    x = clew.randn(*sample, *batch, 3).double()
    expected = -0.5 * np.einsum("...i,...ij,...j->...", x.numpy(), np.linalg.inv(cov.numpy()),
                                x.numpy())  # fmt: skip
    expected = expected - 0.5 * np.linalg.slogdet(2 * np.pi * cov.numpy())[1]
    near(d.log_prob(x), expected)


def test_low_rank_agrees_with_dense():
    case = next(c for c in OTHERS if c.kind is D.LowRankMultivariateNormal)
    d = case.make()
    dense = D.MultivariateNormal(d.loc, d.covariance_matrix)
    x = d.sample((4,))
    near(d.log_prob(x), dense.log_prob(x))
    near(d.entropy(), dense.entropy())
    near(d.scale_tril, dense.scale_tril)
    near(d.precision_matrix, dense.precision_matrix)
    near(d.variance, dense.variance)
    for bad in (
        (clew.zeros(2), clew.ones(3, 1), clew.ones(2)),
        (clew.zeros(2), clew.ones(2), clew.ones(2)),
        (clew.zeros(2), clew.ones(2, 1), clew.ones(3)),
        (clew.zeros(3, 2), clew.ones(4, 2, 1), clew.ones(2)),
        (clew.tensor(0.0), clew.ones(1, 1), clew.ones(1)),
    ):
        with pytest.raises(ValueError):
            D.LowRankMultivariateNormal(*bad)


def test_wishart_log_prob_and_entropy():
    for df, v in ((4.5, COVARIANCE[0]), (7.5, COVARIANCE[1])):
        reference = stats.wishart(df, v)
        x = reference.rvs(3, random_state=1)
        matrix = clew.tensor(v, dtype=clew.float64)
        for given in (
            {"covariance_matrix": matrix},
            {"scale_tril": clew.linalg.cholesky(matrix)},
        ):
            d = D.Wishart(df, **given)
            near(d.log_prob(clew.tensor(x)), reference.logpdf(np.moveaxis(x, 0, -1)))
            near(d.entropy(), reference.entropy())
            near(d.mean, reference.mean())
            near(d.variance, reference.var())
            near(d.mode, reference.mode())
    near(D.ExponentialFamily.entropy(d), d.entropy(), 1e-6)


def test_lkj_density_integrates_to_one():
    """In two dims the only free number is the correlation r, with dL = dr."""
    r, weights = np.polynomial.legendre.leggauss(200)
    factor = np.zeros((200, 2, 2))
    factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1, r, np.sqrt(1 - r**2)
    for eta in (1.0, 1.5, 4.0):
        d = D.LKJCholesky(2, clew.tensor(eta, dtype=clew.float64))
        # The density is over L; for 2 x 2, |d r / d L10| is 1.
        total = (d.log_prob(clew.tensor(factor)).exp().numpy() * weights).sum()
        assert total == pytest.approx(1, rel=1e-4)


def test_lkj_log_prob_of_three_dims_by_monte_carlo():
    """E[p_η(L) / p_1(L)] over draws of η = 1 is 1."""
    flat, other = (D.LKJCholesky(3, clew.tensor(v, dtype=clew.float64)) for v in (1.0, 2.5))
    x = flat.sample((20000,))
    assert (other.log_prob(x) - flat.log_prob(x)).exp().mean() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: D.Normal(x, x),
        lambda x: D.Beta(x, x + 1),
        lambda x: D.Geometric(x),
        lambda x: D.ContinuousBernoulli(x),
        lambda x: D.VonMises(x, x),
        lambda x: D.MultivariateNormal(x, clew.diag(x)),
    ],
)
def test_checked_distributions_inside_vmap(make):
    x = clew.tensor([[0.2, 0.3], [0.4, 0.5]])
    value = clew.tensor([0.0, 1.0]) if isinstance(make(x[0]), D.Geometric) else x[1]
    got = clew.vmap(lambda x: make(x).log_prob(value))(x)
    assert clew.equal(got, clew.stack([make(row).log_prob(value) for row in x]))
    clew.manual_seed(0)
    inside = clew.vmap(lambda x: make(x).sample(), randomness="different")(x)
    assert inside.shape == (2, 2) and not inside.isnan().any()
    with pytest.raises(ValueError, match="parameter"):  # one bad sample is enough
        clew.vmap(lambda x: make(x))(x - 0.3)


def test_draws_inside_vmap_are_those_outside():
    a = clew.tensor([[0.2, 0.3], [0.4, 0.5]])
    for make in (lambda a: D.Gamma(a, 1.0), D.Dirichlet, lambda a: D.Normal(a, 1.0)):
        clew.manual_seed(0)
        outside, after = make(a).sample(), clew.rand(1)
        clew.manual_seed(0)
        inside = clew.vmap(lambda row: make(row).sample(), randomness="different")(a)  # noqa: B023
        assert clew.equal(inside, outside) and clew.equal(clew.rand(1), after)
