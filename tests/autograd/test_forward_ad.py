"""Dual tensors, and the jvp of custom Functions."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew.autograd import Function, forward_ad


def t(value):
    return clew.tensor(value, dtype=clew.float64)


def test_tangents_follow_the_chain_rule():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2.0]), t([1.0, -1.0]))
        y = forward_ad.make_dual(t([3.0, 4.0]), t([0.0, 2.0]))
        z = (x * y).sin().sum()
        value, tangent = forward_ad.unpack_dual(z)
    want = np.cos([3.0, 8.0]) * (
        np.array([3.0, 4.0]) * [1.0, -1.0] + np.array([1.0, 2.0]) * [0.0, 2.0]
    )
    np.testing.assert_allclose(tangent.item(), want.sum())
    assert value is z


def test_what_does_not_depend_has_no_tangent():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(1.0), t(1.0))
        assert forward_ad.unpack_dual(t(2.0)).tangent is None
        assert forward_ad.unpack_dual((x * 2).detach()).tangent is None
        assert forward_ad.unpack_dual(x).tangent.item() == 1.0


def test_reverse_over_forward():
    x = t(2.0).requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t(1.0))
        tangent = forward_ad.unpack_dual(dual**3).tangent
    assert tangent.item() == 12.0
    (second,) = clew.autograd.grad(tangent, x)
    assert second.item() == 12.0


class Scaled(Function):
    """x**2, with a jvp that says so ten times as large, to tell which rule ran."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 20 * x * tangent


def test_a_functions_own_jvp_is_called():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(3.0), t(1.0))
        y = Scaled.apply(x * 2) + x
        assert forward_ad.unpack_dual(y).tangent.item() == 20 * 6 * 2 + 1
    x = t(3.0).requires_grad_()
    Scaled.apply(x).backward()
    assert x.grad.item() == 6.0


def test_a_function_without_jvp_is_transposed():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(3.0), t(1.0))
        assert forward_ad.unpack_dual(Square.apply(x)).tangent.item() == 6.0


def test_wrong_use_is_refused():
    with pytest.raises(RuntimeError, match="no forward AD level"):
        forward_ad.make_dual(t(1.0), t(1.0))
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="nested"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="shape"):
            forward_ad.make_dual(t([1.0]), t([1.0, 2.0]))
        with pytest.raises(ValueError, match="floating"):
            forward_ad.make_dual(clew.tensor(1), clew.tensor(1))
        with clew.no_grad(), pytest.raises(RuntimeError, match="recorded"):
            forward_ad.make_dual(t(1.0), t(1.0))
    with pytest.raises(RuntimeError, match="no forward AD level"):
        forward_ad.exit_dual_level()
