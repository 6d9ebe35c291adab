"""Samples whose values are not finite do not spoil the gradients of the others."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import clew
from clew import nn

N = 8


def gradients(
    loss: Callable[[int], clew.Tensor], parameters: list[clew.Tensor], batched: bool
) -> list[clew.Tensor]:
    """Of the mean of the losses that are finite, which the program finds out by looking."""

    def kept() -> clew.Tensor:
        losses = [loss(i) for i in range(N)]
        return clew.stack([x for x in losses if math.isfinite(x.item())]).mean()

    if batched:
        with clew.autobatch():
            total = kept()
    else:
        total = kept()
    return list(clew.autograd.grad(total, parameters))


def check(loss: Callable[[int], clew.Tensor], parameters: list[clew.Tensor]) -> None:
    want, got = (gradients(loss, parameters, batched) for batched in (False, True))
    for a, b in zip(want, got, strict=True):
        assert a.isfinite().all()
        clew.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bad", [[3], [0, 7], [0, 1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_targets_that_are_not_finite(bad: list[int], value: float) -> None:
    clew.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x, y = clew.randn(N, 4), clew.rand(N, 1)
    y[bad] = value
    check(lambda i: (net(x[i]) - y[i]).square().mean(), list(net.parameters()))


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_inputs_that_are_not_finite(value: float) -> None:
    clew.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.LayerNorm(8), nn.Linear(8, 2))
    xs = [clew.randn(4) for _ in range(N)]
    xs[2][1] = value
    check(lambda i: nn.functional.cross_entropy(net(xs[i]), clew.tensor(1)), [*net.parameters()])


def test_an_overflow_in_the_middle() -> None:
    clew.manual_seed(2)
    w = clew.randn(3, 3, dtype=clew.float64).requires_grad_()
    x = [clew.full((3,), 1000.0 if i == 5 else 1.0, dtype=clew.float64) for i in range(N)]
    check(lambda i: (w @ (w @ x[i]).abs().exp()).log1p().square().sum(), [w])


def test_what_is_not_finite_is_observed_first_and_used_later() -> None:
    w = clew.tensor([2.0], requires_grad=True)
    xs = [clew.tensor([v]) for v in (1.0, 0.0, 2.0, 4.0)]

    def total() -> clew.Tensor:
        inverse = [(w * x).reciprocal() for x in xs]
        good = [k for k, y in enumerate(inverse) if math.isfinite(y.item())]
        values = [y * w for y in inverse]
        return clew.stack([values[k] for k in good]).sum() + sum((w * y).sum() for y in xs)

    want = clew.autograd.grad(total(), w)[0]
    with clew.autobatch():
        loss = total()
    got = clew.autograd.grad(loss, w)[0]
    assert clew.allclose(got, want)


def test_masks_of_minus_infinity_in_some_samples() -> None:
    clew.manual_seed(3)
    q = nn.Linear(4, 4)
    xs, ys = clew.randn(2, N, 3, 4)
    masks = [clew.zeros(3, 3) for _ in range(N)]
    for i in (1, 4, 5):
        masks[i][:, 2] = -math.inf

    def loss(i: int) -> clew.Tensor:
        scores = q(xs[i]) @ ys[i].t() + masks[i]
        return (scores.softmax(-1) @ ys[i]).square().sum()

    check(loss, list(q.parameters()))
    with clew.autobatch():
        [loss(i) for i in range(N)]
    assert "softmax" in str(clew.autobatch.report())


def test_finite_samples_stay_one_batch() -> None:
    w = clew.rand(3, requires_grad=True)
    xs = [clew.ones(3) * (math.inf if i == 2 else i) for i in range(N)]
    with clew.autobatch():
        ys = [(w * x).sin() for x in xs]
    assert ys[2].isnan().all()
    groups = clew.autobatch.report().groups
    sizes = [group.members for group in groups if group.operation == "sin"]
    assert sizes == [N - 1, 1]


def test_pieces_of_a_result_that_ran_alone() -> None:
    w = clew.rand(101, requires_grad=True)
    with clew.autobatch():
        first, second = w.exp().split([1, 100])
        y = second * 2
    assert clew.allclose(y, w[1:].exp() * 2)
    assert first.shape == (1,)
