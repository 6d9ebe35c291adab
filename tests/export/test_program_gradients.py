"""Gradients through programs: of operations whose rules stand in Python, too."""

from __future__ import annotations

import io

import numpy as np
import pytest

import clew
from clew import jit, nn
from clew.export import _names, export, load, save

A = clew.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], dtype=clew.float64)
TALL = clew.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25], [-1.0, 1.0]], dtype=clew.float64)
RIGHT = clew.tensor([[1.0, 0.0], [2.0, -1.0], [0.5, 1.0]], dtype=clew.float64)
HIGH = clew.tensor([[1.0], [2.0], [0.5], [-3.0]], dtype=clew.float64)

CASES = {
    "cholesky": (lambda a: clew.linalg.cholesky(a), A),
    "cholesky upper": (lambda a: clew.linalg.cholesky(a, upper=True), A),
    "cholesky_ex": (lambda a: clew.linalg.cholesky_ex(a).L, A),
    "cholesky_inverse": (lambda a: clew.cholesky_inverse(a), A),
    "cholesky_solve": (lambda a: clew.cholesky_solve(RIGHT, a), A),
    "det": (lambda a: a.det(), A),
    "slogdet": (lambda a: clew.linalg.slogdet(a).logabsdet, A),
    "logdet": (lambda a: a.logdet(), A),
    "inverse": (lambda a: a.inverse(), A),
    "inv_ex": (lambda a: clew.linalg.inv_ex(a).inverse, A),
    "solve": (lambda a: clew.linalg.solve(a, RIGHT), A),
    "solve vector": (lambda a: clew.linalg.solve(a, RIGHT[:, 0]), A),
    "solve_triangular": (lambda a: clew.linalg.solve_triangular(a, RIGHT, upper=True), A),
    "eigh": (lambda a: clew.linalg.eigh(a).eigenvectors.abs(), A),
    "eigh upper": (lambda a: clew.linalg.eigh(a, UPLO="U").eigenvalues, A),
    "eigvalsh": (lambda a: clew.linalg.eigvalsh(a), A),
    "eigvals": (lambda a: clew.linalg.eigvals(a).real, A),
    "svd": (lambda a: clew.linalg.svd(a, full_matrices=False).U.abs(), TALL),
    "svdvals": (lambda a: clew.linalg.svdvals(a), TALL),
    "nuclear norm": (lambda a: clew.linalg.norm(a, "nuc"), TALL),
    "cond": (lambda a: clew.linalg.cond(a), A),
    "qr": (lambda a: clew.linalg.qr(a).R.abs(), TALL),
    "lu_factor": (lambda a: clew.linalg.lu_factor(a).LU, A),
    "lu": (lambda a: clew.linalg.lu(a).U, A),
    "lu_solve": (lambda a: clew.linalg.lu_solve(*clew.linalg.lu_factor(a), RIGHT), A),
    "lstsq": (lambda a: clew.linalg.lstsq(a, HIGH).solution, TALL),
    "lstsq residuals": (lambda a: clew.linalg.lstsq(a, HIGH, driver="gels").residuals, TALL),
    "pinv": (lambda a: clew.linalg.pinv(a), TALL),
    "pinv of equal singular values": (lambda a: a.pinverse(), clew.eye(3, dtype=clew.float64)),
    "pinv of less rank": (
        lambda a: clew.linalg.pinv(a, hermitian=True),
        clew.diag(clew.tensor([2.0, 2.0, 0.0], dtype=clew.float64)),
    ),
    "matrix_power": (lambda a: clew.linalg.matrix_power(a, -2), A),
    "householder_product": (
        lambda a: clew.linalg.householder_product(a, clew.ones(2, dtype=clew.float64)),
        TALL,
    ),
    "ormqr": (lambda a: clew.ormqr(a, clew.ones(2, dtype=clew.float64), HIGH), TALL),
    "chebyshev": (lambda a: clew.special.chebyshev_polynomial_t(a, 3), A / 5),
    "hermite": (lambda a: clew.special.hermite_polynomial_h(a, 4), A),
}


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a):
        return self.function(a)


def gradient(function, x):
    x = x.clone().requires_grad_()
    y = function(x)
    weights = clew.arange(1.0, y.numel() + 1, dtype=y.dtype).view(y.shape)
    (y * weights).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("name", list(CASES))
def test_the_gradient_is_the_models(name):
    function, x = CASES[name]
    file = io.BytesIO()
    save(export(Model(function), (x,)), file)
    file.seek(0)
    module = load(file).module()
    np.testing.assert_allclose(module(x).numpy(), function(x).numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient(module, x), gradient(function, x), rtol=1e-7, atol=1e-9)


def test_a_trace_is_trained_through_a_factorization():
    """The negative log likelihood of a Gaussian whose covariance is learnt."""
    clew.manual_seed(0)
    points = clew.randn(200, 2) @ clew.tensor([[2.0, 0.0], [1.0, 0.5]])

    class Gaussian(nn.Module):
        def __init__(self):
            super().__init__()
            self.covariance = nn.Parameter(clew.eye(2))

        def forward(self, x):
            factor = clew.linalg.cholesky((self.covariance + self.covariance.mT) / 2)
            z = clew.linalg.solve_triangular(factor, x.mT, upper=False)
            return z.square().sum(0).mean() / 2 + factor.diagonal().log().sum()

    module = jit.trace(Gaussian(), points)
    optimizer = clew.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(600):
        optimizer.zero_grad()
        module(points).backward()
        optimizer.step()
    want = (points.mT @ points / len(points)).numpy()
    np.testing.assert_allclose(module.covariance.detach().numpy(), want, rtol=0.05, atol=0.05)


def test_a_program_within_another_detaches_and_makes_tensors_of_data():
    def straight(x):
        hard = (x > 0).float()
        soft = x.sigmoid()
        return hard - soft.detach() + soft, clew.full((2,), x.sum().item()) * x.data.mean()

    x = clew.tensor([0.5, -1.0, 2.0])
    inner = export(Model(straight), (x,)).module()
    outer = export(nn.Sequential(inner), (x,)).module()
    for scale in (1.0, -3.0):
        for got, want in zip(outer(x * scale), straight(x * scale), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
    got = gradient(lambda t: outer(t)[0], x)
    np.testing.assert_allclose(got, gradient(lambda t: t.sigmoid(), x), rtol=1e-6)


class Tripled(clew.autograd.Function):
    """Its own backward is not kept: a program has the gradient of its forward."""

    @staticmethod
    def forward(ctx, x):
        return x * x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad * 100


def net():
    clew.manual_seed(0)
    return nn.Linear(3, 3)


def hooked():
    model = net()
    model.register_full_backward_hook(lambda module, inputs, outputs: None)
    return model


def table():
    clew.manual_seed(0)
    return nn.Embedding(4, 3, padding_idx=1, sparse=True)


WITHIN_FUNCTIONS = {
    "solve": (net, lambda m, x: clew.linalg.solve(m.weight + 3 * clew.eye(3), m(x).mT)),
    "slogdet": (net, lambda m, x: clew.linalg.slogdet(m.weight + 3 * clew.eye(3))[1] + m(x)),
    "normal": (
        net,
        lambda m, x: clew.distributions.MultivariateNormal(
            x[0], scale_tril=m.weight.tril(-1) + clew.eye(3)
        ).log_prob(m(x)),
    ),
    "checkpoint": (
        net,
        lambda m, x: clew.utils.checkpoint.checkpoint(m, x * 2, use_reentrant=True).sin(),
    ),
    "a hook": (hooked, lambda m, x: m(x).sin()),
    "a sparse table": (table, lambda m, x: m(clew.tensor([1, 3, 3])) * x),
}


@pytest.mark.filterwarnings("ignore:checkpoint. none of the inputs")  # while it is recorded
@pytest.mark.parametrize("name", list(WITHIN_FUNCTIONS))
def test_parameters_get_gradients_through_functions_of_the_library(name):
    """They are computed by Functions, whose forward() runs without recording in eager programs."""
    make, call = WITHIN_FUNCTIONS[name]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make()

        def forward(self, x):
            return call(self.inner, x)

    model = Net()
    x = clew.tensor([[0.5, -1.0, 2.0], [0.1, 0.3, -0.4], [1.0, 0.2, 0.7]])
    module = export(model, (x,)).module()
    found = []
    for runs in (model, module):
        at = x.clone().requires_grad_()
        runs.zero_grad()  # they share their parameters
        runs(at).square().sum().backward()
        found.append(
            [at.grad, *(p.grad.to_dense() for p in runs.parameters() if p.grad is not None)]
        )
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_a_function_of_ones_own_has_the_gradient_of_its_forward():
    def f(x):
        with clew.no_grad():
            cut = Tripled.apply(x)
        return Tripled.apply(x) + cut

    x = clew.tensor([1.0, -2.0])
    module = export(Model(f), (x,)).module()
    np.testing.assert_allclose(module(x).numpy(), f(x).numpy())
    np.testing.assert_allclose(gradient(module, x), [6.0, -24.0])  # weights 1 and 2


def test_names_mean_the_functions_themselves():
    """Also those that are first looked up while others stand in for them."""
    _names._own_function.cache_clear()
    found = []

    def f(x):
        found.extend(map(_names.function_of, ("full", "Tensor.detach", "linalg.matrix_exp")))
        return x * 2

    export(Model(f), (clew.ones(2),))
    want = [clew.full, clew.Tensor.detach, clew.linalg.matrix_exp]
    assert all(a is b for a, b in zip(found[:3], want, strict=True))


def test_what_is_recorded_whole_is_so_as_a_method_too():
    """frexp() computes with NumPy within."""
    x = clew.tensor([0.75, -6.0, 40.0])
    module = export(Model(lambda x: x.frexp()), (x,)).module()
    mantissa, exponent = module(x * 2)
    assert mantissa.tolist() == [0.75, -0.75, 0.625] and exponent.tolist() == [1, 4, 7]
    np.testing.assert_allclose(gradient(lambda t: module(t)[0], x), [1.0, 2 / 8, 3 / 64])


def test_polynomials_of_a_fixed_degree_in_a_converted_program():
    """The degree is a number, not a tensor of the example's dtype."""

    class Series(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(clew.tensor([0.5, -2.0]))

        def forward(self, x):
            series = (clew.special.legendre_polynomial_p(x, k) for k in (2, 3))
            return sum(w * p for w, p in zip(self.weight, series))

    module = export(Series(), (clew.zeros(3),)).module().double()
    x = clew.tensor([-0.5, 0.1, 0.9], dtype=clew.float64)
    want = 0.5 * (3 * x**2 - 1) / 2 - 2.0 * (5 * x**3 - 3 * x) / 2
    np.testing.assert_allclose(module(x).detach().numpy(), want.numpy(), rtol=1e-12)
    slope = (0.5 * 3 * x - (15 * x**2 - 3)).numpy() * [1.0, 2.0, 3.0]
    np.testing.assert_allclose(gradient(module, x), slope, rtol=1e-12)
