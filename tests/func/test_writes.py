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
