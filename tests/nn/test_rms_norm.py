"""rms_norm against its formula, in every way that its gradient is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from clew.nn import functional as F


def composed(x: Any, weight: Any, eps: float) -> Any:
    y = x * (x.square().mean(-1, keepdim=True) + eps) ** -0.5
    return y if weight is None else y * weight


def numbers(*shape: int, seed: int = 0) -> Any:
    return clew.tensor(np.random.default_rng(seed).normal(size=shape)).requires_grad_()


@pytest.mark.parametrize("shape", [(5, 8), (3, 2, 33), (70,), (0, 4), (40, 256)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_gradients(shape: tuple[int, ...], weighted: bool, recorded: bool) -> None:
    x, g = numbers(*shape), numbers(*shape, seed=1).detach()
    leaves = [x, numbers(shape[-1], seed=2)] if weighted else [x]
    weight = leaves[1] if weighted else None
    y = F.rms_norm(x, shape[-1:], weight, 1e-3)
    want = composed(x, weight, 1e-3)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-12)
    for wanted in (leaves, leaves[-1:]):
        got = clew.autograd.grad(y, wanted, g, create_graph=recorded, retain_graph=True)
        right = clew.autograd.grad(want, wanted, g, retain_graph=True)
        for a, b in zip(got, right, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


def test_derivatives_of_any_order() -> None:
    x, w = numbers(2, 3, 4), numbers(3, 4, seed=1)

    def f(x: Any, w: Any) -> Any:
        return F.rms_norm(x, (3, 4), w, 0.1)

    clew.autograd.gradcheck(f, [x, w], check_forward_ad=True)
    clew.autograd.gradgradcheck(f, [x, w])
    clew.autograd.gradgradcheck(lambda x: F.rms_norm(x.transpose(1, 2), (3,)), [x])


@pytest.mark.parametrize("in_dims", [(0, None), (0, 0), (None, 0), (1, 0)])
def test_samples(in_dims: tuple[Any, Any]) -> None:
    x = numbers(4, 4, 5).detach()
    w = numbers(4, 5, seed=1).detach() if in_dims[1] == 0 else numbers(5, seed=1).detach()

    def f(x: Any, w: Any) -> Any:
        return F.rms_norm(x, (5,), w, 1e-3)

    def loss(x: Any, w: Any) -> Any:
        return (f(x, w) ** 3).sum()

    for call in (f, clew.func.grad(loss, argnums=(0, 1))):
        got = clew.vmap(call, in_dims=in_dims)(x, w)
        for i in range(4):
            a = x if in_dims[0] is None else x.select(in_dims[0], i)
            want = call(a, w if in_dims[1] is None else w[i])
            pairs = [(got[i], want)] if call is f else [(g[i], v) for g, v in zip(got, want)]
            for g, v in pairs:
                np.testing.assert_allclose(g.numpy(), v.numpy(), rtol=1e-10)


@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16])
@pytest.mark.parametrize("weight_dtype", [clew.float32, None])
def test_halves(dtype: Any, weight_dtype: Any) -> None:
    wide = numbers(6, 40).detach().float() * 300  # squares pass what float16 holds
    x = wide.to(dtype).requires_grad_()
    w = numbers(40, seed=1).detach().to(weight_dtype or dtype).requires_grad_()
    y = F.rms_norm(x, (40,), w)
    assert y.dtype == dtype
    eps = float(clew.finfo(dtype).eps)
    x64, w64 = (v.detach().double().requires_grad_() for v in (x, w))
    want = composed(x64, w64, 1e-7)
    np.testing.assert_allclose(y.detach().double().numpy(), want.detach().numpy(), rtol=2 * eps)
    g = clew.ones_like(y)
    y.backward(g)
    want.backward(g.double())
    for got, right in ((x.grad, x64.grad), (w.grad, w64.grad)):
        scale = right.abs().max().item()
        np.testing.assert_allclose(
            got.double().numpy(), right.numpy(), rtol=4 * eps, atol=4 * eps * scale
        )
    assert w.grad.dtype == w.dtype


def test_in_place_of_what_it_saved() -> None:
    x = numbers(3, 4)
    h = x * 2
    y = F.rms_norm(h, (4,))
    h.add_(1)
    with pytest.raises(RuntimeError, match="in place|modified"):
        y.sum().backward()
