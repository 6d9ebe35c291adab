"""SparseAdam: rows without a gradient keep their values and moments."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def reference(w, grads, lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    w, m, v = w.copy(), np.zeros_like(w), np.zeros_like(w)
    for k, g in enumerate(grads, start=1):
        rows = np.flatnonzero((g != 0).reshape(len(g), -1).any(1))
        m[rows] = b1 * m[rows] + (1 - b1) * g[rows]
        v[rows] = b2 * v[rows] + (1 - b2) * g[rows] ** 2
        scale = lr * np.sqrt(1 - b2**k) / (1 - b1**k)
        w[rows] -= scale * m[rows] / (np.sqrt(v[rows]) + eps)
    return w


@pytest.mark.parametrize("shape", [(6, 3), (6,), (6, 2, 2)])
@pytest.mark.parametrize("maximize", [False, True])
def test_follows_the_formula(shape, maximize):
    rng = np.random.default_rng(0)
    start = rng.normal(size=shape)
    grads = [rng.normal(size=shape) for _ in range(5)]
    for k, g in enumerate(grads):
        g[k % 3 :: 2] = 0
    grads[3][:] = 0
    w = clew.tensor(start, requires_grad=True)
    opt = clew.optim.SparseAdam([w], lr=0.1, maximize=maximize)
    for g in grads:
        w.grad = clew.tensor(g)
        opt.step()
    want = reference(start, [-g for g in grads] if maximize else grads)
    np.testing.assert_allclose(w.detach().numpy(), want, rtol=1e-12)


def test_an_element_without_gradient_in_a_touched_row_moves_on():
    w = clew.zeros(2, 2, dtype=clew.float64, requires_grad=True)
    opt = clew.optim.SparseAdam([w], lr=0.1)
    for g in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]):
        before = w.detach().clone()
        w.grad = clew.tensor(g, dtype=clew.float64)
        opt.step()
    moved = (w.detach() != before).tolist()
    assert moved == [[True, True], [False, False]]


def test_state_goes_through_a_checkpoint():
    w = clew.ones(4, 2, requires_grad=True)
    opt = clew.optim.SparseAdam([w], lr=0.1)
    w.grad = clew.ones(4, 2)
    opt.step()
    state = opt.state_dict()
    assert state["state"][0]["step"] == 1 and type(state["state"][0]["step"]) is int
    again = clew.optim.SparseAdam([w], lr=0.5)
    again.load_state_dict(state)
    assert again.param_groups[0]["lr"] == 0.1 and again.state[w]["step"] == 1


def test_a_scalar_and_an_embedding():
    s = clew.tensor(2.0, requires_grad=True)
    table = clew.nn.Embedding(5, 3, sparse=True)
    before = table.weight.detach().clone()
    opt = clew.optim.SparseAdam([s, table.weight], lr=0.1)
    (s * table(clew.tensor([1, 3, 3])).sum()).backward()
    opt.step()
    changed = (table.weight.detach() != before).any(1).tolist()
    assert changed == [False, True, False, True, False]
    assert abs(s.item() - 2.0) == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.0)}])
def test_refuses(options):
    with pytest.raises(ValueError, match="SparseAdam"):
        clew.optim.SparseAdam([clew.ones(2, requires_grad=True)], **options)
    with pytest.raises(ValueError, match="complex"):
        clew.optim.SparseAdam([clew.ones(2, dtype=clew.complex64)])


@pytest.mark.parametrize("dense", [(), (2,)])
def test_gradients_with_several_sparse_dims(dense):
    rng = np.random.default_rng(1)
    shape = (3, 2, *dense)
    start = rng.normal(size=shape)
    w = clew.tensor(start, requires_grad=True)
    opt = clew.optim.SparseAdam([w], lr=0.1)
    flat = start.reshape(6, *dense)
    grads = []
    for k in range(3):
        # An element twice, whose gradients add up, and another one.
        places, values = [[0, 0, 2], [1, 1, k % 2]], rng.normal(size=(3, *dense))
        w.grad = clew.sparse_coo_tensor(places, clew.tensor(values), shape)
        grads.append(w.grad.to_dense().reshape(6, *dense).numpy())
        opt.step()
    want = reference(flat, grads).reshape(shape)
    np.testing.assert_allclose(w.detach().numpy(), want, rtol=1e-12)
    w.grad = clew.sparse_coo_tensor(clew.empty(2, 0).long(), clew.empty(0, *dense).double(), shape)
    opt.step()
    np.testing.assert_allclose(w.detach().numpy(), want, rtol=1e-12)
