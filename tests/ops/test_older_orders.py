"""Numbers before the tensors that they multiply: PyTorch's older order of arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clew

X = clew.ones(2, 2)
Y = clew.full((2, 2), 2.0)
Z = clew.full((2, 2), 3.0)
V = clew.ones(2)


def check(got: clew.Tensor, want: clew.Tensor) -> None:
    np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("name", ["add", "sub"])
def test_alpha_before_other(name: str) -> None:
    want = getattr(clew, name)(X, Y, alpha=2)
    check(getattr(clew, name)(X, 2, Y), want)
    check(getattr(X, name)(2, Y), want)
    check(getattr(X.clone(), name + "_")(2, Y), want)
    out = clew.empty(2, 2)
    assert getattr(clew, name)(X, 2, Y, out=out) is out
    check(out, want)
    check(getattr(clew, name)(X, 2, 3), getattr(clew, name)(X, 3, alpha=2))
    with pytest.raises(TypeError):
        getattr(clew, name)(2, X, Y)


PRODUCTS = [
    ("addmm", X, Y, Z),
    ("addmv", V, Y, V),
    ("addr", X, V, V),
    ("addbmm", X, Y[None], Z[None]),
    ("baddbmm", X[None], Y[None], Z[None]),
]


@pytest.mark.parametrize(("name", "x", "a", "b"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_factors_in_front(name: str, x: clew.Tensor, a: clew.Tensor, b: clew.Tensor) -> None:
    function = getattr(clew, name)
    both, beta = function(x, a, b, beta=2, alpha=3), function(x, a, b, beta=2)
    check(function(2, x, 3, a, b), both)
    check(function(2, x, a, b), beta)
    check(getattr(x, name)(2, 3, a, b), both)
    check(getattr(x, name)(2, a, b), beta)
    check(getattr(x.clone(), name + "_")(2, 3, a, b), both)
    check(getattr(x.clone(), name + "_")(2, a, b), beta)
    out = clew.empty(x.shape)
    assert function(2, x, 3, a, b, out=out) is out
    check(out, both)


@pytest.mark.parametrize(("name", "x", "a", "b"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_out_is_taken_as_by_the_usual_order(
    name: str, x: clew.Tensor, a: clew.Tensor, b: clew.Tensor
) -> None:
    function = getattr(clew, name)

    def told(call: Callable[..., object], shared: bool) -> str:
        memory = clew.zeros(2 * x.numel(), dtype=x.dtype if shared else clew.float64)
        first = memory[: x.numel()].reshape(x.shape) if shared else x
        try:
            call(first, out=memory[1 : 1 + x.numel()].reshape(x.shape))
        except RuntimeError as error:
            return str(error)
        return "taken"

    refused = 0
    for shared in (False, True):
        old = told(lambda first, out: function(2, first, a, b, out=out), shared)
        usual = told(lambda first, out: function(first, a, b, beta=2, out=out), shared)
        assert old == usual
        refused += usual != "taken"
    assert refused, "nothing to compare"


def test_gradients() -> None:
    x = X.clone().requires_grad_()
    y = Y.clone().requires_grad_()
    clew.addmm(2, x, 3, y, Z).sum().backward()
    x.add(2, y).sum().backward()
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == [[3, 3], [3, 3]]
    assert y.grad.tolist() == [[20, 20], [20, 20]]
