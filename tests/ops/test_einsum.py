"""einsum, tensordot and chains of products against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numeric import check_gradients, normal

import clew

CASES = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ij,kj->ki", (3, 4), (5, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bjk->kib", (2, 3, 4), (2, 4, 5)),
    ("i,i->", (4,), (4,)),
    ("i,j->ij", (3,), (4,)),
    ("ij->ji", (3, 4)),
    ("ij->", (3, 4)),
    ("ij->j", (3, 4)),
    ("ii->", (3, 3)),
    ("ii->i", (3, 3)),
    ("iji->j", (3, 4, 3)),
    ("iii->i", (3, 3, 3)),
    ("ij,ij->ij", (3, 4), (3, 4)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...ii->...i", (2, 3, 3)),
    ("i...->...", (3, 4, 5)),
    ("...,...->...", (3, 4), (4,)),
    ("bhld,bhsd->bhls", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("i,ij,j->", (3,), (3, 4), (4,)),
    ("abc,bd,cd,e->ae", (2, 3, 4), (3, 5), (4, 5), (2,)),
    ("ij,kl->", (2, 3), (4, 5)),
    ("ba,B->aB", (2, 3), (4,)),
    ("ab,Ba", (2, 3), (4, 2)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("i j , j k -> i k", (2, 3), (3, 2)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}")
def test_einsum(case):
    equation, shapes = case[0], case[1:]
    arrays = [normal(k, *s) for k, s in enumerate(shapes)]
    expected = np.einsum(equation.replace(" ", ""), *arrays)
    tensors = [clew.tensor(a) for a in arrays]
    got = clew.einsum(equation, *tensors)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(clew.einsum(equation, tensors).numpy(), got.numpy())
    check_gradients(lambda *xs: clew.einsum(equation, *xs), *arrays)


def test_einsum_broadcasts_sizes_of_one():
    a, b = normal(1, 3, 1), normal(2, 4, 5)
    got = clew.einsum("ij,jk->ik", clew.tensor(a), clew.tensor(b))
    np.testing.assert_allclose(got.numpy(), np.broadcast_to(a, (3, 4)) @ b)
    got = clew.einsum("bi,bi->b", clew.tensor(normal(3, 1, 4)), clew.tensor(normal(4, 3, 4)))
    np.testing.assert_allclose(got.numpy(), (normal(3, 1, 4) * normal(4, 3, 4)).sum(-1))


def test_einsum_of_sublists():
    a, b = normal(1, 2, 3), normal(2, 3, 4)
    x, y = clew.tensor(a), clew.tensor(b)
    np.testing.assert_allclose(clew.einsum(x, [0, 1], y, [1, 2]).numpy(), a @ b)
    np.testing.assert_allclose(clew.einsum(x, [0, 1], y, [1, 2], [2, 0]).numpy(), (a @ b).T)
    np.testing.assert_allclose(clew.einsum(x, [..., 51], [51, ...]).numpy(), a.T)


def test_einsum_over_empty_and_complex():
    out = clew.einsum("ij,jk->ik", clew.ones(2, 0), clew.ones(0, 3))
    assert out.shape == (2, 3) and (out.numpy() == 0).all()
    c, d = normal(1, 3, 4, dtype="complex128"), normal(2, 4, 2, dtype="complex128")
    np.testing.assert_allclose(
        clew.einsum("ij,jk->ki", clew.tensor(c), clew.tensor(d)).numpy(), (c @ d).T
    )


@pytest.mark.parametrize(
    "equation,shapes",
    [
        ("ij,jk", [(2, 3)]),
        ("ij", [(2,)]),
        ("ij->ii", [(2, 3)]),
        ("ij->k", [(2, 3)]),
        ("ij,jk->ik", [(2, 3), (4, 5)]),
        ("i1", [(2, 3)]),
        ("ii", [(2, 3)]),
        ("...ijk", [(2, 3)]),
    ],
)
def test_einsum_errors(equation, shapes):
    with pytest.raises(RuntimeError, match="einsum: "):
        clew.einsum(equation, *(clew.ones(s) for s in shapes))


def test_tensordot():
    a, b = normal(1, 2, 3, 4), normal(2, 4, 3, 5)
    x, y = clew.tensor(a), clew.tensor(b)
    np.testing.assert_allclose(
        clew.tensordot(x, y, dims=([2, 1], [0, 1])).numpy(), np.tensordot(a, b, ([2, 1], [0, 1]))
    )
    np.testing.assert_allclose(clew.tensordot(x, y, 1).numpy(), np.tensordot(a, b, 1))
    np.testing.assert_allclose(clew.tensordot(x, y, 0).numpy(), np.tensordot(a, b, 0))
    np.testing.assert_allclose(clew.tensordot(x, y, (-1, 0)).numpy(), np.tensordot(a, b, (-1, 0)))
    one = clew.tensor(normal(3, 1, 3))
    np.testing.assert_allclose(
        clew.tensordot(one, clew.tensor(normal(4, 2, 5)), ([0], [0])).numpy(),
        np.tensordot(normal(3, 1, 3).repeat(2, 0), normal(4, 2, 5), ([0], [0])),
    )
    out = clew.empty(2, 3, 3, 5, dtype=clew.float64)
    assert clew.tensordot(x, y, 1, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.tensordot(a, b, 1))
    check_gradients(lambda p, q: clew.tensordot(p, q, ([2, 1], [0, 1])), a, b)
    with pytest.raises(RuntimeError, match="tensordot: "):
        clew.tensordot(x, y, ([0], [0]))
    with pytest.raises(RuntimeError, match="tensordot: "):
        clew.tensordot(x, y, 4)
    with pytest.raises(RuntimeError, match="tensordot: "):
        clew.tensordot(x, y, ([1, 1], [1, 1]))
    with pytest.raises(IndexError):
        clew.tensordot(x, y, ([3], [0]))


def test_chains():
    mats = [normal(k, *s) for k, s in enumerate([(2, 9), (9, 3), (3, 7), (7, 4)])]
    expected = np.linalg.multi_dot(mats)
    np.testing.assert_allclose(clew.chain_matmul(*map(clew.tensor, mats)).numpy(), expected)
    with pytest.raises(RuntimeError):
        clew.chain_matmul(clew.ones(2, 3), clew.ones(2, 3))
    from clew._ops import einsum as _einsum

    vectors = [normal(8, 2), *mats, normal(9, 4)]
    got = _einsum.multi_dot([clew.tensor(v) for v in vectors])
    np.testing.assert_allclose(got.numpy(), np.linalg.multi_dot(vectors))


def test_chains_of_three_begin_at_the_left_where_the_order_costs_the_same():
    a = clew.tensor([[-clew.inf, 1.0], [2.0, 4.0]])
    want = clew.mm(clew.mm(a, a), a)
    assert not clew.equal(want, clew.mm(a, clew.mm(a, a)))  # so that the order shows
    for got in (clew.chain_matmul(a, a, a), clew.linalg.multi_dot([a, a, a]), a.matrix_power(3)):
        assert clew.equal(got.nan_to_num(7.0), want.nan_to_num(7.0)), got


def test_a_chain_of_nothing():
    with pytest.raises(RuntimeError, match="chain_matmul: expected at least one matrix"):
        clew.chain_matmul()
