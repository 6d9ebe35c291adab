"""Dual tensors, and the jvp of custom Functions."""

from __future__ import annotations

from typing import ClassVar

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
    assert value.item() == z.item()


def test_results_of_constants_require_no_grad():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2.0]), t([1.0, 2.0]))
        value, tangent = forward_ad.unpack_dual(x.sin())
        assert not value.requires_grad and not tangent.requires_grad
        np.testing.assert_allclose(tangent.numpy(), np.cos([1.0, 2.0]) * [1.0, 2.0])
        assert not forward_ad.unpack_dual(x).tangent.requires_grad
        # What is computed of the dual goes on carrying tangents.
        assert forward_ad.unpack_dual(x.sin() * 2).tangent is not None


@pytest.mark.parametrize("saved", [True, False], ids=["saved", "attribute"])
def test_what_a_jvp_makes_of_constants_requires_no_grad(saved):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            ctx.save_for_forward(x)
            return x**2

        @staticmethod
        def jvp(ctx, tangent):
            return 2 * (ctx.saved_tensors[0] if saved else ctx.x) * tangent

    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2.0]), t([1.0, 3.0]))
        y = Square.apply(x)
        for tensor in (y, y.sin(), x * 2):
            value, tangent = forward_ad.unpack_dual(tensor)
            assert not value.requires_grad and not tangent.requires_grad
        assert forward_ad.unpack_dual(y).tangent.tolist() == [2.0, 12.0]
        w = t([3.0, 4.0]).requires_grad_()
        tangent = forward_ad.unpack_dual((Square.apply(x) * w).sum()).tangent
    tangent.backward()
    assert w.grad.tolist() == [2.0, 12.0]


def test_results_of_parameters_require_grad():
    w = t([3.0, 4.0]).requires_grad_()
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2.0]), t([1.0, 2.0]))
        value, tangent = forward_ad.unpack_dual((x.sin() * w).sum())
        assert value.requires_grad
    tangent.backward()
    np.testing.assert_allclose(w.grad.numpy(), np.cos([1.0, 2.0]) * [1.0, 2.0])


def test_a_tangent_that_requires_grad_is_differentiated():
    v = t([1.0, 2.0]).requires_grad_()
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2.0]), v)
        forward_ad.unpack_dual(x.sin().sum()).tangent.backward()
    np.testing.assert_allclose(v.grad.numpy(), np.cos([1.0, 2.0]))


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


class Recorded(Function):
    """a * b with all rules; jvp notes what it is given."""

    seen: ClassVar[list] = []

    @staticmethod
    def forward(ctx, a, b, factor, materialize):
        ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a, None, None

    @staticmethod
    def jvp(ctx, da, db, *rest):
        Recorded.seen = [da, db, *rest]
        _, b = ctx.saved_tensors
        return da * b


def test_jvp_gets_zeros_for_tensors_without_a_tangent():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(3.0), t(2.0))
        Recorded.apply(x, t([1.0, 4.0]), 3, True)
        assert [s if s is None else s.tolist() for s in Recorded.seen] == [2, [0, 0], None, None]
        Recorded.apply(x, clew.tensor(2), 3, True)
        assert Recorded.seen[1] is None  # integers have no tangents
        Recorded.apply(x, t([1.0, 4.0]), 3, False)
        assert Recorded.seen[1] is None


def test_a_function_with_a_jvp_is_recorded_for_backward_too():
    x, y = t(3.0).requires_grad_(), t(5.0).requires_grad_()
    with forward_ad.dual_level():
        out = Recorded.apply(forward_ad.make_dual(x, t(2.0)), y, 3, True) * x
        assert forward_ad.unpack_dual(out).tangent.item() == 2.0 * 5 * 3
        gx, gy = clew.autograd.grad(out, (x, y))
    assert (gx.item(), gy.item()) == (30.0, 9.0)


def test_tangents_of_a_jvp_are_differentiated():
    """Forward over reverse of a Function with a jvp of its own, beside the same without."""

    def f(x, apply):
        return (apply(x, x.sin()) * x).sum()

    def second(apply):
        x = t([0.3, 1.2])
        with_rule = clew.func.jvp(clew.func.grad(lambda x: f(x, apply)), (x,), (x.cos(),))[1]
        return with_rule

    class Plain(Function):
        forward = staticmethod(lambda ctx, a, b: (ctx.save_for_backward(a, b), a * b)[1])
        backward = staticmethod(lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]))

    class Ruled(Plain):
        jvp = staticmethod(
            lambda ctx, da, db: da * ctx.saved_tensors[1] + db * ctx.saved_tensors[0]
        )

    expected = second(lambda a, b: a * b)
    assert second(Plain.apply).allclose(expected)
    assert second(Ruled.apply).allclose(expected)
    value, tangent = clew.func.jvp(lambda x: f(x, Ruled.apply), (t([0.3, 1.2]),), (t([1.0, 2.0]),))
    expected = clew.func.jvp(lambda x: f(x, clew.mul), (t([0.3, 1.2]),), (t([1.0, 2.0]),))
    assert value.allclose(expected[0]) and tangent.allclose(expected[1])
    assert not value.requires_grad and not tangent.requires_grad


class Doubled(Function):
    """Writes into its argument, and its jvp into the tangent."""

    @staticmethod
    def forward(x):
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.mul_(2)


def test_functions_that_write_into_a_dual():
    """The values that PyTorch 2.13 gives."""
    with forward_ad.dual_level():
        primal, tangent = t([0.0, 1.0]), t([3.0, 4.0])
        x = forward_ad.make_dual(primal, tangent)
        assert Doubled.apply(x) is x
        assert forward_ad.unpack_dual(x).tangent.tolist() == tangent.tolist() == [6.0, 8.0]
        assert primal.tolist() == [0.0, 2.0]
        y = x * x  # made of the tensor afterwards
        assert forward_ad.unpack_dual(y).tangent.tolist() == [0.0, 32.0]
        z = (x + 0).exp()  # the tangent of something in between stays what it was
        inner = z * 1
        assert Doubled.apply(inner) is inner
        assert forward_ad.unpack_dual(inner).tangent.allclose(2 * z.detach() * tangent)
        assert forward_ad.unpack_dual(z).tangent.allclose(z.detach() * tangent)
        assert tangent.tolist() == [6.0, 8.0]


def test_functions_that_write_into_a_view_of_a_dual():
    with forward_ad.dual_level():
        base = forward_ad.make_dual(clew.arange(4.0), clew.ones(4))
        part = base[:2]
        Doubled.apply(part)
        assert base.tolist() == [0.0, 2.0, 2.0, 3.0]
        assert forward_ad.unpack_dual(part).tangent.tolist() == [2.0, 2.0]
        assert forward_ad.unpack_dual(base).tangent.tolist() == [2.0, 2.0, 1.0, 1.0]
        assert forward_ad.unpack_dual(base.square()).tangent.tolist() == [0.0, 8.0, 4.0, 6.0]


def test_operations_write_into_a_dual():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2.0]), t([3.0, 4.0]))
        x.mul_(x)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [6.0, 16.0]
        x[0] = 5.0
        assert forward_ad.unpack_dual(x).tangent.tolist() == [0.0, 16.0]


def test_written_functions_in_jvp():
    value, tangent = clew.func.jvp(
        lambda x: Doubled.apply(x.clone()) * 3, (t([1.0, 2.0]),), (t([1.0, 1.0]),)
    )
    assert value.tolist() == [6.0, 12.0] and tangent.tolist() == [6.0, 6.0]
    assert not value.requires_grad and not tangent.requires_grad


@pytest.mark.parametrize("jvp", [lambda ctx, d: d * 2, lambda ctx, d: d, lambda ctx, d: None])
def test_a_jvp_must_write_where_forward_does(jvp):
    kind = type("Kind", (Doubled,), {"jvp": staticmethod(jvp)})
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0]), t([1.0]))
        with pytest.raises(RuntimeError, match="must write into that argument's tangent"):
            kind.apply(x)


def test_a_tangent_must_be_a_tensor():
    kind = type("Kind", (Doubled,), {"jvp": staticmethod(lambda ctx, d: 3)})
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="a tangent must be a tensor or None; got 3"):
            kind.apply(forward_ad.make_dual(t([1.0]), t([1.0])))
