"""Sparse tensors of sizes that no dense tensor could have."""

from __future__ import annotations

import pickle

import pytest

import clew

SIZES = [(2**31, 2**30), (2**31, 2**31), (2**63 - 1, 1)]


def _of(size):
    places = [[0, 5, size[0] - 1, 5], [0, 0, size[1] - 1, 0]]
    return clew.sparse_coo_tensor(places, [1.0, 2.0, 3.0, 4.0], size)


@pytest.mark.parametrize("size", SIZES)
def test_places_matter_not_the_size(size):
    x = _of(size).requires_grad_()
    assert tuple(x.shape) == size and x.numel() == size[0] * size[1]
    once = x.coalesce()
    assert once.indices().tolist() == [[0, 5, size[0] - 1], [0, 0, size[1] - 1]]
    assert once.values().tolist() == [1, 6, 3]
    assert (x + x).coalesce().values().tolist() == [2, 12, 6]
    assert (once * once).values().tolist() == [1, 36, 9]
    assert tuple(x.t().shape) == size[::-1]
    assert clew.sparse.sum(x, 0).coalesce().values().sum() == 10
    assert x[5]._values().sum() == 6 and x[4:6]._values().sum() == 6
    picked = x.index_select(0, clew.tensor([5, size[0] - 1, 5])).coalesce()
    assert picked.values().tolist() == [6, 3, 6]
    again = pickle.loads(pickle.dumps(once.detach()))
    assert tuple(again.shape) == size and again.values().tolist() == [1, 6, 3]
    clew.sparse.sum(x * x.coalesce()).backward()
    assert x.grad.shape == x.shape


def test_compressed_rows_of_any_length():
    x = clew.sparse_csr_tensor([0, 1, 2], [0, 2**61 - 1], [1.0, 2.0], (2, 2**61))
    assert (x * 2).to_sparse().indices().tolist() == [[0, 1], [0, 2**61 - 1]]


def test_a_dense_one_is_refused():
    with pytest.raises(MemoryError, match="more bytes"):
        _of((2**31, 2**31)).to_dense()


@pytest.mark.parametrize("size", [(2**32, 2**31), (2**40, 2**40), (2**62, 0, 4)])
def test_more_places_than_an_int64_counts_are_refused(size):
    with pytest.raises(RuntimeError, match=r"sparse_coo_tensor: size must have fewer than 2\*\*63"):
        clew.sparse_coo_tensor(size=size)
    with pytest.raises(RuntimeError, match=r"sparse_coo_tensor: size must have fewer than 2\*\*63"):
        clew.sparse_coo_tensor(clew.zeros(len(size), 0, dtype=clew.int64), [], size)


def test_an_index_whose_size_no_int64_holds_is_refused():
    with pytest.raises(RuntimeError, match=r"sparse_coo_tensor: size must have fewer than 2\*\*63"):
        clew.sparse_coo_tensor([[2**63 - 1]], [1.0])
    with pytest.raises(RuntimeError, match=r"sparse_csr_tensor: size must have fewer than 2\*\*63"):
        clew.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2**62))
