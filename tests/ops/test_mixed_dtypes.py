"""Functions of tensors whose dtypes differ, or that are no floating point numbers."""

from __future__ import annotations

import pytest

import clew
from clew.nn import functional as F


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        ("float32 int64 float32", "float32"),
        ("int64 float32 float32", "float32"),
        ("float64 float32 float32", "float64"),
        ("int8 int64 int16", "int64"),
        ("bool int64 bool", "int64"),
        ("float16 float32 int16", "float32"),
        ("float32 float32 complex64", "complex64"),
    ],
)
def test_addr_promotes_its_operands(dtypes, result):
    m, a, b = (clew.ones(n, dtype=getattr(clew, d)) for n, d in zip(((2, 2), 2, 2), dtypes.split()))
    got = clew.addr(m, a, b, beta=2, alpha=3)
    assert got.dtype is getattr(clew, result) and got.tolist() == [[5, 5], [5, 5]]


def test_addr_takes_a_fraction_where_the_result_has_fractions():
    whole = clew.zeros(2, 2, dtype=clew.int64)
    a = clew.tensor([1.0, 2.0])
    assert clew.addr(whole, a, a, alpha=0.5).tolist() == [[0.5, 1.0], [1.0, 2.0]]
    with pytest.raises(RuntimeError, match="integers"):
        clew.addr(whole, a.long(), a.long(), alpha=0.5)
    with pytest.raises(RuntimeError, match="int64"):
        whole.addr_(a, a)
    assert clew.ones(2, 2).addr_(a.long(), a).tolist() == [[2, 3], [3, 5]]
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    clew.addr(clew.zeros(2, 2), x, a.long()).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_index_add_reads_no_index_where_there_is_nothing_to_add_to():
    row = clew.ones(1, 2, requires_grad=True)
    got = clew.zeros(0, 2).index_add(0, clew.tensor([7]), row)
    assert got.shape == (0, 2)
    got.sum().backward()
    assert row.grad.tolist() == [[0, 0]]
    into = clew.zeros(0, 2)
    assert into.index_add_(0, clew.tensor([7]), clew.ones(1, 2)) is into
    with pytest.raises(RuntimeError):
        clew.zeros(1, 2).index_add(0, clew.tensor([7]), clew.ones(1, 2))
    with pytest.raises(IndexError):
        clew.zeros(0, 2).index_copy(0, clew.tensor([7]), clew.ones(1, 2))


def test_a_real_tensor_is_its_own_conjugate():
    for x in (clew.ones(2), clew.tensor([1, 2]), clew.ones(2, requires_grad=True)):
        assert clew.conj_physical(x) is x and x.conj_physical() is x
    z = clew.tensor([1 + 2j])
    assert clew.conj_physical(z).item() == 1 - 2j and z.item() == 1 + 2j
    assert z.conj_physical_() is z and z.item() == 1 - 2j
    assert clew.conj_physical(z, out=clew.empty(1, dtype=z.dtype)).item() == 1 + 2j


def test_losses_of_distances_that_are_integers():
    far = clew.tensor([1, -1])
    assert F.hinge_embedding_loss(clew.tensor([1, 2]), far, reduction="none").tolist() == [1, 0]
    got = F.hinge_embedding_loss(clew.tensor([1, 0]), -far.abs(), margin=2.5, reduction="none")
    assert got.dtype is clew.int64 and got.tolist() == [1, 2]  # the margin becomes an int
    a, b = clew.tensor([1, 2]), clew.tensor([2, 1])
    got = F.margin_ranking_loss(a, b, far)
    assert got.dtype is clew.float32 and got.item() == 1
