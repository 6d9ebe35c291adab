"""addmm, baddbmm and addbmm of small matrices, scaled and added to what is there."""

import pytest

import clew

SIZES = [(1, 1, 1), (1, 7, 3), (4, 4, 4), (8, 1, 8), (32, 32, 64), (33, 5, 5), (3, 0, 2)]


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, 2), (0, 3), (-1, 1), (1, 0), (0, 1)])
def test_scaled_and_added(size, beta, alpha, dtype):
    m, k, n = size
    a, b = clew.randn(5, m, k, dtype=dtype), clew.randn(5, k, n, dtype=dtype)
    x = clew.randn(5, m, n, dtype=dtype)
    bound = 1e-5 if dtype is clew.float32 else 1e-12
    a_turned = a.transpose(1, 2).contiguous().transpose(1, 2)
    b_turned = b.transpose(1, 2).contiguous().transpose(1, 2)
    want = beta * x.double() + alpha * (a.double()[..., None] * b.double()[:, None]).sum(2)
    for left in (a, a_turned):
        for right in (b, b_turned):
            got = clew.baddbmm(x, left, right, beta=beta, alpha=alpha)
            clew.testing.assert_close(got.double(), want, rtol=bound, atol=bound)
            got = clew.addmm(x[0], left[0], right[0], beta=beta, alpha=alpha)
            clew.testing.assert_close(got.double(), want[0], rtol=bound, atol=bound)
    y = x.transpose(1, 2).clone(memory_format=clew.contiguous_format).transpose(1, 2)
    assert y.baddbmm_(a, b, beta=beta, alpha=alpha) is y
    clew.testing.assert_close(y.double(), want, rtol=bound, atol=bound)
    out = clew.empty(5, m, 2 * n, dtype=dtype)[:, :, ::2]
    clew.baddbmm(x, a, b, beta=beta, alpha=alpha, out=out)
    clew.testing.assert_close(out.double(), want, rtol=bound, atol=bound)
    row = x[0, 0] if n else x[0, :1].reshape(-1)[:0]
    got = clew.baddbmm(row, a, b, beta=beta, alpha=alpha)
    wanted = beta * row.double() + (want - beta * x.double())
    clew.testing.assert_close(got.double(), wanted, rtol=bound, atol=bound)


def test_what_is_ignored_may_be_nan():
    x, a, b = clew.full((2, 4, 4), float("nan")), clew.randn(2, 4, 4), clew.randn(2, 4, 4)
    clew.testing.assert_close(clew.baddbmm(x, a, b, beta=0, alpha=2), 2 * (a @ b))
    assert clew.baddbmm(x, a, b, beta=0.5).isnan().all()
