"""vmap over sparse tensors: each sample has places of its own."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def batch(requires_grad=False):
    clew.manual_seed(0)
    a = clew.randn(3, 4, 2, dtype=clew.float64) * (clew.rand(3, 4, 2) > 0.4)
    return a.requires_grad_(requires_grad)


def test_results_that_are_sparse_or_dense():
    a = batch()
    x = a.to_sparse()
    doubled = clew.vmap(lambda m: m * 2)(x)
    assert doubled.is_sparse
    np.testing.assert_array_equal(doubled.to_dense(), a * 2)
    w = clew.randn(2, 5, dtype=clew.float64)
    np.testing.assert_allclose(clew.vmap(lambda m: m @ w)(x), a @ w)
    each = clew.randn(3, 2, dtype=clew.float64)
    products, sums = clew.vmap(lambda m, v: (m @ v, m.sum()), (1, 0), (1, 0))(
        x.transpose(0, 1), each
    )
    np.testing.assert_allclose(products, (a @ each.unsqueeze(-1)).squeeze(-1).T)
    np.testing.assert_allclose(sums, a.sum((1, 2)))
    moved = clew.vmap(lambda m: m.t(), out_dims=2)(x)
    np.testing.assert_array_equal(moved.to_dense(), a.permute(2, 1, 0))


def test_gradients():
    a = batch(True)
    clew.vmap(lambda m: (m @ clew.ones(2, 1, dtype=clew.float64)).square().sum())(
        a.to_sparse()
    ).sum().backward()
    want = 2 * a.detach().sum(2, keepdim=True).expand(3, 4, 2) * (a.detach() != 0)
    np.testing.assert_allclose(a.grad, want)


def test_batches_of_compressed_matrices():
    a = clew.tensor([[[1.0, 0.0], [2.0, 3.0]], [[0.0, 4.0], [5.0, 6.0]]])
    x, v = a.to_sparse_csr(), clew.tensor([1.0, 10.0])
    np.testing.assert_array_equal(clew.vmap(lambda m: m @ v)(x), a @ v)


def test_draws():
    x = batch().to_sparse()

    def noisy(m):
        return m.sum() * 0 + clew.rand(())

    with pytest.raises(RuntimeError, match="random operation"):
        clew.vmap(noisy)(x)
    assert len({*clew.vmap(noisy, randomness="different")(x).tolist()}) == 3
    assert len({*clew.vmap(noisy, randomness="same")(x).tolist()}) == 1


def test_refused():
    x = batch().to_sparse()
    with pytest.raises(ValueError, match="must only return Tensors"):
        clew.vmap(lambda m: 1)(x)
    with pytest.raises(ValueError, match="out_dims must hold ints"):
        clew.vmap(lambda m: m.sum(), out_dims=None)(x)
    with pytest.raises(ValueError, match="not compatible"):
        clew.vmap(lambda m: m.sum(), out_dims=(0, 0))(x)
    with pytest.raises(RuntimeError, match="no samples"):
        clew.vmap(lambda m: m.sum())(clew.sparse_coo_tensor(size=(0, 2)))
