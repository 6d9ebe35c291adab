"""Running sums of dense lines, which go in vectors."""

import numpy as np
import pytest

import clew


@pytest.mark.parametrize("length", [1, 31, 32, 33, 39, 40, 47, 257, 4000])
@pytest.mark.parametrize("dtype", [clew.int64, clew.float64, clew.uint8, clew.int32, clew.bool])
def test_against_numpy(length, dtype):
    x = (clew.randn(3, length) * 9).to(dtype)
    y = x.numpy()
    want = y.cumsum(1, dtype=np.float64 if dtype is clew.float64 else np.int64)
    np.testing.assert_allclose(x.cumsum(1).numpy(), want, rtol=1e-12, atol=1e-12)
    turned = x.t().contiguous().t()
    np.testing.assert_allclose(turned.cumsum(1).numpy(), want, rtol=1e-12, atol=1e-12)
    if dtype is clew.float64:
        z = x.clone().requires_grad_()
        up = clew.randn(3, length, dtype=dtype)
        (g,) = clew.autograd.grad(z.cumsum(1), z, up)
        wanted = up.numpy()[:, ::-1].cumsum(1)[:, ::-1]
        np.testing.assert_allclose(g.numpy(), wanted, rtol=1e-11, atol=1e-11)
        a = x.clone()
        assert a.cumsum_(1) is a
        np.testing.assert_allclose(a.numpy(), want, rtol=1e-12, atol=1e-12)


def test_integers_wrap_around():
    x = clew.full((2, 100), 2**62)
    want = np.full((2, 100), 2**62).cumsum(1)
    assert x.cumsum(1).tolist() == want.tolist()


def test_no_result_depends_on_what_comes_after():
    x = clew.randn(64, dtype=clew.float64)
    y = x.clone()
    y[40] = float("nan")
    assert clew.equal(x.cumsum(0)[:40], y.cumsum(0)[:40]) and y.cumsum(0)[40:].isnan().all()
