"""vmap over the rows of ragged tensors, beside a loop over the rows."""

from __future__ import annotations

import numpy as np
import pytest

import clew

COUNTS = [3, 1, 3, 0]


def values():
    return clew.tensor(np.random.default_rng(0).normal(size=(sum(COUNTS), 4)), requires_grad=True)


def of(v):
    return clew.nested.nested_tensor_from_jagged(v, lengths=clew.tensor(COUNTS))


def same(got, want):
    if isinstance(want, list):
        assert got.is_nested
        for g, w in zip(got.unbind(), want, strict=True):
            same(g, w)
        return
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-12)


def sample(row, w):
    made = row @ w
    return {"rows": made.softmax(0), "turned": row.t(), "sums": made.sum(0)}


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_results_of_each_row(chunk_size):
    v, w = values(), clew.randn(4, 4, 2, dtype=clew.float64)
    got = clew.vmap(sample, chunk_size=chunk_size)(of(v), w)
    want = [sample(r, w[i]) for i, r in enumerate(of(v).unbind())]
    same(got["rows"], [r["rows"] for r in want])
    same(got["turned"], [r["turned"] for r in want])
    same(got["sums"], clew.stack([r["sums"] for r in want]))


def test_second_derivatives():
    v, w = values(), clew.randn(4, 4, 2, dtype=clew.float64, requires_grad=True)

    def penalty(results):
        loss = sum((r["rows"] ** 2).sum() + r["sums"].sin().sum() for r in results)
        grads = clew.autograd.grad(loss, (v, w), create_graph=True)
        return clew.autograd.grad(sum((g**2).sum() for g in grads), (v, w))

    got = penalty([clew.vmap(sample)(of(v), w)])
    want = penalty([sample(r, w[i]) for i, r in enumerate(of(v).unbind())])
    for g, h in zip(got, want, strict=True):
        np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-9, atol=1e-12)


def test_gradients_of_each_row():
    def loss(w, row):
        return (row @ w).tanh().sum()

    w, x = clew.ones(4, 2, dtype=clew.float64), of(values().detach())
    got = clew.vmap(clew.func.grad(loss), in_dims=(None, 0))(w, x)
    same(got, clew.stack([clew.func.grad(loss)(w, r) for r in x.unbind()]))


def test_rows_with_gaps_rows_in_another_dim_and_no_rows():
    x = of(values().detach())
    start, count = clew.tensor([0, 2]), clew.tensor([3, 1])
    dense = clew.arange(24.0).reshape(2, 4, 3)
    gaps = clew.nested.narrow(dense, 1, start, count)
    same(clew.vmap(lambda r: r.sum(0))(gaps), clew.stack([dense[0, :3].sum(0), dense[1, 2]]))
    same(clew.vmap(lambda r: r.sum(1))(x.transpose(1, 2)), x.sum(1))
    same(clew.vmap(lambda r: r.sum(0), out_dims=1)(x), x.sum(1).t())
    none = clew.nested.nested_tensor_from_jagged(clew.zeros(0, 4), clew.tensor([0]))
    assert tuple(clew.vmap(lambda r: r.sum(0))(none).shape) == (0, 4)


def test_a_ragged_tensor_that_all_samples_share():
    x, w = of(values().detach()), clew.randn(3, 4, 2, dtype=clew.float64)
    want = clew.stack([(x @ m).sum((0, 1)) for m in w])
    same(clew.vmap(lambda m, y: (y @ m).sum((0, 1)), in_dims=(0, None))(w, x), want)


X = clew.nested.nested_tensor([clew.ones(3, 2), clew.ones(1, 2)])
SPARSE = clew.eye(2).to_sparse()
BAD = [
    (lambda: clew.vmap(lambda r: r, in_dims=1)(X), ValueError, "in_dim must be 0"),
    (lambda: clew.vmap(lambda r: r * 1, out_dims=1)(X), RuntimeError, "with out_dims 0"),
    (lambda: clew.vmap(lambda r: clew.ones(1), out_dims=None)(X), RuntimeError, "out_dims=None"),
    (lambda: clew.vmap(clew.sin, randomness="same")(X), RuntimeError, "cannot be the same"),
    (lambda: clew.vmap(clew.mul)(X, clew.ones(3)), ValueError, "same size in the mapped dim"),
    (lambda: clew.vmap(lambda m: X * m)(clew.ones(3)), NotImplementedError, "dense tensors"),
    (lambda: clew.vmap(lambda m: SPARSE * m)(clew.ones(3, 2, 2)), NotImplementedError, "dense"),
    (lambda: clew.vmap(lambda r: r.sum())(SPARSE.to_sparse_csr()), NotImplementedError, "no rule"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


def test_transforms_of_ragged_and_sparse_tensors_leave_no_graph():
    ragged = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(1, 3)])
    weight = clew.ones((), requires_grad=True)
    for x in (ragged, clew.eye(3).to_sparse(), clew.eye(3).to_sparse_csr()):
        for f, kept in ((lambda v: (v * v).sum(), False), (lambda v: (v * v).sum() * weight, True)):
            out, tangent = clew.func.jvp(f, (x,), (x,))
            assert (out.requires_grad, tangent.requires_grad) == (kept, kept)
            assert float(tangent) == 2 * float(out)
            value, pull = clew.func.vjp(f, x)
            assert value.requires_grad is kept
            assert pull(clew.ones(()))[0].requires_grad is kept
            assert clew.func.grad(f)(x).requires_grad is kept


def test_results_that_differ_in_two_sizes():
    made = clew.vmap(lambda r: r @ r.t())(X)
    assert made.layout is clew.strided
    assert [tuple(r.shape) for r in made.unbind()] == [(3, 3), (1, 1)]


def test_rows_that_differ_in_several_sizes():
    """Once for all rows of one shape; PyTorch 2.13 gives the same rows."""
    shapes = [(2, 3), (4, 5), (2, 3), (1, 5)]
    rows = [clew.randn(*s, requires_grad=True) for s in shapes]
    x = clew.nested.as_nested_tensor(rows)
    assert x.layout is clew.strided
    calls = []

    def f(row):
        calls.append(tuple(row.shape))
        return row.sin() * row.shape[0]

    made = clew.vmap(f)(x)
    assert calls == [(2, 3), (4, 5), (1, 5)] and made.is_nested
    for got, row in zip(made.unbind(), rows):
        clew.testing.assert_close(got, row.sin() * row.shape[0])
    sums = clew.vmap(lambda row, y: row.sum() * y)(x, clew.arange(4.0))
    clew.testing.assert_close(sums, clew.stack([r.sum() * i for i, r in enumerate(rows)]))
    sums.square().sum().backward()
    for i, row in enumerate(rows):
        clew.testing.assert_close(row.grad, 2 * i * i * row.sum().detach() * clew.ones(row.shape))
    columns = clew.vmap(lambda row: row.sum(0))(x)
    assert columns.layout is clew.jagged
    assert [tuple(c.shape) for c in columns.unbind()] == [(3,), (5,), (3,), (5,)]
