"""gather and scatter_add by a vector that is expanded: the same as by the indices written out."""

from __future__ import annotations

import numpy as np
import pytest

import clew

CASES = [((7, 9), 0), ((9, 7), 1), ((3, 5, 4), 0), ((3, 5, 4), 1), ((3, 5, 4), 2), ((2, 3), 0)]


def expanded(index: clew.Tensor, shape: tuple[int, ...], dim: int) -> clew.Tensor:
    line = [1] * len(shape)
    line[dim] = len(index)
    sizes = list(shape)
    sizes[dim] = len(index)
    return index.reshape(line).expand(sizes)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [clew.int64, clew.int32])
@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_the_same_as_written_out(shape, dim, dtype, turned):
    x = clew.randn(*reversed(shape)).permute(*reversed(range(len(shape))))
    x = (x if turned else x.contiguous()).requires_grad_()
    index = expanded(clew.randint(0, shape[dim], (11,)).to(dtype), shape, dim)
    full = index.contiguous()
    assert index.stride() != full.stride()
    for of in (
        lambda i: x.gather(dim, i),
        lambda i: x.scatter_add(dim, i, clew.sin(x.gather(dim, full))),
        lambda i: x.detach().clone().scatter_add_(dim, i, x.gather(dim, full)),
    ):
        got, want = of(index), of(full)
        np.testing.assert_allclose(
            got.detach().numpy(), want.detach().numpy(), rtol=1e-6, atol=1e-6
        )
        weight = clew.randn(got.shape)
        grads = [clew.autograd.grad(y, x, weight)[0].numpy() for y in (got, want)]
        np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-5)


def test_a_part_of_the_input_and_of_src():
    index = clew.tensor([2, 0, 2]).reshape(3, 1).expand(3, 9)
    src, x = clew.randn(5, 12), clew.zeros(4, 10)
    want = clew.zeros(4, 10)
    want[2, :9] = src[0, :9] + src[2, :9]
    want[0, :9] = src[1, :9]
    np.testing.assert_allclose(x.scatter_add(0, index, src).numpy(), want.numpy(), rtol=1e-6)
    assert clew.equal(src.gather(0, index), src[[2, 0, 2], :9])


@pytest.mark.parametrize("bad", [4, -1])
def test_indices_out_of_range(bad):
    index = clew.tensor([0, bad]).reshape(2, 1).expand(2, 9)
    x = clew.zeros(4, 9)
    for call in (lambda: x.gather(0, index), lambda: x.scatter_add_(0, index, clew.ones(2, 9))):
        with pytest.raises((RuntimeError, IndexError), match=f"index {bad} is out of bounds"):
            call()
    assert not x.any()
