"""Transforms: inverses, volume changes, caches, shapes; constraints; registries."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref

import numpy as np
import pytest
from cases import near

import clew
from clew import distributions as D
from clew.distributions import constraints as C
from clew.distributions import transforms as T
from clew.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix


def f64(*shape: int) -> clew.Tensor:
    return clew.randn(shape, dtype=clew.float64)


# Each transform with the shape of an input's event in front of which a batch may stand.
BIJECTIVE = {
    "exp": (lambda: T.ExpTransform(), ()),
    "power": (lambda: T.PowerTransform(clew.tensor(-1.5).double()), ()),
    "sigmoid": (lambda: T.SigmoidTransform(), ()),
    "softplus": (lambda: T.SoftplusTransform(), ()),
    "tanh": (lambda: T.TanhTransform(), ()),
    "affine": (lambda: T.AffineTransform(1.5, -2.0), ()),
    "affine event": (lambda: T.AffineTransform(0.0, clew.tensor([1.0, -2.0, 3.0]), 1), (3,)),
    "corr": (lambda: T.CorrCholeskyTransform(), (6,)),
    "corr of two": (lambda: T.CorrCholeskyTransform(), (1,)),
    "stick": (lambda: T.StickBreakingTransform(), (4,)),
    "cat": (
        lambda: T.CatTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)], -1, [2, 1]),
        (3,),
    ),
    "stack": (lambda: T.StackTransform([T.ExpTransform(), T.TanhTransform()], -1), (2,)),
    "stack in front": (
        lambda: T.StackTransform([T.ExpTransform(), T.TanhTransform()], -2),
        (2, 3),
    ),
    "reshape": (lambda: T.ReshapeTransform((4,), (2, 2)), (4,)),
    "independent": (lambda: T.IndependentTransform(T.ExpTransform(), 1), (3,)),
    "compose": (lambda: T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.TanhTransform()]), ()),
    "compose events": (
        lambda: T.ComposeTransform([T.ExpTransform(), T.StickBreakingTransform()]),
        (3,),
    ),
    "identity": (lambda: T.identity_transform, ()),
    "cdf": (lambda: T.CumulativeDistributionTransform(D.Laplace(f64(), 2.0)), ()),
}
OTHER = {
    "abs": (lambda: T.AbsTransform(), ()),
    "softmax": (lambda: T.SoftmaxTransform(), (4,)),
    "lower": (lambda: T.LowerCholeskyTransform(), (3, 3)),
    "positive definite": (lambda: T.PositiveDefiniteTransform(), (3, 3)),
}


def inputs(t: T.Transform, event: tuple[int, ...], batch: tuple[int, ...]) -> clew.Tensor:
    x = f64(*batch, *event)
    return x.abs() + 0.1 if isinstance(t, T.PowerTransform) else x


@pytest.mark.parametrize("name", [*BIJECTIVE, *OTHER])
def test_inverse_codomain_and_shapes(name: str):
    make, event = {**BIJECTIVE, **OTHER}[name]
    t = make()
    for batch in ((), (5,), (2, 3)):
        x = inputs(t, event, batch)
        y = t(x)
        assert t.domain.check(x).all() and t.codomain.check(y).all()
        assert tuple(t.forward_shape(x.shape)) == tuple(y.shape)
        assert tuple(t.inverse_shape(y.shape)) == tuple(x.shape)
        back = t.inv(y)
        if name in BIJECTIVE:
            assert t.bijective and t.inv.bijective
            near(back, x, 1e-7)
        elif name == "lower":
            near(back, x.tril())
        else:
            near(t(back), y)
    assert t.inv.inv is t or name == "identity"
    assert t.inv.domain is t.codomain or t.inv.domain.event_dim == t.codomain.event_dim


def flat_jacobian(t: T.Transform, x: clew.Tensor, name: str) -> clew.Tensor:
    """The square matrix dy / dx of one event, with dependent outputs left out."""

    def function(x: clew.Tensor) -> clew.Tensor:
        y = t(x)
        if "corr" in name:
            return tril_matrix_to_vec(y, -1)
        if name in ("stick", "compose events"):
            return y[..., :-1]
        return y.reshape(-1)

    return clew.autograd.functional.jacobian(function, x).reshape(-1, x.numel())


@pytest.mark.parametrize("name", BIJECTIVE)
def test_volume_change(name: str):
    make, event = BIJECTIVE[name]
    t = make()
    for _ in range(3):
        x = inputs(t, event, ())
        y = t(x)
        expected = flat_jacobian(t, x, name).det().abs().log()
        got = t.log_abs_det_jacobian(x, y)
        near(got.sum(), expected, 1e-7)  # elementwise ones give one for each element
        near(t.inv.log_abs_det_jacobian(y, x).sum(), -expected, 1e-7)
    x = inputs(t, event, (2, 3))
    whole = t.log_abs_det_jacobian(x, t(x))
    each = [[t.log_abs_det_jacobian(x[i, j], t(x[i, j])) for j in range(3)] for i in range(2)]
    near(whole, clew.stack([clew.stack(row) for row in each]))
    assert whole.shape[:2] == (2, 3)


def test_volume_change_of_vectors_to_matrices():
    # The last transform's result has one more dim of an event than its input.
    corr = T.CorrCholeskyTransform()
    t = T.ComposeTransform([T.AffineTransform(0.5, 2.0), corr])
    x = inputs(t, (3,), (5,))
    got = t.log_abs_det_jacobian(x, t(x))
    near(got, corr.log_abs_det_jacobian(0.5 + 2 * x, t(x)) + 3 * math.log(2))


@pytest.mark.parametrize("name", BIJECTIVE)
def test_sign(name: str):
    make, event = BIJECTIVE[name]
    t = make()
    if event and name != "independent":
        return
    x = inputs(t, event, (7,))
    _, slope = clew.autograd.functional.jvp(t, x, clew.ones_like(x))
    assert (slope.sign() == t.sign).all()


def test_what_has_no_sign_or_volume():
    with pytest.raises(NotImplementedError):
        _ = T.AbsTransform().sign
    with pytest.raises(NotImplementedError):
        T.SoftmaxTransform().log_abs_det_jacobian(clew.ones(2), clew.ones(2))
    with pytest.raises(ValueError, match=r"domain\.event_dim"):
        _ = T.CorrCholeskyTransform().event_dim


@pytest.mark.parametrize("name", [*BIJECTIVE, *OTHER])
def test_cache_equality_and_copies(name: str):
    make, event = {**BIJECTIVE, **OTHER}[name]
    t = make()
    if name != "identity":
        cached = t.with_cache()
        assert cached.with_cache() is cached and t.with_cache(0) is t
        x = inputs(t, event, (2,))
        y = cached(x)
        assert cached(x) is y and cached.inv(y) is x
        near(y, t(x))
        z = t(inputs(t, event, (2,)))
        near(cached(cached.inv(z)), z)
    if name not in (
        "cdf",
        "corr",
        "corr of two",
        "reshape",
        "independent",
        "cat",
        "stack",
        "stack in front",
    ):
        assert t == make() and t.inv == make().inv and not t != make()
    assert (t == t and t != T.StickBreakingTransform()) or name == "stick"
    if name != "cdf":
        again = pickle.loads(pickle.dumps(t))
        x = inputs(t, event, (2,))
        near(again(x), t(x))
        near(copy.deepcopy(t)(x), t(x))
    assert type(t).__name__ in repr(t)


def test_cache_is_exact_where_the_inverse_is_not():
    t = T.TanhTransform(cache_size=1)
    x = clew.tensor(30.0)
    assert t.inv(t(x)) is x
    assert T.TanhTransform().inv(t(x)) == math.inf
    with pytest.raises(ValueError, match="cache_size"):
        T.ExpTransform(cache_size=2)

    class Own(T.Transform):
        def __init__(self, a):
            super().__init__()

    with pytest.raises(NotImplementedError, match="with_cache"):
        Own(1).with_cache()


def test_inverses_do_not_keep_each_other_alive():
    t = T.ExpTransform()
    inverse = weakref.ref(t.inv)
    gc.collect()
    assert inverse() is None
    inv = T.ExpTransform().inv
    assert inv(inv.inv(clew.tensor(2.0))) == pytest.approx(2.0)


def test_bad_arguments():
    with pytest.raises(ValueError, match="different numbers of elements"):
        T.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError):
        T.ReshapeTransform((2,), (2, 1)).forward_shape((3,))
    with pytest.raises(ValueError):
        T.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError):
        T.CatTransform([T.ExpTransform()], lengths=[1, 2])
    with pytest.raises(ValueError):
        T.CatTransform([T.ExpTransform(), 3])
    with pytest.raises(ValueError):
        T.StackTransform([T.ExpTransform()])(clew.ones(2))
    with pytest.raises(ValueError):
        T.IndependentTransform(T.ExpTransform(), 1)(clew.tensor(1.0))
    with pytest.raises(ValueError):
        D.TransformedDistribution(D.Normal(0.0, 1.0), T.StickBreakingTransform())
    with pytest.raises(ValueError, match="Transform or list"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [3])


def test_half_precision_extremes_stay_inside():
    for t in (T.SigmoidTransform(), T.TanhTransform(), T.CorrCholeskyTransform()):
        y = t(clew.tensor([200.0]))
        assert y.isfinite().all() and t.codomain.check(y).all()
    assert T.SigmoidTransform().inv(clew.tensor([0.0, 1.0])).isfinite().all()
    x = clew.tensor([-100.0, 100.0])
    assert T.TanhTransform().log_abs_det_jacobian(x, x.tanh()).isfinite().all()
    near(T.SoftplusTransform().inv(clew.tensor([1e-6, 50.0])), [math.log(1e-6), 50.0], 1e-5)


# ---- transformed distributions ----


def test_transformed_distribution_by_change_of_variables():
    base = D.Normal(clew.zeros(3).double(), clew.ones(3).double())
    d = D.TransformedDistribution(base, [T.StickBreakingTransform()])
    assert d.batch_shape == () and d.event_shape == (4,)
    x = f64(5, 3)
    y = T.StickBreakingTransform()(x)
    expected = base.log_prob(x).sum(-1) - T.StickBreakingTransform().log_abs_det_jacobian(x, y)
    near(d.log_prob(y), expected, 1e-7)
    assert d.expand((2,)).sample().shape == (2, 4)
    stacked = D.TransformedDistribution(
        D.Normal(clew.zeros(2), 1.0), T.StackTransform([T.ExpTransform(), T.TanhTransform()], -1)
    )
    assert stacked.event_shape == (2,) and stacked.log_prob(stacked.sample((5,))).shape == (5,)
    plain = D.TransformedDistribution(D.Normal(0.0, 1.0), [])
    assert plain.support is C.real
    near(plain.log_prob(clew.tensor(0.3)), D.Normal(0.0, 1.0).log_prob(clew.tensor(0.3)))


def test_transformed_distribution_cdf_of_falling_transforms():
    normal = D.Normal(0.0, 1.0)
    d = D.TransformedDistribution(normal, [T.AffineTransform(1.0, -2.0)])
    x, q = clew.tensor([-1.0, 0.5, 3.0]), clew.tensor([0.1, 0.5, 0.8])
    near(d.cdf(x), D.Normal(1.0, 2.0).cdf(x), 1e-6)
    near(d.icdf(q), D.Normal(1.0, 2.0).icdf(q), 1e-5)


def test_parameters_of_transforms_broadcast_the_base():
    loc = clew.tensor([1.0, 2.0, 3.0])
    d = D.TransformedDistribution(D.Normal(0.0, 1.0), T.AffineTransform(loc, 2.0))
    assert d.batch_shape == (3,) and d.sample((2,)).shape == (2, 3)
    near(d.log_prob(clew.zeros(3)), D.Normal(loc, 2.0).log_prob(clew.zeros(3)), 1e-6)
    assert d.expand((4, 3)).sample().shape == (4, 3)
    clew.manual_seed(0)
    first = d.sample()
    clew.manual_seed(0)
    assert not clew.equal(first[0] - 1, first[1] - 2)  # a draw of its own for each


# ---- constraints and registries ----

CHECKS = [
    (C.boolean, [0.0, 1.0], [0.5, -1.0, math.nan]),
    (C.nonnegative_integer, [0.0, 7.0], [-1.0, 0.5, math.nan]),
    (C.positive_integer, [1.0, 7.0], [0.0, 1.5]),
    (C.integer_interval(1, 3), [1.0, 3.0], [0.0, 4.0, 2.5]),
    (C.real, [0.0, -math.inf], [math.nan]),
    (C.positive, [1e-30, math.inf], [0.0, -1.0, math.nan]),
    (C.nonnegative, [0.0, 1.0], [-1e-9, math.nan]),
    (C.greater_than(2.0), [2.1], [2.0]),
    (C.greater_than_eq(2.0), [2.0], [1.9]),
    (C.less_than(2.0), [1.9], [2.0, math.nan]),
    (C.unit_interval, [0.0, 1.0], [-0.1, 1.1, math.nan]),
    (C.interval(-1.0, 2.0), [-1.0, 2.0], [2.1]),
    (C.half_open_interval(0.0, 1.0), [0.0, 0.9], [1.0]),
]
EYE = np.eye(3)
HALF = np.linalg.cholesky(EYE * 0.5 + 0.5)
EVENTS = [
    (C.one_hot, [[0, 1, 0]], [[1, 1, 0], [0, 0, 0], [0.5, 0.5, 0]]),
    (C.simplex, [[0.2, 0.3, 0.5], [0, 0, 1]], [[0.2, 0.3, 0.6], [-0.1, 0.6, 0.5]]),
    (C.multinomial(3), [[1, 1, 1], [0, 3, 0]], [[2, 2, 0], [-1, 2, 2]]),
    (C.real_vector, [[0, 1, 2]], [[0, math.nan, 1]]),
    (C.lower_triangular, [HALF, -HALF], [HALF.T]),
    (C.lower_cholesky, [HALF, 2 * HALF], [-HALF, HALF.T]),
    (C.corr_cholesky, [HALF, EYE], [2 * HALF, HALF.T]),
    (C.square, [HALF], []),
    (C.symmetric, [EYE, HALF @ HALF.T], [HALF]),
    (C.positive_semidefinite, [EYE, 0 * EYE], [-EYE, HALF]),
    (C.positive_definite, [EYE, HALF @ HALF.T], [-EYE, 0 * EYE, HALF]),
    (C.independent(C.positive, 1), [[1, 2, 3]], [[1, 0, 3]]),
    (C.cat([C.positive, C.real], -1, [2, 1]), [], []),
    (C.MixtureSameFamilyConstraint(C.simplex), [[0.5, 0.5, 0]], [[0.5, 0.6, 0]]),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), CHECKS + EVENTS, ids=lambda v: str(v)[:40])
def test_check(constraint, good, bad):
    for values, expected in ((good, True), (bad, False)):
        for value in values:
            got = constraint.check(clew.tensor(value, dtype=clew.float64))
            assert got.dtype == clew.bool and got.all() == expected, value
    if good and bad:
        both = clew.tensor(np.array([good[0], bad[0]], dtype=np.float64))
        assert constraint.check(both).tolist() == [True, False]


def test_check_pieces():
    cat = C.cat([C.positive, C.real], -1, [2, 1])
    assert cat.check(clew.tensor([1.0, -1.0, -5.0])).tolist() == [True, False, True]
    stack = C.stack([C.positive, C.unit_interval], 0)
    assert stack.check(clew.tensor([[3.0, -1.0], [0.5, 2.0]])).tolist() == [[1, 0], [1, 0]]
    assert not stack.is_discrete and C.stack([C.boolean, C.real]).is_discrete
    with pytest.raises(ValueError):
        cat.check(clew.tensor(1.0))
    with pytest.raises(ValueError):
        stack.check(clew.ones(3))
    for make in (C.cat, C.stack):
        with pytest.raises(ValueError):
            make([3])
    with pytest.raises(ValueError):
        C.independent(C.real, 2).check(clew.ones(3))
    with pytest.raises(ValueError):
        C.independent(3, 1)
    with pytest.raises(ValueError):
        C.MixtureSameFamilyConstraint(3)
    assert not C.square.check(clew.ones(2, 3)).any()
    assert not C.symmetric.check(clew.ones(2, 3)).any()
    assert C.independent(C.positive, 1).check(clew.ones(2, 0)).tolist() == [True, True]


def test_dependent():
    assert C.is_dependent(C.dependent) and not C.is_dependent(C.real)
    assert C.is_dependent(D.Uniform.support) and D.Uniform.support.event_dim == 0
    with pytest.raises(ValueError, match="dependent"):
        C.dependent.check(clew.ones(1))
    with pytest.raises(NotImplementedError):
        _ = C.dependent.is_discrete
    with pytest.raises(NotImplementedError):
        _ = D.Independent.support.event_dim
    assert C.dependent(is_discrete=True, event_dim=2).event_dim == 2


def test_repr():
    assert repr(C.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(C.unit_interval) == "Interval(lower_bound=0.0, upper_bound=1.0)"
    assert repr(C.real_vector) == "IndependentConstraint(Real(), 1)"
    assert repr(C.simplex) == "Simplex()"


REGISTERED = {
    "both": [
        C.real, C.real_vector, C.positive, C.nonnegative, C.greater_than(2.0),
        C.greater_than_eq(-1.0), C.less_than(3.0), C.unit_interval, C.interval(-1.0, 4.0),
        C.half_open_interval(0.0, 2.0),
        C.simplex, C.independent(C.positive, 1), C.greater_than(clew.tensor([0.0, 1.0, 2.0])),
        C.cat([C.positive, C.unit_interval], -1, [1, 2]),
        C.stack([C.positive, C.real, C.less_than(0.0)], -1),
    ],
    "transform_to": [C.lower_cholesky, C.positive_definite, C.positive_semidefinite],
    "corr": [C.corr_cholesky],
}  # fmt: skip


@pytest.mark.parametrize(
    "constraint", [c for row in REGISTERED.values() for c in row], ids=lambda c: repr(c)[:40]
)
def test_registries(constraint):
    x = f64(4, 3, 3)
    registries = [D.transform_to]
    if constraint not in REGISTERED["transform_to"]:
        registries.append(D.biject_to)
    for registry in registries:
        t = registry(constraint)
        y = t(x)
        assert constraint.check(y).all()
        assert t.codomain.event_dim == constraint.event_dim
        if registry is D.biject_to:
            assert t.bijective
            near(t.inv(y), x, 1e-6)
            j = t.log_abs_det_jacobian(x, y)
            assert j.shape == x.shape[: x.ndim - t.domain.event_dim]
        else:
            near(t(t.inv(y)), y, 1e-6)


def test_registering():
    registry = D.constraint_registry.ConstraintRegistry()
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        registry(C.real)
    registry.register(C.positive, lambda c: T.SoftplusTransform())
    assert isinstance(registry(C.greater_than(0.0)), T.SoftplusTransform)

    @registry.register(C.interval)
    def make(constraint):
        return T.SigmoidTransform()

    assert isinstance(registry(C.unit_interval), T.SigmoidTransform)
    with pytest.raises(TypeError):
        registry.register(3, make)
    for each in (D.biject_to, D.transform_to):
        with pytest.raises(NotImplementedError):
            each(C.boolean)


@pytest.mark.parametrize("diag", [-2, -1, 0])
def test_triangles_as_vectors(diag: int):
    n = 5 if diag else 3
    matrix = f64(2, n, n)
    rows = np.tril_indices(n, diag)
    vec = tril_matrix_to_vec(matrix, diag)
    near(vec, matrix.numpy()[:, rows[0], rows[1]])
    near(vec_to_tril_matrix(vec, diag), np.tril(matrix.numpy(), diag))
    with pytest.raises(ValueError):
        vec_to_tril_matrix(clew.ones(4), diag)
    with pytest.raises(ValueError):
        tril_matrix_to_vec(matrix, 7)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_matrices_of_rank_one_are_positive_semidefinite(dtype):
    columns = clew.randn(500, 3, 1, dtype=dtype)
    assert C.positive_semidefinite.check(columns @ columns.mT).all()
    assert C.positive_semidefinite.check(clew.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtype))
    less = columns @ columns.mT - 1e-4 * clew.eye(3, dtype=dtype)
    assert not C.positive_semidefinite.check(less).any()
    assert C.positive_semidefinite.check(clew.zeros(2, 0, 0, dtype=dtype)).shape == (2,)
