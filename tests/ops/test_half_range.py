"""Gradients of float16 numbers whose intermediate results it has no room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew.nn import functional as F

HALF = clew.float16
WEIGHTS = [[1.0, 2.0, 0.0]]


def half(values: Any) -> Any:
    return clew.tensor(values, dtype=HALF, requires_grad=True)


SMALL: dict[str, Callable[[Any], Any]] = {
    "normalize": lambda x: (F.normalize(x) * clew.tensor(WEIGHTS, dtype=x.dtype)).sum(),
    "cosine_similarity": lambda x: F.cosine_similarity(x, clew.tensor(WEIGHTS, dtype=x.dtype)),
    "norm": lambda x: x.norm(),
    "norm of order 3": lambda x: clew.linalg.vector_norm(x, 3),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_vectors_of_any_length(name: str, scale: float, recorded: bool) -> None:
    x = half(np.array([[1.0, 1.0, 2.0]]) * scale)
    wide = x.detach().double().requires_grad_()
    got, want = (
        clew.autograd.grad(SMALL[name](v).sum(), v, create_graph=recorded)[0].detach().double()
        for v in (x, wide)
    )
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-2, atol=1e-6)


def test_vectors_that_are_the_same() -> None:
    x = half([[1.0, 2.0]])
    F.pairwise_distance(x, x.detach()).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    zero = half([0.0, 0.0])
    zero.norm().backward()
    assert zero.grad.tolist() == [0, 0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.amax(),
        lambda x: x.max(),
        lambda x: x.amin(0),
        lambda x: x.median(),
        lambda x: clew.aminmax(x)[0],
        lambda x: clew.linalg.vector_norm(x + 1, float("inf")),
    ],
)
def test_more_ties_than_it_counts(f: Callable[[Any], Any]) -> None:
    x = clew.zeros(80000, dtype=HALF, requires_grad=True)
    f(x).backward()
    np.testing.assert_allclose(x.grad.float().numpy().sum(), 1, rtol=0.05)


@pytest.mark.parametrize("f", [F.hardtanh, F.relu6, F.hardshrink, F.softshrink])
def test_gradients_pass_what_is_no_number(f: Callable[[Any], Any]) -> None:
    x = clew.tensor([float("nan"), 1.0, 0.25, 9.0], requires_grad=True)
    f(x).backward(clew.ones(4))
    assert x.grad[0].item() == 1


@pytest.mark.parametrize("dtype", [clew.int8, clew.uint8, clew.int16, HALF])
def test_trapezoid_of_small_types(dtype: Any) -> None:
    y = clew.full((60,), 100, dtype=dtype)
    assert clew.trapezoid(y).item() == 5900
    assert clew.cumulative_trapezoid(y)[-1].item() == pytest.approx(5900, rel=1e-3)
    if dtype == HALF:
        assert clew.trapezoid(y).dtype == HALF
        assert clew.trapezoid(clew.full((60,), 1000.0, dtype=HALF)).item() == 59008
    x = clew.arange(60).to(dtype)
    assert clew.trapezoid(y, x).item() == 5900
    assert clew.trapezoid(y, x.flip(0)).item() == -5900


@pytest.mark.parametrize("n", [1000, 70000])
def test_logcumsumexp_of_long_rows(n: int) -> None:
    values = np.random.default_rng(0).normal(size=n)
    x = clew.tensor(values, dtype=clew.float32, requires_grad=True)
    wide = x.detach().double().requires_grad_()
    for v in (x, wide):
        v.logcumsumexp(0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), rtol=3e-6)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_angles_of_points_near_and_far(scale: float) -> None:
    y, x = half([0.0, scale, -scale]), half([scale, scale, 0.0])
    clew.atan2(y, x).sum().backward()
    far, wide = (t.detach().double().requires_grad_() for t in (y, x))
    clew.atan2(far, wide).sum().backward()
    for got, want in ((y, far), (x, wide)):
        np.testing.assert_allclose(got.grad.numpy(), want.grad.numpy(), rtol=4e-3)


def test_angle_of_a_point_whose_square_is_zero() -> None:
    y, x = (clew.tensor([1e-30], requires_grad=True) for _ in range(2))
    clew.atan2(y, x).backward()
    np.testing.assert_allclose([y.grad.item(), x.grad.item()], [5e29, -5e29], rtol=1e-5)


def test_the_origin_has_no_angle() -> None:
    y, x = (clew.zeros(1, requires_grad=True) for _ in range(2))
    clew.atan2(y, x).backward()
    assert y.grad.item() == x.grad.item() == 0
