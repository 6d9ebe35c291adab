"""jacobian, hessian and products; gradcheck finds what is wrong."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import clew
from clew.autograd import Function, functional, gradcheck, gradgradcheck
from clew.autograd.gradcheck import GradcheckError


def f(x, y):
    return x * y.sin(), (x**2).sum()


X = clew.tensor([1.0, 2.0], dtype=clew.float64)
Y = clew.tensor([0.5, 0.7], dtype=clew.float64)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(strategy):
    table = functional.jacobian(f, (X, Y), strategy=strategy)
    np.testing.assert_allclose(table[0][0].numpy(), np.diag(np.sin(Y.numpy())))
    np.testing.assert_allclose(table[0][1].numpy(), np.diag(X.numpy() * np.cos(Y.numpy())))
    np.testing.assert_allclose(table[1][0].numpy(), 2 * X.numpy())
    np.testing.assert_allclose(table[1][1].numpy(), [0.0, 0.0])


def test_hessian_and_products():
    def g(x):
        return (x**3).sum() + x[0] * x[1]

    H = np.array([[6.0, 1.0], [1.0, 12.0]])
    v = clew.tensor([1.0, -2.0], dtype=clew.float64)
    np.testing.assert_allclose(functional.hessian(g, X).numpy(), H)
    np.testing.assert_allclose(functional.hvp(g, X, v)[1].numpy(), H @ v.numpy())
    np.testing.assert_allclose(functional.vhp(g, X, v)[1].numpy(), v.numpy() @ H)


def test_vjp_and_jvp_are_transposes():
    v = (clew.tensor([1.0, 2.0], dtype=clew.float64), clew.tensor(3.0, dtype=clew.float64))
    t = (clew.tensor([0.3, 0.1], dtype=clew.float64), clew.tensor([0.2, -0.4], dtype=clew.float64))
    _, back = functional.vjp(f, (X, Y), v)
    _, forward = functional.jvp(f, (X, Y), t)
    left = sum((a * b).sum().item() for a, b in zip(v, forward))
    right = sum((a * b).sum().item() for a, b in zip(back, t))
    assert abs(left - right) < 1e-12


def test_strict_and_create_graph():
    with pytest.raises(RuntimeError, match="strict"):
        functional.vjp(lambda x, y: x.sum(), (X, Y), strict=True)
    x = X.clone().requires_grad_()
    J = functional.jacobian(lambda t: t**3, x, create_graph=True)
    J.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * X.numpy())


def test_gradcheck_accepts_right_and_finds_wrong():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            return 2.001 * ctx.saved_tensors[0] * g

    x = X.clone().requires_grad_()
    for fast in (False, True):
        assert gradcheck(lambda t: (t**2).exp(), (x,), fast_mode=fast, check_forward_ad=True)
        assert gradgradcheck(lambda t: (t**2).exp(), (x,), fast_mode=fast)
        assert not gradcheck(
            Wrong.apply, (x,), fast_mode=fast, raise_exception=False, rtol=1e-5, atol=1e-6
        )
    with pytest.raises(clew.autograd.GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (x,), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(lambda t: t, (X,))


def test_gradcheck_complex():
    z = clew.tensor([1.0 + 0.5j, -0.3 + 1.0j], dtype=clew.complex128, requires_grad=True)
    assert gradcheck(lambda t: t * t, (z,))
    assert gradcheck(lambda t: t.abs(), (z,))
    assert gradcheck(lambda t: (t * t.conj()).real, (z,))


def test_gradcheck_finds_wrong_second_order():
    class Detached(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.detach())
            ctx.x = x.detach()
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.x**2 * g

    x = X.clone().requires_grad_()
    assert gradcheck(Detached.apply, (x,))
    assert not gradgradcheck(Detached.apply, (x,), raise_exception=False)


def test_gradcheck_of_what_is_not_masked():
    x = X.clone().requires_grad_()
    for check in (gradcheck, gradgradcheck):
        assert check(lambda t: t * t, (x,), masked=True)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_evaluates_where_operations_are_recorded(fast):
    """A function that differentiates inside, and one that asks whether it is recorded."""
    modes = []

    def slope(x):
        modes.append(clew.is_grad_enabled())
        return clew.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    x = clew.tensor([1.0, 2.0], dtype=clew.float64, requires_grad=True)
    assert gradcheck(slope, (x,), fast_mode=fast) and all(modes)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_of_batched_gradients(fast):
    class ByValue(Function):
        """Its rule looks at the gradient's elements, which those of a batch have not."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if g.sum().item() < 1e9 else g

    class FirstOnly(Function):
        """Right for one gradient; for a batch the first one's is given to all."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            first = clew.func.debug_unwrap(g)
            return first[0] * 2 if first.ndim > g.ndim else g * 2

    x = clew.tensor([1.0, 2.0], dtype=clew.float64, requires_grad=True)
    options = {"fast_mode": fast, "check_batched_grad": True}
    assert gradcheck(lambda t: (t * t.sum(), t.exp()), (x,), **options)
    assert gradgradcheck(lambda t: t**3, (x,), **options)
    for kind in (ByValue, FirstOnly):
        assert gradcheck(kind.apply, (x,), fast_mode=fast)
        with pytest.raises(GradcheckError, match="batched"):
            gradcheck(kind.apply, (x,), **options)
    assert gradcheck(
        lambda t: t * t.sum(),
        (x,),
        fast_mode=fast,
        check_forward_ad=True,
        check_batched_forward_grad=True,
    )
    with pytest.raises(AssertionError, match="check_forward_ad"):
        gradcheck(lambda t: t * t, (x,), check_batched_forward_grad=True)


def test_backward_with_create_graph_warns_once():
    program = """
import warnings, clew
def run():
    x = clew.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        clew.autograd.grad((x * x).sum(), x, create_graph=True)
        before = len(seen)
        (x * x).sum().backward(create_graph=True)
    return before, [str(w.message)[:44] for w in seen]
print(run(), run())
"""
    got = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert got.stdout.strip() == "(0, ['Using backward() with create_graph=True will']) (0, [])"


def test_hvp_is_recorded_only_where_that_is_asked_for():
    x = X.clone().requires_grad_()
    v = clew.tensor([0.5, -1.5], dtype=clew.float64, requires_grad=True)
    value, product = functional.hvp(lambda t: (t**4).sum(), x, v, create_graph=True)
    assert value.requires_grad and product.allclose(12 * x**2 * v)
    gx, gv = clew.autograd.grad(product.sum(), (x, v))
    assert gx.allclose(24 * x * v) and gv.allclose(12 * x**2)
    for made in functional.hvp(lambda t: (t**4).sum(), x, v):
        assert not made.requires_grad


def products(name, g, create_graph):
    call = getattr(functional, name)
    vector = () if name in ("jacobian", "hessian") else (X,)
    if name == "vjp":
        vector = (clew.ones((), dtype=clew.float64),)
    return call(g, X, *vector, create_graph=create_graph, strict=True)


@pytest.mark.parametrize("name", ["jacobian", "jvp", "vjp", "hessian", "hvp", "vhp"])
def test_strict_refuses_constants(name):
    """Also derivatives that are constants, where they are to be differentiated again."""
    second = name in ("hessian", "hvp", "vhp")
    constant, degree = clew.ones((), dtype=clew.float64), 2 if second else 1
    for recorded in (False, True):
        products(name, lambda x: (x**4).sum(), recorded)
        for g in (lambda x: constant, lambda x: (x.detach() ** 4).sum()):
            with pytest.raises(RuntimeError, match="strict"):
                products(name, g, recorded)
    polynomial = (lambda x: (x * x).sum()) if degree == 2 else (lambda x: (x * 3).sum())
    products(name, polynomial, False)
    with pytest.raises(RuntimeError, match="strict mode with create_graph=True"):
        products(name, polynomial, True)


def test_vjp_in_strict_mode_looks_at_every_output():
    def one_constant(x):
        return x * 2, clew.ones(2)

    x, v = clew.ones(2), (clew.ones(2), clew.ones(2))
    with pytest.raises(RuntimeError, match="output 1 of the function does not require gradients"):
        clew.autograd.functional.vjp(one_constant, x, v, strict=True)
    assert clew.autograd.functional.vjp(one_constant, x, v)[1].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("apart", [False, True])
def test_gradgradcheck_begins_with_gradients_as_asked(apart):
    """The ones that were to lie apart were made contiguous again."""
    seen = set()

    class Double(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.add(grad.is_contiguous())
            return grad * 2

    x = clew.ones(2, 3, dtype=clew.float64, requires_grad=True)
    assert clew.autograd.gradgradcheck(Double.apply, (x,), gen_non_contig_grad_outputs=apart)
    assert seen == {not apart}
