"""Forward mode holds nothing when its level has ended."""

import gc

import clew
from clew.autograd import forward_ad


class Doubled(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.mul_(2)


def bytes_now():
    gc.collect()
    return sum(h.bytes for h in clew.debug.memory())


def test_functions_that_write_into_what_has_a_tangent():
    def run():
        with forward_ad.dual_level():
            x = forward_ad.make_dual(clew.ones(500), clew.ones(500))
            inner = (x + 0).exp() * 1
            Doubled.apply(inner)
            assert forward_ad.unpack_dual(inner).tangent is not None

    before = bytes_now()
    for _ in range(3):
        run()
    assert bytes_now() == before


def test_jvp():
    def f(x):
        return Doubled.apply(x * 1).sin()

    before = bytes_now()
    for _ in range(3):
        clew.func.jvp(f, (clew.ones(500),), (clew.ones(500),))
    assert bytes_now() == before
