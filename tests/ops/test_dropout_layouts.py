"""Dropout of every dtype and layout: the mask that the result shows is the gradient's."""

import pytest

import clew
import clew.nn.functional as F

DTYPES = [clew.float32, clew.float64, clew.bfloat16, clew.float16]
# Sizes, the order of the dims in memory, the dims of the gradient's own order.
LAYOUTS = [
    ((3, 5, 7, 11), None, None),
    ((4, 6, 8, 8), (0, 2, 3, 1), None),
    ((4, 6, 8, 8), (0, 2, 3, 1), (3, 1, 2, 0)),
    ((2, 3, 1030), None, (2, 0, 1)),
    ((2, 4, 600), (1, 0, 2), None),
    ((64, 2), (1, 0), None),
]


def laid_out(shape, order, dtype):
    x = clew.randn(*shape).to(dtype)
    return x if order is None else x.permute(*order).detach()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("channels", [False, True])
def test_the_gradient_has_the_mask_of_the_result(layout, dtype, channels):
    shape, order, of_gradient = layout
    x = laid_out(shape, order, dtype).requires_grad_()
    if channels and x.dim() != 4:
        pytest.skip("whole channels: of [N, C, H, W]")
    y = F.dropout2d(x, 0.3) if channels else F.dropout(x, 0.3)
    kept = (y != 0).double()
    g = clew.randn(*x.shape).to(dtype)
    if of_gradient is not None:
        back = [of_gradient.index(d) for d in range(x.dim())]
        g = g.permute(*of_gradient).contiguous().permute(*back)
    (dx,) = clew.autograd.grad(y, x, g)
    bound = {4: 1e-6, 8: 1e-15}.get(x.element_size(), 1e-2)
    clew.testing.assert_close(y.double(), x.double() * kept / 0.7, rtol=bound, atol=0)
    clew.testing.assert_close(dx.double(), g.double() * kept / 0.7, rtol=bound, atol=0)
    assert 0.4 < kept.mean() < 0.95


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_alpha_dropout_gives_two_numbers_of_ones(dtype):
    for x in (clew.ones(4, 130).to(dtype), clew.ones(130, 4).to(dtype).t()):
        found = F.alpha_dropout(x, 0.4, True).unique()
        assert found.numel() == 2


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_order_of_the_dims_is_kept_where_elements_lie_apart(dtype):
    whole = clew.randn(7, 6, 10).to(dtype)
    apart = whole[:, ::2, ::2].permute(2, 0, 1).requires_grad_()
    dense = apart.detach().permute(1, 2, 0).contiguous().permute(2, 0, 1)
    seen = []
    for x in (apart, dense):
        clew.manual_seed(3)
        seen.append(F.dropout(x, 0.4))
    assert seen[0].stride() == seen[1].stride() == (1, 15, 5)
    assert clew.equal(*seen)
    (slope,) = clew.autograd.grad(seen[0], apart, clew.ones_like(apart))
    assert clew.equal(slope != 0, seen[0] != 0)
