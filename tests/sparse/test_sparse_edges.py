"""Edges of sparse tensors: repeated places of integers, whole multiples, methods called unbound."""

from __future__ import annotations

import numpy as np
import pytest

import clew

DENSE = clew.tensor([[0.0, 2.0], [3.0, 4.0]])
TWICE = [[0, 0, 1], [1, 1, 0]]
KINDS = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((1, 1)),
}


@pytest.mark.parametrize(
    ("values", "dtype"), [([True, True, True], clew.bool), ([200, 100, 7], clew.uint8)]
)
def test_sums_of_repeated_places_are_those_of_the_dense_tensor(values, dtype):
    x = clew.sparse_coo_tensor(TWICE, clew.tensor(values, dtype=dtype), (2, 2))
    dense = x.to_dense().numpy()
    assert clew.sparse.sum(x).item() == dense.sum(dtype=np.int64)
    assert x.sum().item() == dense.sum(dtype=np.int64)
    for dim in (0, 1):
        got = x.sum(dim).to_dense().numpy()
        np.testing.assert_array_equal(got, dense.sum(dim, dtype=np.int64))


def test_negative_zeros_stay_where_other_places_are_named_twice():
    x = clew.sparse_coo_tensor(TWICE, clew.tensor([1.0, 2.0, -0.0]), (2, 2)).coalesce()
    assert x.values().tolist() == [3, 0] and x.values().signbit().tolist() == [False, True]


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_integers_take_whole_multiples_as_dense_products_do(kind):
    whole = DENSE.long()
    x, ones = KINDS[kind](whole), clew.ones(2, 2, dtype=clew.int64)
    got = clew.addmm(ones, x, whole, beta=2.5, alpha=1.5)
    assert got.dtype is clew.int64 and clew.equal(got, 2 + whole @ whole)
    got = clew.addmv(ones[0], x, ones[0], beta=2.5, alpha=1.5)
    assert got.dtype is clew.int64 and clew.equal(got, 2 + whole @ ones[0])


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_multiples_of_bools_are_bools(kind):
    truth = clew.tensor([[True, False], [False, True]])
    x = KINDS[kind](truth)
    for beta, alpha in ((1, 2), (2, 1), (0, 3), (2, 0)):
        got = clew.addmm(truth, x, truth, beta=beta, alpha=alpha)
        assert got.dtype is clew.bool and clew.equal(got, truth)


def test_softmax_of_integers_is_refused():
    for name in ("softmax", "log_softmax"):
        with pytest.raises(NotImplementedError, match=f"sparse.{name}: input must be floating"):
            getattr(clew.sparse, name)(DENSE.long().to_sparse(), 0)
        made = getattr(clew.sparse, name)(DENSE.long().to_sparse(), 0, dtype=clew.float64)
        assert made.dtype is clew.float64


def test_products_without_a_rule_for_blocks_name_the_layout():
    x = DENSE.to_sparse_bsr((1, 1))
    with pytest.raises(NotImplementedError, match="mm: .*sparse_bsr.*to_sparse_csr"):
        clew.sparse.mm(x, DENSE, "mean")
    with pytest.raises(NotImplementedError, match="sampled_addmm: .*sparse_bsr"):
        clew.sparse.sampled_addmm(x, DENSE, DENSE)
    with pytest.raises(RuntimeError, match="_values: .*sparse_coo"):
        DENSE.to_sparse_csr()._values()


def test_transposes_of_any_number_of_dims_and_counts_of_elements():
    x = clew.arange(24.0).reshape(2, 3, 4) % 5
    assert clew.equal(x.to_sparse().T.to_dense(), x.permute(2, 1, 0))
    assert clew.equal(x[0, 0].to_sparse().t().to_dense(), x[0, 0])
    assert clew.equal(x[0, 0].to_sparse().T.to_dense(), x[0, 0])
    assert clew.norm(x.to_sparse(), 0).item() == (x != 0).sum().item()


@pytest.mark.parametrize("kind", KINDS)
def test_methods_called_unbound(kind):
    x, of = KINDS[kind](DENSE), clew.Tensor
    assert clew.equal(of.to_dense(x), DENSE) and of.to_sparse_csr(x).layout is clew.sparse_csr
    assert of.sparse_dim(x) == 2 and of.dense_dim(x) == 0 and of._nnz(x) == 3
    assert of.values(x) is x.values() and of.contiguous(x) is x
    assert of.double(x).dtype is of.to(x, clew.float64).dtype is clew.float64
    assert of.double(x).layout is x.layout


def test_methods_called_unbound_of_ragged_tensors():
    x, of = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(4, 3)]), clew.Tensor
    assert of.values(x) is x.values() and of.double(x).dtype is clew.float64
    with pytest.raises(NotImplementedError, match="to_dense: there is no rule for ragged tensors"):
        of.to_dense(x)


@pytest.mark.parametrize("kind", KINDS)
def test_products_inside_autocast_run_in_its_dtype(kind):
    low, x, bias = clew.bfloat16, clew.tensor([[1.0, 2.0], [3.0, 4.0]]), clew.ones(2)
    sparse = KINDS[kind](DENSE)
    with clew.autocast("cpu", dtype=low):
        pairs = [
            (sparse @ x, DENSE @ x),
            (sparse @ x.to(low), DENSE @ x),
            (x @ sparse, x @ DENSE),
            (sparse @ x[0], DENSE @ x[0]),
            (clew.addmm(x, sparse, x), clew.addmm(x, DENSE, x)),
            (clew.nn.functional.linear(x, sparse, bias), x @ DENSE.t() + bias.to(low)),
        ]
        assert (sparse * 2).dtype is clew.float32
    for got, want in pairs:
        assert got.dtype is low
        clew.testing.assert_close(got, want)


def test_gradients_of_products_inside_autocast_have_the_values_dtype():
    values = clew.tensor([2.0, 3.0, 4.0], requires_grad=True)
    sparse = clew.sparse_coo_tensor([[0, 1, 1], [1, 0, 1]], values, (2, 2))
    with clew.autocast("cpu", dtype=clew.bfloat16):
        out = sparse @ clew.ones(2, 1)
    out.sum().backward()
    assert values.grad.dtype is clew.float32 and values.grad.tolist() == [1, 1, 1]


def test_reflected_operators_called_unbound():
    s = clew.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    assert clew.Tensor.__rmul__(s, 3).to_dense().tolist() == [[0, 6], [0, 0]]
    assert clew.Tensor.detach(s).to_dense().tolist() == [[0, 2], [0, 0]]
    for method in ("__radd__", "__rsub__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__"):
        with pytest.raises((NotImplementedError, RuntimeError, TypeError)) as bound:
            getattr(s, method)(1)
        with pytest.raises(type(bound.value)) as unbound:
            getattr(clew.Tensor, method)(s, 1)
        assert str(unbound.value) == str(bound.value)
