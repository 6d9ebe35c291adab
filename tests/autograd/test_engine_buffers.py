"""Gradients of parts (x[i], slices, embedding rows) are added into one buffer."""

from __future__ import annotations

import random

import numpy as np
import pytest

import clew
from clew import nn


def parts(x):
    return [
        x[1],
        x[1:],
        x.select(1, 2),
        x.narrow(0, 0, 2),
        x[..., 1:3],
        x[clew.tensor([0, 2, 0])],
        x[0],
        x.t()[1],
        x[None, 2, ::2],
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "complex128"])
@pytest.mark.parametrize("seed", range(4))
def test_sums_of_parts(dtype, seed):
    rng = np.random.default_rng(seed)
    x = clew.tensor(rng.standard_normal((3, 4))).to(getattr(clew, dtype)).requires_grad_()
    y = x * 1  # not a leaf: its buffer is the engine's own
    total = 0
    want = np.zeros((3, 4), complex)
    for target in (x, y):
        for part, position in zip(parts(target), parts(clew.arange(12).reshape(3, 4))):
            w = rng.integers(-3, 4, tuple(part.shape))
            total = total + (part * clew.tensor(w).to(part.dtype)).sum()
            np.add.at(want.reshape(-1), position.numpy().reshape(-1), w.reshape(-1))
    total = total + (y * 2).sum() + y.sum()
    want += 3
    (total.real if total.is_complex() else total).backward()
    got = x.grad.to(clew.complex128).numpy()
    np.testing.assert_allclose(got, want, rtol=0, atol=0.25 if dtype == "bfloat16" else 1e-5)


def test_a_gradient_that_somebody_holds_is_not_written():
    x = clew.ones(3, requires_grad=True)
    y = x * 1
    seen = []
    z = y + 0
    z.register_hook(lambda g: seen.append(g))
    (z.sum() + y[0] * 5 + y[1:].sum()).backward()
    assert seen[0].tolist() == [1, 1, 1]
    assert x.grad.tolist() == [6, 2, 2]
    first = x.grad
    (x[0] * 2).backward()
    assert x.grad.tolist() == [8, 2, 2] and first is x.grad


def test_seeds_are_not_written():
    x = clew.zeros(3, requires_grad=True)
    y = x * 1
    seed = clew.ones(3)
    clew.autograd.backward([y, y[0]], [seed, clew.tensor(4.0)])
    assert seed.tolist() == [1, 1, 1] and x.grad.tolist() == [5, 1, 1]


def test_hooks_see_whole_gradients():
    x = clew.zeros(4, requires_grad=True)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    part = y[1]
    part.grad_fn.register_hook(lambda ins, outs: seen.append(ins[0].tolist()))
    (y[0] + part * 3 + y[2:].sum()).backward()
    assert seen == [[0, 3, 0, 0], [1, 3, 1, 1]] and y.grad.tolist() == [1, 3, 1, 1]


def test_second_derivatives_and_captures():
    x = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**3
    (g,) = clew.autograd.grad(y[0] + y[1:].sum(), x, create_graph=True)
    assert clew.autograd.grad(g[1] + g[0], x)[0].tolist() == [6, 12, 0]
    y = x**3
    assert clew.autograd.grad(y[0] + 2 * y[0], y)[0].tolist() == [3, 0, 0]


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_embeddings(options):
    table = nn.Embedding(4, 2, **options).double()
    ids = [clew.tensor([0, 1, 1]), clew.tensor([3]), clew.tensor([[1, 3], [3, 0]])]
    sum(table(i).sum() * (k + 1) for k, i in enumerate(ids)).backward()
    want = np.zeros((4, 2))
    for k, i in enumerate(ids):
        flat = i.numpy().reshape(-1)
        for row in flat:
            scale = 1 / (flat == row).sum() if "scale_grad_by_freq" in options else 1
            want[row] += (k + 1) * scale
    if "padding_idx" in options:
        want[1] = 0
    np.testing.assert_allclose(table.weight.grad.numpy(), want)


def test_writes_between_are_noticed():
    x = clew.zeros(4, requires_grad=True)
    index = clew.tensor([0, 1])
    y = (x * 1)[index]
    index.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "complex128"])
@pytest.mark.parametrize("rows", [(), (1,), (3,), (2, 3), (0,)])
def test_a_weight_that_is_used_often(dtype, rows):
    rng = np.random.default_rng(0)
    kind = getattr(clew, dtype)

    def draw(*shape):
        x = rng.integers(-3, 4, shape)
        if kind.is_complex:
            x = x + 1j * rng.integers(-3, 4, shape)
        return x

    w, vector = draw(4, 5), draw(5)
    weight = clew.tensor(w).to(kind).requires_grad_()
    flat = clew.tensor(vector).to(kind).requires_grad_()
    want, want_flat = np.zeros((4, 5), complex), np.zeros(5, complex)
    outputs, seeds, inputs = [], [], []
    for _ in range(3):
        x, g, h = draw(*rows, 5), draw(*rows, 4), draw(*rows)
        x_leaf = clew.tensor(x).to(kind).requires_grad_()
        inputs.append((x_leaf, g @ w.conj() + np.multiply.outer(h, vector.conj())))
        outputs += [nn.functional.linear(x_leaf, weight), nn.functional.linear(x_leaf, flat)]
        seeds += [clew.tensor(g).to(kind), clew.tensor(np.asarray(h)).to(kind)]
        want += g.reshape(-1, 4).T @ x.reshape(-1, 5).conj()
        want_flat += np.asarray(h).reshape(-1) @ x.reshape(-1, 5).conj()
    clew.autograd.backward(outputs, seeds)
    for leaf, expect in ((weight, want), (flat, want_flat), *inputs):
        got = leaf.grad.to(clew.complex128).numpy()
        np.testing.assert_allclose(got, expect, rtol=0, atol=1.0 if dtype == "bfloat16" else 1e-4)


def test_recurrent_weights_with_second_derivatives():
    cell = nn.Linear(3, 3).double()
    h = clew.ones(2, 3, dtype=clew.float64)
    for _ in range(4):
        h = cell(h).tanh()
    first = clew.autograd.grad(h.sum(), list(cell.parameters()), create_graph=True)
    total = sum((g * g).sum() for g in first)
    second = clew.autograd.grad(total, list(cell.parameters()))
    h = clew.ones(2, 3, dtype=clew.float64)
    for _ in range(4):
        h = cell(h).tanh()
    h.sum().backward()
    for p, g, s in zip(cell.parameters(), first, second):
        np.testing.assert_allclose(p.grad.numpy(), g.detach().numpy(), rtol=1e-12)
        assert s.isfinite().all()


def _staged(rows_of, dtype=clew.float64, bias=True, retain=False):
    """Gradients of a weight used by many small products, and those of one product of all rows."""
    clew.manual_seed(0)
    weight = clew.randn(5, 6, dtype=dtype, requires_grad=True)
    offset = clew.randn(5, dtype=dtype, requires_grad=True) if bias else None
    rows = [clew.randn(n, 6, dtype=dtype, requires_grad=True) for n in rows_of]
    loss = sum(clew.nn.functional.linear(x, weight, offset).tanh().sum() for x in rows)
    loss.backward(retain_graph=retain)
    found = [weight.grad, *([offset.grad] if bias else []), *(x.grad for x in rows)]
    if retain:
        for t in found:
            t.zero_()
        loss.backward()
    whole = clew.cat([x.detach() for x in rows]).requires_grad_()
    w = weight.detach().clone().requires_grad_()
    b = offset.detach().clone().requires_grad_() if bias else None
    clew.nn.functional.linear(whole, w, b).tanh().sum().backward()
    expected = [w.grad, *([b.grad] if bias else []), *whole.grad.split(list(rows_of))]
    return found, expected


@pytest.mark.parametrize("dtype", [clew.float64, clew.float32])
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize(
    "rows_of", [[1], [1, 1], [3] * 100, [1] * 300, [40, 1, 1, 2], [1, 1, 40, 1], [16] * 9, [17, 16]]
)
def test_products_that_wait_for_each_other_sum_to_the_whole(rows_of, retain, dtype):
    found, expected = _staged(rows_of, dtype, bias=len(rows_of) % 2 == 0, retain=retain)
    tolerance = 1e-12 if dtype == clew.float64 else 2e-4
    for a, b in zip(found, expected, strict=True):
        assert clew.allclose(a, b, rtol=tolerance, atol=tolerance)


def test_waiting_products_add_to_other_gradients_of_the_weight():
    clew.manual_seed(1)
    weight = clew.randn(4, 4, dtype=clew.float64, requires_grad=True)
    x = clew.randn(1, 4, dtype=clew.float64)

    def loss(w):
        y = x
        for _ in range(4):
            y = clew.nn.functional.linear(y, w).tanh()
        return y.sum() + (w * w).sum() + (y @ w).sum()

    assert clew.autograd.gradcheck(loss, (weight,))
    assert clew.autograd.gradgradcheck(loss, (weight,))
    (captured,) = clew.autograd.grad(loss(weight), weight)
    loss(weight).backward()
    assert clew.allclose(captured, weight.grad)


def test_a_hook_that_fails_leaves_no_waiting_products():
    weight = clew.ones(3, 3, requires_grad=True)
    x = clew.ones(1, 3, requires_grad=True)

    def fail(grad):
        raise RuntimeError("stop")

    first = clew.nn.functional.linear(x, weight)
    handle = first.register_hook(fail)
    loss = clew.nn.functional.linear(first, weight).sum()
    with pytest.raises(RuntimeError, match="stop"):
        loss.backward(retain_graph=True)
    assert weight.grad is None
    handle.remove()
    loss.backward()
    assert clew.equal(weight.grad, clew.full((3, 3), 6.0))


def test_gradients_that_others_hold_are_not_written_over():
    x = clew.randn(4, requires_grad=True)
    seed = clew.ones(4)
    held = []
    y = x * 2
    y.register_hook(held.append)
    y.retain_grad()
    z = y * 3
    z.backward(seed)
    assert clew.equal(seed, clew.ones(4))
    assert clew.equal(held[0], clew.full((4,), 3.0)) and clew.equal(y.grad, held[0])
    assert clew.equal(x.grad, clew.full((4,), 6.0))
    a = clew.randn(4, requires_grad=True)
    b = (a * 2).exp()
    grads = clew.autograd.grad(b.sum(), [b, a], retain_graph=True)
    assert clew.equal(grads[0], clew.ones(4)) and clew.allclose(grads[1], 2 * b)
    node = b.grad_fn
    seen = []
    node.register_hook(lambda inputs, outputs: seen.append((inputs[0].clone(), outputs[0].clone())))
    b.backward(clew.ones(4))
    assert clew.equal(seen[0][1], clew.ones(4)) and clew.allclose(seen[0][0], b)


def test_both_factors_of_a_square_get_their_share():
    x = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x + 0
    (y * y).backward(clew.ones(3))
    assert clew.equal(x.grad, clew.tensor([2.0, 4.0, 6.0]))
    a, b = clew.tensor([2.0], requires_grad=True), clew.tensor([5.0], requires_grad=True)
    ((a * b) * 7).sum().backward()
    assert (a.grad.item(), b.grad.item()) == (35, 14)


@pytest.mark.parametrize("seed", range(8))
def test_nodes_run_latest_first_whatever_the_order_they_are_reached_in(seed: int) -> None:
    rng = random.Random(seed)
    x = clew.ones(3, dtype=clew.float64, requires_grad=True)
    made = [x]
    parents = []
    for k in range(1, 121):  # each of two earlier ones, near and far
        a, b = rng.randrange(max(k - 4, 0), k), rng.randrange(k)
        made.append(made[a] * 0.5 + made[b] * 0.25)
        parents.append([(a, 0.5), (b, 0.25)])
    ran: list[int] = []
    for k, t in enumerate(made[1:], 1):
        t.grad_fn.register_prehook(lambda _, k=k: ran.append(k))
    clew.cat(rng.sample(made, len(made))).sum().backward()
    assert ran == list(range(120, 0, -1))
    weights = [0.0] * len(made)  # the same backward in plain numbers
    for k in range(120, 0, -1):
        weights[k] += 1
        for parent, factor in parents[k - 1]:
            weights[parent] += factor * weights[k]
    assert x.grad.tolist() == pytest.approx([weights[0] + 1] * 3)
