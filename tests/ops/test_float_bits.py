"""float32 results bit for bit: the steps are written out with NumPy, each rounded to float32.

The order of additions in sums of few terms, and the order of factors in gradients, are those of
PyTorch on processors with vectors of eight floats, so that equal programs print equal numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
import clew.nn.functional as F

f4, f8 = np.float32, np.float64


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(f4)


# --- sums of few terms ---


def chained(terms: list[Any]) -> Any:
    """Sixteen terms are added up before they join the sum of earlier ones; so are sixteen sums."""
    levels = [np.zeros_like(terms[0]) for _ in range(4)]
    for i, term in enumerate(terms, 1):
        levels[0] = levels[0] + term
        for k in range(1, 4):
            if i % 16**k:
                break
            levels[k] = levels[k] + levels[k - 1]
            levels[k - 1] = np.zeros_like(terms[0])
    total = levels[0]
    for level in levels[1:]:
        total = total + level
    return total


def by_fours(terms: list[Any]) -> Any:
    """Terms go round four sums; what is left over joins the first."""
    whole = len(terms) // 4 * 4
    none = np.zeros_like(terms[0])
    sums = [chained(terms[k:whole:4]) if whole else none for k in range(4)]
    for term in terms[whole:]:
        sums[0] = sums[0] + term
    return sums[0] + sums[1] + sums[2] + sums[3]


def line_sum(x: Any) -> Any:
    if len(x) < 8:
        return by_fours(list(x))
    whole = len(x) // 8 * 8
    total = f4(0)
    for term in x[whole:]:
        total = total + term
    for lane in by_fours(list(x[:whole].reshape(-1, 8))):
        total = total + lane
    return total


def column_sums(x: Any) -> Any:
    n = x.shape[1]
    together = n // 32 * 32 if n >= 8 else n // 4 * 4
    sums = [chained(list(x[:, j])) if j < together else by_fours(list(x[:, j])) for j in range(n)]
    return np.array(sums, f4)


LENGTHS = [1, 2, 3, 5, 7, 8, 9, 20, 31, 32, 100, 129, 600, 4097, 16384]


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_all_elements(n: int) -> None:
    x = numbers(n)
    wanted = line_sum(x)
    assert wanted.dtype == f4
    t = clew.from_numpy(x)
    for found in (t.sum(), t.sum(0), t.reshape(1, n, 1).sum(dim=(1, 2))[0]):
        assert found.item() == wanted
    assert t.mean().item() == wanted / f4(n)


@pytest.mark.parametrize("shape", [(4, 3), (5, 8), (3, 130), (2, 700)])
def test_sums_of_rows(shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    wanted = np.array([line_sum(row) for row in x])
    assert (clew.from_numpy(x).sum(-1).numpy() == wanted).all()
    assert (clew.from_numpy(x).mean(1).numpy() == wanted / f4(shape[1])).all()


SHAPES = [(3, 2), (20, 2), (32, 4), (32, 7), (32, 10), (20, 40), (64, 100), (300, 9)]


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_columns(shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    wanted = column_sums(x)
    t = clew.from_numpy(x)
    assert (t.sum(0).numpy() == wanted).all()
    assert (t.mean(0).numpy() == wanted / f4(shape[0])).all()
    two = clew.from_numpy(np.stack([x, -x])).sum(1).numpy()
    assert (two == np.stack([wanted, -wanted])).all()


def test_the_gradient_of_a_bias_is_such_a_sum() -> None:
    g, bias = numbers(32, 10), clew.zeros(10, requires_grad=True)
    y = F.linear(clew.ones(32, 3), clew.ones(10, 3), bias)
    y.backward(clew.from_numpy(g))
    assert (bias.grad.numpy() == column_sums(g)).all()


# --- products ---


@pytest.mark.parametrize("shape", [(1, 4, 8), (4, 4, 8), (8, 8, 32), (20, 6, 100), (64, 64, 64)])
def test_a_bias_is_added_to_the_finished_sum(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x, w, b = (clew.from_numpy(numbers(*s)) for s in ((m, k), (n, k), (n,)))
    found = F.linear(x, w, b).numpy()
    assert (found == F.linear(x, w).numpy() + b.numpy()).all()


# --- losses of distances ---

CURVES: dict[str, tuple[Any, float, float, float]] = {
    # the loss, where its square ends, what it is divided by, the slope beyond
    "mse": (F.mse_loss, np.inf, 0.5, 0.0),
    "smooth_l1": (F.smooth_l1_loss, 1.0, 1.0, 1.0),
    "smooth_l1, beta": (lambda *a, **k: F.smooth_l1_loss(*a, beta=0.3, **k), 0.3, 0.3, 1.0),
    "huber, delta": (lambda *a, **k: F.huber_loss(*a, delta=0.7, **k), 0.7, 1.0, 0.7),
}


@pytest.mark.parametrize("n", [5, 20, 32, 3000])
@pytest.mark.parametrize("name", CURVES)
def test_distances(name: str, n: int) -> None:
    loss, edge, over, line = CURVES[name]
    a, b, g = numbers(n), numbers(n, seed=1), f4(1.7)
    d = a - b
    size = np.abs(d)
    square = size * size * f4(0.5 / over)
    beyond = f4(line) * (size - f4(edge) * f4(0.5)) if line else square
    each = np.where(size <= f4(edge), square, beyond)
    x, y = clew.from_numpy(a).requires_grad_(), clew.from_numpy(b)
    assert (loss(x, y, reduction="none").detach().numpy() == each).all()
    total = loss(x, y, reduction="mean")
    assert total.item() == line_sum(each) / f4(n)
    total.backward(clew.tensor(g))
    share = f4(1 / n)
    wanted = np.where(size <= f4(edge), share * d * g / f4(over), np.sign(d) * share * g * f4(line))
    assert (x.grad.numpy() == wanted).all()


# --- gradients of functions ---


def positive(n: int, seed: int) -> Any:
    return np.abs(numbers(n, seed=seed)) + f4(0.05)


N = 501
X, Y, G = positive(N, 1), positive(N, 2), numbers(N, seed=3)
SHARE = np.random.default_rng(0).uniform(0.01, 0.99, N).astype(f4)
SELU = f4(1.0507009873554804934193349852946)

GRADIENTS: dict[str, tuple[Any, Any, Any]] = {
    # the function, its input, the gradient from g, the input and the output
    "sqrt": (clew.sqrt, X, lambda g, x, y: g / (f4(2) * y)),
    "exp2": (clew.exp2, X, lambda g, x, y: g * y * f4(np.log(2))),
    "logit": (clew.logit, SHARE, lambda g, x, y: g / (x * (f4(1) - x))),
    "hypot": (lambda x: clew.hypot(x, clew.from_numpy(Y)), X, lambda g, x, y: g * x / y),
    "xlogy": (lambda x: clew.xlogy(clew.from_numpy(Y), x), X, lambda g, x, y: g * Y / x),
    "hardsigmoid": (F.hardsigmoid, X / 3, lambda g, x, y: g * f4(1 / 6)),
    "selu": (F.selu, X, lambda g, x, y: g * SELU),
    "norm": (clew.norm, X, lambda g, x, y: x * (g / y)),
    "std": (
        lambda x: x.std(),
        X,
        lambda g, x, y: f4(2 / (N - 1)) * (g / (f4(2) * y)) * (x - line_sum(x) / f4(N)),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    function, x, rule = GRADIENTS[name]
    t = clew.from_numpy(x.copy()).requires_grad_()
    y = function(t)
    g = G if y.dim() else f4(1.7)
    y.backward(clew.tensor(g))
    wanted = rule(g, x, y.detach().numpy())
    assert wanted.dtype == f4
    assert (t.grad.numpy() == wanted).all()


def test_binary_cross_entropy() -> None:
    t = clew.from_numpy(SHARE.copy()).requires_grad_()
    wish = SHARE[::-1].copy()
    F.binary_cross_entropy(t, clew.from_numpy(wish), reduction="sum").backward(clew.tensor(1.7))
    wanted = f4(1.7) * (SHARE - wish) / ((f4(1) - SHARE) * SHARE)
    assert (t.grad.numpy() == wanted).all()


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_shares_in_a_sum_of_powers(name: str) -> None:
    a, b = numbers(N), numbers(N, seed=1)
    x, y = (clew.from_numpy(v).requires_grad_() for v in (a, b))
    getattr(clew, name)(x, y).sum().backward()
    power = np.exp if name == "logaddexp" else np.exp2
    for found, own, other in ((x.grad, a, b), (y.grad, b, a)):
        wanted = 1 / (1 + power(other.astype(f8) - own))
        np.testing.assert_allclose(found.numpy(), wanted, rtol=4e-7)


def test_the_logarithm_of_a_number_is_not_that_of_its_rounded_value() -> None:
    x = numbers(N)
    t = clew.from_numpy(x).requires_grad_()
    (0.9**t).sum().backward()
    wanted = 0.9 ** x.astype(f8) * np.log(0.9)
    np.testing.assert_allclose(t.grad.numpy(), wanted, rtol=2e-7)


# --- random numbers ---


@pytest.mark.parametrize("n", [7, 51, 3000])
@pytest.mark.parametrize("bound", [0.3, 51**-0.5])
def test_uniforms_round_product_and_sum_once(n: int, bound: float) -> None:
    clew.manual_seed(0)
    u = clew.rand(n).numpy()
    clew.manual_seed(0)
    found = clew.empty(n).uniform_(-bound, bound).numpy()
    low = f4(-bound)
    span = f4(bound) - low
    assert (found == (u.astype(f8) * f8(span) + f8(low)).astype(f4)).all()
