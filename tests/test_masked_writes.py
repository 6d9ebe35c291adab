"""Writes of one number where a mask holds: x[mask] = value and masked_fill_()."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def written(x: clew.Tensor, mask: clew.Tensor, value: float, how: str) -> None:
    if how == "index":
        x[mask] = value
    else:
        x.masked_fill_(mask, value)


@pytest.mark.parametrize("how", ["index", "fill"])
@pytest.mark.parametrize("size", [(3, 4), (300, 400), (0, 4)])
@pytest.mark.parametrize("dtype", [clew.float32, clew.bfloat16, clew.int64, clew.bool])
@pytest.mark.parametrize("strided", [False, True])
def test_equal_to_numpy(how, size, dtype, strided):
    clew.manual_seed(0)
    x = (clew.randn(size) * 3).to(dtype)
    mask = clew.rand(size) < 0.4
    if strided:
        x, mask = x.t(), mask.t().contiguous()
    want = np.where(mask.numpy(), 1, x.float().numpy())
    version = x._version
    written(x, mask, 1, how)
    assert x._version == version + 1
    np.testing.assert_array_equal(x.float().numpy(), want)


@pytest.mark.parametrize("how", ["index", "fill"])
def test_a_view_writes_to_its_base(how):
    x = clew.arange(12).reshape(3, 4).clone()
    written(x[:, 1:3], clew.tensor([[True, False]] * 3), -1, how)
    assert x.tolist() == [[0, -1, 2, 3], [4, -1, 6, 7], [8, -1, 10, 11]]


@pytest.mark.parametrize("how", ["index", "fill"])
def test_the_mask_may_be_what_is_written(how):
    x = clew.tensor([True, False, True])
    written(x, x, False, how)
    assert x.tolist() == [False] * 3


@pytest.mark.parametrize("how", ["index", "fill"])
@pytest.mark.parametrize("n", [5, 20_000])
def test_gradients(how, n):
    clew.manual_seed(0)
    leaf = clew.randn(n, dtype=clew.float64, requires_grad=True)
    mask, g = clew.rand(n) < 0.5, clew.randn(n, dtype=clew.float64)
    x = leaf * 2
    written(x, mask, 7.0, how)
    (x * x).backward(g)
    want = np.where(mask.numpy(), 0.0, 8 * leaf.detach().numpy() * g.numpy())
    np.testing.assert_allclose(leaf.grad.numpy(), want)


def test_the_value_gets_a_gradient():
    value = clew.tensor(2.0, requires_grad=True)
    x = clew.zeros(4)
    x.masked_fill_(clew.tensor([True, False, True, True]), value)
    (x * clew.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert x.tolist() == [2.0, 0.0, 2.0, 2.0] and value.grad.item() == 1101.0


def test_a_mask_of_fewer_dims_is_spread():
    x = clew.zeros(2, 3)
    x.masked_fill_(clew.tensor([True, False, True]), 5)
    assert x.tolist() == [[5.0, 0.0, 5.0]] * 2
    with pytest.raises(RuntimeError, match="broadcast"):
        clew.zeros(3).masked_fill_(clew.ones(2, 3, dtype=clew.bool), 5)


@pytest.mark.parametrize("how", ["index", "fill"])
def test_what_is_refused(how):
    leaf = clew.zeros(3, requires_grad=True)
    mask = clew.ones(3, dtype=clew.bool)
    with pytest.raises(RuntimeError, match="leaf"):
        written(leaf, mask, 1, how)
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors"):
        written(clew.zeros(1).expand(3), mask, 1, how)
    with clew.inference_mode():
        inferred = clew.zeros(3)
    with pytest.raises(RuntimeError, match="inference"):
        written(inferred, mask, 1, how)
    kept = (clew.ones(3, requires_grad=True) * 2).exp()
    loss = kept.sum()
    with clew.no_grad():
        written(kept, mask, 1, how)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("how", ["index", "fill"])
def test_under_vmap(how):
    x, mask = clew.zeros(2, 3), clew.tensor([[True, False, True], [False, True, False]])

    def f(row, m):
        row = row.clone()
        written(row, m, 4.0, how)
        return row

    assert clew.func.vmap(f)(x, mask).tolist() == [[4.0, 0.0, 4.0], [0.0, 4.0, 0.0]]
