"""Transforms of functions that differentiate with respect to something else inside."""

from __future__ import annotations

import pytest
from near import close, normal

import clew
from clew.func import grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp, vmap
from clew.utils._pytree import tree_flatten

# Each gives what depends on x, of a function that differentiates by w: cos(x * w) * x or its sum.
INNER = {
    "grad": lambda x, w: grad(lambda w: (x * w).sin().sum())(w),
    "grad_and_value": lambda x, w: grad_and_value(lambda w: (x * w).sin().sum())(w)[0],
    "vjp": lambda x, w: vjp(lambda w: (x * w).sin(), w)[1](clew.ones_like(w))[0],
    "jvp": lambda x, w: jvp(lambda w: (x * w).sin(), (w,), (clew.ones_like(w),))[1],
    "linearize": lambda x, w: linearize(lambda w: (x * w).sin(), w)[1](clew.ones_like(w)),
    "jacrev": lambda x, w: jacrev(lambda w: (x * w).sin())(w).sum(0),
    "jacfwd": lambda x, w: jacfwd(lambda w: (x * w).sin())(w).sum(0),
    "vmap of grad": lambda x, w: vmap(grad(lambda w, x: (x * w).sin()))(w, x),
}
OUTER = {
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
    "grad_and_value": lambda f, x: grad_and_value(lambda x: f(x).sum())(x),
    "vjp": lambda f, x: (vjp(f, x)[0], vjp(f, x)[1](clew.ones_like(x))),
    "jvp": lambda f, x: jvp(f, (x,), (clew.ones_like(x),)),
    "linearize": lambda f, x: (linearize(f, x)[0], linearize(f, x)[1](clew.ones_like(x))),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "vmap of grad": lambda f, x: vmap(grad(lambda x: f(x).sum()))(x.expand(2, *x.shape)),
}


def history(found):
    return [t.requires_grad for t in tree_flatten(found)[0]]


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_what_an_inner_transform_differentiates_by_leaves_no_history(inner, outer):
    x, w = normal(3), normal(3, seed=1)
    found = OUTER[outer](lambda x: INNER[inner](x, w), x)
    assert not any(history(found))
    # What somebody outside differentiates by keeps it, through the same leaves.
    w.requires_grad_()
    again = OUTER[outer](lambda x: INNER[inner](x, w), x)
    assert any(history(again))
    parts = [t for t in tree_flatten(again)[0] if t.requires_grad]
    got = clew.autograd.grad(sum(t.sum() for t in parts), w)[0]

    def total(w):
        # The derivative by x of x cos(x w) is its diagonal: cos(x w) - x w sin(x w).
        slope = (x * w).cos() - x * w * (x * w).sin()
        values = (x * (x * w).cos()).sum()
        both = {"vjp", "jvp", "linearize"}
        if outer in both:
            return values + slope.sum()
        if outer == "grad_and_value":
            return values + slope.sum()
        return slope.sum() * (2 if outer == "vmap of grad" else 1)

    leaf = w.detach().requires_grad_()
    close(got, clew.autograd.grad(total(leaf), leaf)[0])


def test_a_pullback_of_within_is_used_after_other_transforms():
    x, w = normal(3), normal(3, seed=1)

    def f(x):
        _, pull = vjp(lambda w: (x * w).sin(), w)
        first = grad(lambda v: (v * x).sum())(w)
        (second,) = pull(first)
        return (second * grad(lambda v: (v**2).sum())(x)).sum()

    got = grad(f)(x)
    assert not got.requires_grad
    leaf = x.detach().requires_grad_()
    value = (leaf * (leaf * w).cos() * leaf * 2 * leaf).sum()
    close(got, clew.autograd.grad(value, leaf)[0])


def test_three_levels_and_steps_of_descent():
    x, y, w = normal(3), normal(3, seed=1), normal(3, seed=2)

    def middle(y, x):
        return grad(lambda w: (w * y * x).sin().sum())(w).sum()

    found = grad(lambda x: grad(middle)(y, x).sum())(x)
    assert not found.requires_grad

    def adapted(x, steps=3):
        p = w
        for _ in range(steps):
            p = p - 0.1 * grad(lambda p: ((p - x) ** 2).sum())(p)
        return (p**2).sum()

    got = grad(adapted)(x)
    assert not got.requires_grad
    # p = x + 0.8**3 (w - x)
    p = x + 0.8**3 * (w - x)
    close(got, 2 * p * (1 - 0.8**3))


def test_an_inner_transform_that_raises_leaves_the_others_as_they_are():
    x, w = normal(3), normal(3, seed=1)

    def f(x):
        with pytest.raises(RuntimeError, match="scalar"):
            grad(lambda w: x * w)(w)
        return grad(lambda w: (x * w).sin().sum())(w).sum()

    assert not grad(f)(x).requires_grad
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: grad(lambda w: (x * w).sum() / (1 // 0))(w).sum())(x)
    assert not grad(f)(x).requires_grad
