"""cross_entropy in one pass beside log_softmax and nll_loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from clew.nn import functional as F


def composed(
    x: Any, target: Any, weight: Any, ignore: int, reduction: str, smoothing: float
) -> Any:
    dim = 0 if x.dim() == 1 else 1
    logp = x.log_softmax(dim)
    each = F.nll_loss(logp, target, weight, ignore_index=ignore, reduction="none")
    kept = target != ignore
    shape = [1] * x.dim()
    shape[dim] = -1
    mixed = logp if weight is None else logp * weight.reshape(shape)
    smooth = clew.where(kept, -mixed.sum(dim), 0.0)
    each = each * (1 - smoothing) + smooth * (smoothing / x.shape[dim])
    if reduction == "none":
        return each
    if reduction == "sum":
        return each.sum()
    safe = clew.where(kept, target, 0)
    counts = clew.where(kept, clew.ones(1, dtype=x.dtype) if weight is None else weight[safe], 0.0)
    return each.sum() / counts.sum()


@pytest.mark.parametrize("shape", [(7,), (5, 7), (300, 130), (3, 4, 70), (2, 5, 3, 3)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_one_pass(shape: tuple[int, ...], reduction: str, weighted: bool, smoothing: float):
    clew.manual_seed(0)
    classes = shape[0] if len(shape) == 1 else shape[1]
    x = clew.randn(shape, dtype=clew.float64, requires_grad=True)
    target = clew.randint(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    ignore = 1 if len(shape) > 1 else -100
    weight = clew.rand(classes, dtype=clew.float64) if weighted else None
    one = F.cross_entropy(
        x, target, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing
    )
    two = composed(x, target, weight, ignore, reduction, smoothing)
    np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-12)
    g = clew.randn(one.shape, dtype=clew.float64)
    (want,) = clew.autograd.grad(two, [x], g, create_graph=True)
    for recorded in (False, True):
        (got,) = clew.autograd.grad(one, [x], g, create_graph=recorded, retain_graph=True)
        np.testing.assert_allclose(
            got.detach().numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-14
        )
    v = clew.randn(shape, dtype=clew.float64)
    second = [clew.autograd.grad(d, [x], v)[0].numpy() for d in (got, want)]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-9, atol=1e-13)


def test_half_precision_and_certain_scores():
    x = clew.randn(6, 40).bfloat16().requires_grad_()
    target = clew.arange(6)
    F.cross_entropy(x, target).backward()
    y = x.detach().float().requires_grad_()
    F.cross_entropy(y, target).backward()
    assert x.grad.dtype is clew.bfloat16
    np.testing.assert_allclose(x.grad.float().numpy(), y.grad.numpy(), rtol=1e-2, atol=1e-4)
    sure = clew.tensor([[30.0, 0.0], [0.0, -np.inf]])
    got = F.cross_entropy(sure, clew.tensor([0, 0]), reduction="none")
    np.testing.assert_allclose(got.numpy(), [9.3576e-14, 0.0], rtol=0.5, atol=1e-7)
    nothing = F.cross_entropy(sure, clew.tensor([-100, -100]))
    assert np.isnan(nothing.item())


def test_under_vmap_and_forward_mode():
    clew.manual_seed(0)
    x, target = clew.randn(3, 5, 4), clew.randint(0, 4, (3, 5))
    got = clew.func.vmap(lambda a, b: F.cross_entropy(a, b, label_smoothing=0.1))(x, target)
    want = [F.cross_entropy(a, b, label_smoothing=0.1).item() for a, b in zip(x, target)]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    grads = clew.func.vmap(clew.func.grad(F.cross_entropy))(x, target).numpy()
    for i in range(3):
        one = clew.func.grad(F.cross_entropy)(x[i], target[i])
        np.testing.assert_allclose(grads[i], one.numpy(), rtol=1e-5, atol=1e-7)
    v = clew.randn(5, 4)
    _, slope = clew.func.jvp(lambda a: F.cross_entropy(a, target[0]), (x[0],), (v,))
    np.testing.assert_allclose(
        slope.item(), (clew.func.grad(F.cross_entropy)(x[0], target[0]) * v).sum().item(), rtol=1e-4
    )


@pytest.mark.parametrize("shape", [(6, 9), (3, 5, 70)])
@pytest.mark.parametrize("offset", [-1e5, 1e3, 1e5])
def test_gradient_of_scores_far_from_zero(shape: tuple[int, ...], offset: float):
    clew.manual_seed(0)
    x = (clew.randn(shape) + offset).requires_grad_()
    target = clew.randint(0, shape[1], shape[:1] + shape[2:])
    exact = x.detach().double().requires_grad_()
    for scores in (x, exact):
        F.cross_entropy(scores, target, reduction="sum", label_smoothing=0.1).backward()
    np.testing.assert_allclose(x.grad.numpy(), exact.grad.numpy(), rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("columns", [(), (3,), (40,)])
def test_losses_beside_an_infinite_score_are_those_of_log_softmax(dtype, columns):
    x = clew.zeros(4, 5, *columns, dtype=dtype)
    x[0, 1], x[1, 0], x[2] = np.inf, -np.inf, -np.inf
    for label in range(5):
        target = clew.full((4, *columns), label)
        target[3] = 1
        each = F.cross_entropy(x, target, ignore_index=1, reduction="none")
        want = F.nll_loss(x.log_softmax(1), target, ignore_index=1, reduction="none")
        clew.testing.assert_close(each, want, equal_nan=True)
        assert each[0].isnan().all() or label == 1


def test_gradient_of_infinite_scores_is_nan():
    x = clew.zeros(2, 3)
    x[0, 1] = float("inf")
    x.requires_grad_()
    F.cross_entropy(x, clew.tensor([0, 2]), reduction="sum").backward()
    assert x.grad[0].isnan().all() and x.grad[1].isfinite().all()


@pytest.mark.parametrize("size", [(3, 0), (3, 0, 2), (0, 4), (0,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothing_over_no_classes_or_samples(size, weighted):
    x = clew.zeros(size, requires_grad=True)
    classes = size[0] if len(size) == 1 else size[1]
    weight = clew.ones(classes) if weighted else None
    no_class = clew.full(size[:1] + size[2:] if len(size) > 1 else (), -100)
    for target in (clew.zeros(size), no_class):
        assert F.cross_entropy(x, target, weight, label_smoothing=0.1).isnan()
    total = F.cross_entropy(x, clew.zeros(size), weight, reduction="sum", label_smoothing=0.1)
    assert total == 0
    each = F.cross_entropy(x, clew.zeros(size), weight, reduction="none", label_smoothing=0.1)
    assert each.shape == no_class.shape
    assert not each.any()
