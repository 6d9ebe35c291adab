"""Products whose gradients for a shared factor are gathered, or added in the product itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clew

F = clew.nn.functional


def test_backward_inside_an_unpack_hook_leaves_waiting_products_alone():
    w = clew.ones(3, 3, requires_grad=True)
    linear = clew.nn.functional.linear
    x = clew.ones(2, 3)

    def unpack(t):
        with clew.enable_grad():
            clew.autograd.backward((linear(x, w).sum() + linear(x, w).sum()) * 0)
        return t

    with clew.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        loss = linear(x, w).sum() + linear(x * 2, w).sum() + linear(x * 3, w).sum()
    loss.backward()
    assert (w.grad == 12).all()


def numbers(*shape: int, dtype: clew.dtype = clew.float64) -> clew.Tensor:
    return clew.randn(*shape, dtype=dtype)


# Of a factor w: how a program uses it, again and again with other factors.
Uses = Callable[[clew.Tensor, int], clew.Tensor]
SHARED: dict[str, tuple[tuple[int, ...], Uses]] = {
    "x @ w": ((5, 4), lambda w, i: numbers(3, 5) @ w),
    "x @ w, many rows": ((5, 4), lambda w, i: numbers(40, 5) @ w),
    "x @ w, stacks": ((5, 4), lambda w, i: numbers(2, 3, 5) @ w),
    "x @ w, turned": ((5, 4), lambda w, i: numbers(5, 3).T @ w),
    "vector @ w": ((5, 4), lambda w, i: numbers(5) @ w),
    "mm": ((5, 4), lambda w, i: clew.mm(numbers(2, 5), w)),
    "w @ vector": ((5, 4), lambda w, i: w @ numbers(4)),
    "mv": ((5, 4), lambda w, i: clew.mv(w, numbers(4))),
    "w @ matrix": ((5, 4), lambda w, i: w @ numbers(4, 3)),
    "w @ matrices": ((5, 4), lambda w, i: w @ numbers(6, 4, 1)),
    "w @ matrices, wide": ((5, 4), lambda w, i: w @ numbers(2, 4, 9)),
    "matrices @ vector": ((2, 5, 4), lambda w, i: w @ numbers(4)),
    "matrices @ matrices": ((2, 5, 4), lambda w, i: w @ numbers(2, 4, 3)),
    "x @ matrices": ((2, 5, 4), lambda w, i: numbers(3, 5) @ w),
    "matrices @ matrices, broadcast": ((2, 1, 5, 4), lambda w, i: numbers(3, 2, 5) @ w),
    "matrix @ w, a vector": ((4,), lambda w, i: numbers(3, 4) @ w),
    "vector @ vector": ((4,), lambda w, i: numbers(4) @ w),
    "each way": (
        (4, 4),
        lambda w, i: [
            lambda: numbers(4) @ w,
            lambda: w @ numbers(4),
            lambda: F.linear(numbers(4), w),
            lambda: (numbers(1, 4) @ w)[0],
            lambda: w.sum(0) * numbers(4),
        ][i % 5](),
    ),
    "stacks in each way": (
        (2, 4, 4),
        lambda w, i: [
            lambda: w @ numbers(4),
            lambda: w.transpose(0, 2).contiguous() * numbers(4, 4, 2),
            lambda: (numbers(1, 4) @ w)[:, 0],
            lambda: w.permute(2, 1, 0)[0] * 2,
        ][i % 4](),
    ),
    "complex": (
        (3, 4),
        lambda w, i: (
            clew.complex(w, w * 2) @ numbers(4, dtype=clew.complex128)
            if i % 2
            else numbers(3, dtype=clew.complex128) @ clew.complex(w, w)
        ),
    ),
    "complex, itself": (
        (3, 4),
        lambda w, i: w.to(clew.complex128) @ numbers(4).to(clew.complex128),
    ),
    "no rows": ((5, 4), lambda w, i: numbers(0, 5) @ w if i % 2 else numbers(2, 5) @ w),
    "nothing to add up": ((5, 0), lambda w, i: w @ numbers(0)),
}


def loss_of(uses: Uses, w: clew.Tensor, times: int) -> clew.Tensor:
    clew.manual_seed(1)
    total = clew.zeros((), dtype=clew.float64)
    for i in range(times):
        out = uses(w, i)
        if out.is_complex():
            out = clew.view_as_real(out)
        total = total + (out * (i + 1)).square().sum() + out.sin().sum()
    return total


@pytest.mark.parametrize("times", [1, 2, 5, 60])
@pytest.mark.parametrize("name", SHARED)
def test_a_shared_factor_gets_the_gradient_that_recorded_rules_give(name, times):
    shape, uses = SHARED[name]
    clew.manual_seed(0)
    w = numbers(*shape).requires_grad_()
    # With create_graph each call's gradient is made by itself and then added.
    (wanted,) = clew.autograd.grad(loss_of(uses, w, times), w, create_graph=True)
    loss_of(uses, w, times).backward()
    np.testing.assert_allclose(w.grad.numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-9)
    # Onto what is there, and through an operation before the products.
    loss_of(uses, w * 1.0, times).backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * wanted.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["x @ w", "vector @ w", "w @ vector", "matrices @ vector"])
def test_finite_differences(name):
    shape, uses = SHARED[name]
    clew.manual_seed(0)
    w = numbers(*shape).requires_grad_()
    assert clew.autograd.gradcheck(lambda w: loss_of(uses, w, 3), (w,))
    assert clew.autograd.gradgradcheck(lambda w: loss_of(uses, w, 2), (w,))


@pytest.mark.parametrize("name", ["x @ w", "w @ vector", "matrices @ vector"])
def test_hooks_see_the_whole_gradient_once(name):
    shape, uses = SHARED[name]
    w = numbers(*shape).requires_grad_()
    seen = []
    w.register_hook(lambda g: seen.append(g.clone()))
    loss_of(uses, w, 4).backward()
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0].numpy(), w.grad.numpy())


def test_frozen_factors_and_frozen_vectors():
    w, x = numbers(3, 4), numbers(4).requires_grad_()
    sum((w @ (x * i)).sum() for i in range(1, 4)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * w.sum(0).numpy())
    v = numbers(3).requires_grad_()
    sum((v * i @ w).sum() for i in range(1, 4)).backward()
    np.testing.assert_allclose(v.grad.numpy(), 6 * w.sum(1).numpy())


def test_under_vmap_and_jacobians():
    clew.manual_seed(0)
    w, xs = numbers(3, 4), numbers(5, 4)
    for f in (lambda x: w @ x + (w @ (x * 2)).sin(), lambda x: x @ w.T + ((x * 2) @ w.T).sin()):
        every = clew.func.vmap(clew.func.jacrev(f))(xs)
        for x, found in zip(xs, every, strict=True):
            np.testing.assert_allclose(
                found.numpy(), clew.autograd.functional.jacobian(f, x).numpy(), rtol=1e-9
            )
    of_w = clew.func.vmap(clew.func.grad(lambda w, x: (w @ x).sin().sum()), (None, 0))(w, xs)
    for x, found in zip(xs, of_w, strict=True):
        leaf = w.clone().requires_grad_()
        (leaf @ x).sin().sum().backward()
        np.testing.assert_allclose(found.numpy(), leaf.grad.numpy(), rtol=1e-9)
