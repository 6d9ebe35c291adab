"""In the forward mode a function may write into its inputs, which then are written to."""

from __future__ import annotations

import pytest

import clew
from clew import func


def doubled(x):
    x.mul_(2)
    return x * x


@pytest.mark.parametrize("outer", [False, True])
def test_jvp_of_a_function_that_writes_into_its_input(outer):
    x, t = clew.tensor([1.0, 2.0]), clew.tensor([1.0, 3.0])
    weight = clew.ones(2, requires_grad=outer)
    y, dy = func.jvp(lambda x: doubled(x) * weight, (x,), (t,))
    assert y.tolist() == [4, 16] and dy.tolist() == [8, 48]
    assert x.tolist() == [2, 4] and t.tolist() == [1, 3]
    assert y.requires_grad is dy.requires_grad is outer


def test_parts_and_the_input_itself():
    x, t = clew.tensor([1.0, 2.0]), clew.ones(2)
    y, dy = func.jvp(lambda x: (x[0].fill_(3.0), x * 2)[1], (x,), (t,))
    assert y.tolist() == [6, 4] and dy.tolist() == [0, 2] and x.tolist() == [3, 2]
    y, dy = func.jvp(lambda x: x.sin_(), (x,), (t,))
    clew.testing.assert_close(dy, clew.tensor([3.0, 2.0]).cos())
    clew.testing.assert_close(x, y)


def test_jacobians_of_such_functions():
    x = clew.tensor([1.0, 2.0])
    assert func.jacfwd(doubled)(x).tolist() == [[8, 0], [0, 16]] and x.tolist() == [2, 4]
    y, push = func.linearize(doubled, clew.tensor([1.0, 2.0]))
    assert y.tolist() == [4, 16] and push(clew.ones(2)).tolist() == [8, 16]


def test_the_reverse_mode_refuses_it():
    with pytest.raises(RuntimeError, match="leaf Variable"):
        func.vjp(doubled, clew.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        func.jvp(lambda x: x.copy_(x * x), (clew.ones(2),), (clew.ones(2),))


def squares(x):
    """The sum of squares, over a write to its argument."""
    return x.mul_(x.clone()).sum()


NESTED = {
    "hessian": lambda x: clew.func.hessian(squares)(x),
    "jacfwd of grad": lambda x: clew.func.jacfwd(clew.func.grad(squares))(x),
    "jvp of grad": lambda x: clew.func.jvp(clew.func.grad(squares), (x,), (clew.ones(3),)),
    "grad of grad": lambda x: clew.func.grad(lambda x: clew.func.grad(squares)(x).sum())(x),
    "of a result": lambda x: clew.func.grad(squares)(x.requires_grad_() * 1),
    "vjp of a result": lambda x: clew.func.vjp(squares, x.requires_grad_() * 1),
    "a part": lambda x: clew.func.grad(lambda x: x[1:].mul_(2).sum())(x.requires_grad_() * 1),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_write_to_what_another_transform_made_is_refused(name):
    """It was taken for the input, by which the result was differentiated: hessian gave zeros."""
    with pytest.raises(RuntimeError, match="wrote in place|in-place operation"):
        NESTED[name](clew.arange(1.0, 4.0))


def test_writes_without_history_are_left_alone():
    def f(x):
        with clew.no_grad():
            x.add_(1)
        return (x * x).sum()

    w = clew.arange(3.0, requires_grad=True)
    assert clew.func.grad(f)(w * 1).tolist() == [2.0, 4.0, 6.0]


def test_forward_over_forward_through_a_write():
    x = clew.arange(1.0, 4.0)
    want = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    assert clew.func.jacfwd(clew.func.jacfwd(squares))(x.clone()).tolist() == want
    assert clew.func.jacrev(clew.func.jacfwd(squares))(x.clone()).tolist() == want
