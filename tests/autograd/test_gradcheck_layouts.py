"""gradcheck of inputs that are not contiguous."""

import pytest

import clew
from clew.autograd import gradcheck, gradgradcheck


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", ["transposed", "every other", "permuted", "one number"])
def test_inputs_of_any_strides(name, fast_mode):
    x = clew.randn(4, 6, 2, dtype=clew.float64)
    given = {
        "transposed": x.transpose(0, 1),
        "every other": x[:, ::2],
        "permuted": x.permute(2, 0, 1),
        "one number": x[1, 2, 1],
    }[name]
    t = given.detach().requires_grad_()
    assert t.stride() == given.stride()
    before = t.detach().clone()
    assert gradcheck(lambda t: (t * t).sin(), (t,), fast_mode=fast_mode)
    assert gradgradcheck(lambda t: t**3, (t,), fast_mode=fast_mode)
    assert clew.equal(t, before)

    class Wrong(clew.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(RuntimeError, match="numerical"):
        gradcheck(Wrong.apply, (t,), fast_mode=fast_mode)


def test_inputs_that_share_memory_are_refused():
    t = clew.randn(3, 1, dtype=clew.float64).expand(3, 4).detach().requires_grad_()
    with pytest.raises(RuntimeError, match=r"strides \(1, 0\).*contiguous"):
        gradcheck(lambda t: t * 2, (t,))
