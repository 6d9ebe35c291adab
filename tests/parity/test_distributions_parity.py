"""Every distribution, pair of divergences, transform and constraint against PyTorch's.

PyTorch is not a dependency: without it these tests are skipped. `make parity` runs them in an
environment of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew import distributions as D
from distributions.cases import ALL, Case

torch = pytest.importorskip("torch")
T = torch.distributions

# Where clew differs, and why.
DIFFERS = {
    # PyTorch takes the distribution for uniform between lims.
    "ContinuousBernoulli": {"cdf", "icdf", "sample"},
    # PyTorch mixes dtypes when the parameters are float64, and its mode is not that of a density
    # that rises (concentration below -1).
    "GeneralizedPareto": {"log_prob", "cdf", "gradient", "mode"},
    # PyTorch's formula is NaN for any concentration0 above 1.
    "Kumaraswamy": {"mode"},
    # PyTorch takes log n! in float32.
    "Multinomial": {"entropy", "perplexity"},
    # PyTorch's Bessel functions have 7 digits.
    "VonMises": {"log_prob", "variance", "stddev", "gradient"},
    # PyTorch gives a number below a concentration of 1, where the density falls from the start.
    "Weibull": {"mode"},
}
# Drawn from other random numbers.
OWN_STREAM = {
    "Beta", "Binomial", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma",
    "LKJCholesky", "NegativeBinomial", "StudentT", "VonMises", "Wishart",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def theirs(case: Case, **options: Any) -> Any:
    params = {k: torch.tensor(v, dtype=torch.float64) for k, v in case.params.items()}
    return getattr(T, case.kind.__name__)(**params, **(case.other or {}), **options)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def same(what: str, a: Any, b: Any, tolerance: float = 1e-8) -> None:
    """Equal tensors, or errors of one type."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        assert type(a) is type(b), (what, a, b)
        return
    if isinstance(a, torch.Tensor):
        assert tuple(a.shape) == tuple(b.shape), (what, a.shape, b.shape)
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1], (what, a.dtype, b.dtype)
        np.testing.assert_allclose(
            b.detach().double().numpy(), a.detach().double().numpy(),
            rtol=tolerance, atol=tolerance, err_msg=what,
        )  # fmt: skip
    else:
        assert str(a).replace("torch.", "clew.") == str(b), what


@pytest.mark.parametrize("case", ALL, ids=str)
def test_values(case: Case):
    t, c = theirs(case), case.make()
    differs = DIFFERS.get(case.kind.__name__, set())
    same("repr", repr(t), repr(c))
    same("support", outcome(lambda: t.support), outcome(lambda: c.support))
    for name in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        same(name, str(getattr(t, name)), str(getattr(c, name)))
    for name in {"mean", "mode", "variance", "stddev", "param_shape", *c.arg_constraints} - differs:
        if hasattr(type(t), name) or hasattr(t, name):
            same(name, outcome(lambda n=name: getattr(t, n)), outcome(lambda n=name: getattr(c, n)))
    for name in {"entropy", "perplexity", "enumerate_support"} - differs:
        same(name, outcome(lambda n=name: getattr(t, n)()), outcome(lambda n=name: getattr(c, n)()))
    torch.manual_seed(1)
    clew.manual_seed(1)
    x, y = t.sample((4,)), c.sample((4,))
    own = case.kind.__name__ in OWN_STREAM or "sample" in differs
    same("sample", x * 0 if own else x, y * 0 if own else y)
    for name in {"log_prob", "cdf"} - differs:
        same(name, outcome(lambda n=name: getattr(t, n)(x)),
             outcome(lambda n=name: getattr(c, n)(clew.tensor(x.numpy()))))  # fmt: skip
    q = np.random.default_rng(0).uniform(0.01, 0.99, (4, *c.batch_shape))
    if "icdf" not in differs:
        same("icdf", outcome(lambda: t.icdf(torch.tensor(q))),
             outcome(lambda: c.icdf(clew.tensor(q))))  # fmt: skip
    wide = (2, *c.batch_shape)
    same("expand", repr(t.expand(wide)), repr(c.expand(wide)))
    if not differs & {"log_prob"}:
        same("expand", t.expand(wide).log_prob(x[:2]),
             c.expand(wide).log_prob(clew.tensor(x[:2].numpy())))  # fmt: skip


@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("what", ["log_prob", "entropy"])
def test_gradients(case: Case, what: str):
    if DIFFERS.get(case.kind.__name__, set()) & {"gradient", what}:
        return
    x = theirs(case).sample((4,))
    leaves: list[dict[str, Any]] = [{}, {}]
    for k, v in case.params.items():
        grad = k != "total_count"
        leaves[0][k] = torch.tensor(v, dtype=torch.float64, requires_grad=grad)
        leaves[1][k] = clew.tensor(v, dtype=clew.float64, requires_grad=grad)
    kinds = getattr(T, case.kind.__name__), case.kind
    values = x, clew.tensor(x.numpy())
    for kind, params, value in zip(kinds, leaves, values):
        d = kind(**params, **(case.other or {}))
        got = outcome(lambda d=d, v=value: d.log_prob(v) if what == "log_prob" else d.entropy())
        if isinstance(got, Exception):
            return
        if got.requires_grad:
            got.sum().backward()
    for name, leaf in leaves[0].items():
        if leaf.grad is not None:
            ours = leaves[1][name].grad
            if name == "scale_tril":  # what lies above the diagonal does not count
                leaf.grad, ours = leaf.grad.tril(), ours.tril()
            same(f"{what} by {name}", leaf.grad, ours, 1e-6)


def test_divergences():
    compared = 0
    for p in ALL:
        for q in ALL:
            if {p.kind, q.kind} == {D.Uniform, D.ContinuousBernoulli}:
                continue  # PyTorch says infinite where the intervals share an end
            if p.kind is q.kind is D.Wishart:
                continue  # PyTorch sums over the batch; tests/distributions compares with draws
            a = outcome(lambda p=p, q=q: T.kl_divergence(theirs(p), theirs(q)))
            b = outcome(lambda p=p, q=q: D.kl_divergence(p.make(), q.make()))
            if isinstance(a, torch.Tensor) and isinstance(b, clew.Tensor):
                # PyTorch does not broadcast infinite divergences.
                same(f"kl {p} {q}", a.expand(tuple(b.shape)), b, 1e-7)
                compared += 1
            elif isinstance(a, NotImplementedError):
                assert isinstance(b, NotImplementedError), (p, q, b)
    assert compared > 140


def test_the_registries_hold_the_same():
    from clew.distributions.kl import _KL_REGISTRY

    names = {(p.__name__, q.__name__) for p, q in T.kl._KL_REGISTRY}
    assert names <= {(p.__name__, q.__name__) for p, q in _KL_REGISTRY}
    for registry in ("biject_to", "transform_to"):
        theirs_, ours = getattr(T, registry)._registry, getattr(D, registry)._registry
        assert {k.__name__ for k in theirs_} == {k.__name__ for k in ours}


TRANSFORMS: list[tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = [
    (lambda m, t: t.ExpTransform(), (5, 6)),
    (lambda m, t: t.PowerTransform(m.tensor(-1.5, dtype=m.float64)), (5, 6)),
    (lambda m, t: t.SigmoidTransform(), (5, 6)),
    (lambda m, t: t.SoftplusTransform(), (5, 6)),
    (lambda m, t: t.TanhTransform(), (5, 6)),
    (lambda m, t: t.AbsTransform(), (5, 6)),
    (lambda m, t: t.AffineTransform(1.0, -2.0), (5, 6)),
    (lambda m, t: t.AffineTransform(0.0, m.tensor([1.0, -2.0]), event_dim=1), (5, 2)),
    (lambda m, t: t.CorrCholeskyTransform(), (5, 6)),
    (lambda m, t: t.SoftmaxTransform(), (5, 6)),
    (lambda m, t: t.StickBreakingTransform(), (5, 6)),
    (lambda m, t: t.LowerCholeskyTransform(), (5, 3, 3)),
    (lambda m, t: t.PositiveDefiniteTransform(), (5, 3, 3)),
    (lambda m, t: t.CatTransform([t.ExpTransform(), t.TanhTransform()], -1, [2, 4]), (5, 6)),
    (lambda m, t: t.StackTransform([t.ExpTransform(), t.TanhTransform()], 0), (2, 6)),
    (lambda m, t: t.ReshapeTransform((6,), (2, 3)), (5, 6)),
    (lambda m, t: t.IndependentTransform(t.ExpTransform(), 1), (5, 6)),
    (lambda m, t: t.ComposeTransform([t.StickBreakingTransform(), t.ExpTransform()]), (5, 6)),
    (lambda m, t: t.identity_transform, (5, 6)),
]


@pytest.mark.parametrize(("make", "shape"), TRANSFORMS)
def test_transforms(make: Callable[[Any, Any], Any], shape: tuple[int, ...]):
    x = np.random.default_rng(0).normal(size=shape)
    a, b = make(torch, T.transforms), make(clew, D.transforms)
    x = np.abs(x) if "Power" in repr(a) else x
    same("repr", repr(a), repr(b))
    for name in ("bijective", "sign", "event_dim"):
        same(name, outcome(lambda n=name: getattr(a, n)), outcome(lambda n=name: getattr(b, n)))
    for name in ("domain", "codomain"):
        same(name, getattr(a, name), getattr(b, name))
        assert getattr(a, name).event_dim == getattr(b, name).event_dim
    u, v = torch.tensor(x), clew.tensor(x)
    y, z = a(u), b(v)
    same("forward", y, z)
    same("inverse", a.inv(y), b.inv(z))
    same("jacobian", outcome(lambda: a.log_abs_det_jacobian(u, y)),
         outcome(lambda: b.log_abs_det_jacobian(v, z)))  # fmt: skip
    assert tuple(a.forward_shape(u.shape)) == tuple(b.forward_shape(v.shape))
    assert tuple(a.inverse_shape(y.shape)) == tuple(b.inverse_shape(z.shape))


def test_constraints():
    eye = np.eye(3)
    half = np.linalg.cholesky(eye * 0.5 + 0.5)
    values = [
        eye, half, half @ half.T, -eye, np.zeros((3, 3)), np.ones((2, 3, 3)),
        np.array([[0.0, 1, 0], [1, 1, 0], [0.5, 0.5, 0]]), np.array([[np.nan, 1, 2]] * 3),
        np.array([[np.inf, 1, 2]] * 3), np.random.default_rng(0).normal(size=(4, 3, 3)),
    ]  # fmt: skip
    for name in T.constraints.__all__:
        a, b = getattr(T.constraints, name), getattr(D.constraints, name)
        if isinstance(a, type) or not isinstance(a, T.constraints.Constraint):
            continue
        same(name, repr(a), repr(b))
        if name == "dependent":
            continue
        assert (a.event_dim, a.is_discrete) == (b.event_dim, b.is_discrete)
        for value in values:
            if name == "positive_semidefinite" and (value == 1).all():
                continue  # PyTorch refuses matrices of rank one whose zeros are rounded below 0
            same(name, a.check(torch.tensor(value)), b.check(clew.tensor(value)))
