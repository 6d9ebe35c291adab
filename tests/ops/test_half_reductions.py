"""float16 through reductions, softmax and running sums: float32's result, rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import clew

CASES = {
    "sum": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "sum of all": lambda x: x.sum(),
    "mean": lambda x: x.mean(1),
    "softmax": lambda x: x.softmax(-1),
    "softmax of columns": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1),
    "max": lambda x: x.max(1).values,
    "min": lambda x: x.min(0).values,
    "amax": lambda x: x.amax(1),
    "max of all": lambda x: x.max(),
    "norm": lambda x: x.norm(dim=1),
}


@pytest.mark.parametrize("shape", [(3, 5), (33, 70), (1, 1), (64, 129)])
@pytest.mark.parametrize("name", CASES)
def test_the_result_of_floats_rounded(name, shape):
    x = clew.randn(shape, dtype=clew.float16)
    for t in (x, x.t().contiguous().t(), x[:, ::2] if shape[1] > 1 else x):
        half, wide = t.clone().requires_grad_(), t.float().requires_grad_()
        got, want = CASES[name](half), CASES[name](wide)
        assert got.dtype == clew.float16
        # A unit: the floats' own last bits depend on the layout.
        rounded = want.detach().half().numpy()
        np.testing.assert_allclose(got.detach().numpy(), rounded, rtol=2**-10, atol=0)
        weight = clew.randn(want.shape, dtype=clew.float16)
        got.backward(weight)
        want.backward(weight.float())
        np.testing.assert_allclose(half.grad.numpy(), wide.grad.numpy(), rtol=4e-3, atol=4e-3)


def test_places_and_out():
    x = clew.randn(9, 40, dtype=clew.float16)
    assert clew.equal(x.argmax(1), x.float().argmax(1))
    assert clew.equal(x.max(1).indices, x.float().max(1).indices)
    out = clew.empty(40, 9, dtype=clew.float16).t()
    clew.cumsum(x, 1, out=out)
    assert clew.equal(out, x.cumsum(1))
    y = x.clone()
    assert clew.equal(y.cumsum_(1), x.cumsum(1))
    nan = clew.tensor([1.0, float("nan")], dtype=clew.float16)
    assert nan.max().isnan() and nan.sum().isnan() and nan.softmax(0).isnan().all()
    large = clew.full((4,), 6e4, dtype=clew.float16)
    assert large.sum().isinf() and large.mean() == 6e4
