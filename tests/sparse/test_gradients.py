"""Sparse gradients of tables, and the optimizers that take them, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew.nn import functional as F

IDS = [[1, 3, 3], [0, 3, 6]]


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(7, 3))


def both(call):
    """The gradients of a table with sparse and with dense gradients."""
    found = []
    for sparse in (True, False):
        w = clew.tensor(table(), requires_grad=True)
        out = call(w, sparse)
        (out * clew.arange(out.numel()).reshape(out.shape)).sum().backward()
        found.append(w.grad)
    assert found[0].is_sparse
    assert found[0].layout is clew.sparse_coo
    return found[0].to_dense().numpy(), found[1].numpy()


@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"scale_grad_by_freq": True}])
def test_embedding(options):
    ids = clew.tensor(IDS)
    np.testing.assert_allclose(*both(lambda w, s: F.embedding(ids, w, sparse=s, **options)))


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 3])
def test_embedding_bag(mode, padding):
    ids = clew.tensor(IDS)
    np.testing.assert_allclose(
        *both(lambda w, s: F.embedding_bag(ids, w, mode=mode, sparse=s, padding_idx=padding))
    )
    with pytest.raises(ValueError, match="does not support sparse"):
        F.embedding_bag(ids, clew.ones(7, 3), mode="max", sparse=True)


def test_gradients_add_up():
    """Two uses, two backward calls, and a dense use of the same table."""
    for dense_too in (False, True):

        def call(w, s, dense_too=dense_too):
            first = F.embedding(clew.tensor([1, 2]), w, sparse=s)
            second = F.embedding(clew.tensor([2, 2]), w, sparse=s)
            out = first * second
            return out + w.sum() if dense_too else out

        grads = []
        for sparse in (True, False):
            w = clew.tensor(table(), requires_grad=True)
            for _ in range(2):
                call(w, sparse).sum().backward()
            grads.append(w.grad)
        assert grads[0].is_sparse is not dense_too
        got = grads[0].numpy() if dense_too else grads[0].to_dense().numpy()
        np.testing.assert_allclose(got, grads[1].numpy())


def test_a_table_that_is_used_by_products_too():
    w = clew.tensor(table(), requires_grad=True)
    x = clew.ones(2, 3).double()
    for _ in range(3):
        (
            F.linear(x, w).sum()
            + F.linear(x, w).sum()
            + F.embedding(clew.tensor([4]), w, sparse=True).sum()
        ).backward()
    want = np.full((7, 3), 4.0)
    want[4] += 1
    np.testing.assert_allclose(w.grad.numpy(), 3 * want)


def test_a_table_that_is_no_leaf_gets_a_dense_gradient():
    w = clew.tensor(table(), requires_grad=True)
    F.embedding(clew.tensor([1]), w * 2, sparse=True).sum().backward()
    assert not w.grad.is_sparse
    assert w.grad.sum().item() == 6


def test_autograd_grad_hooks_and_assignment():
    w = clew.tensor(table(), requires_grad=True)
    out = F.embedding(clew.tensor([1, 1]), w, sparse=True).sum()
    (g,) = clew.autograd.grad(out, w, retain_graph=True)
    assert g.is_sparse
    assert g.coalesce().values().tolist() == [[2.0, 2.0, 2.0]]
    w.grad = g
    assert w.grad.is_sparse
    w.grad = None
    seen = []
    w.register_hook(lambda grad: seen.append(grad.is_sparse))
    w.register_hook(lambda grad: grad.to_dense() * 2)
    out.backward()
    assert seen == [True]
    assert w.grad[1].tolist() == [4.0, 4.0, 4.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: clew.optim.SGD(p, lr=0.1),
        lambda p: clew.optim.SGD(p, lr=0.1, maximize=True),
        lambda p: clew.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
        lambda p: clew.optim.SparseAdam(p, lr=0.1),
        lambda p: clew.optim.SparseAdam(p, lr=0.1, maximize=True),
    ],
)
def test_optimizers(make):
    tables = []
    for sparse in (True, False):
        layer = clew.nn.Embedding(7, 3, sparse=sparse)
        with clew.no_grad():
            layer.weight.copy_(clew.tensor(table()))
        optimizer = make(layer.parameters())
        for step in range(3):
            optimizer.zero_grad(set_to_none=step != 1)
            (layer(clew.tensor(IDS)) ** 2).sum().backward()
            assert layer.weight.grad.is_sparse is sparse
            clew.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            optimizer.step()
        tables.append(layer.weight.detach().numpy())
    np.testing.assert_allclose(*tables, rtol=1e-5)


def test_clip_grad_norm():
    norms = []
    for sparse in (True, False):
        layer = clew.nn.Embedding(7, 3, sparse=sparse)
        with clew.no_grad():
            layer.weight.copy_(clew.tensor(table()))
        other = clew.ones(2, requires_grad=True)
        ((layer(clew.tensor(IDS)) ** 2).sum() + (other * 3).sum()).backward()
        norms.append(clew.nn.utils.clip_grad_norm_([*layer.parameters(), other], 0.5).item())
        norms.append(other.grad[0].item())
    np.testing.assert_allclose(norms[:2], norms[2:], rtol=1e-5)


def test_what_optimizers_refuse():
    layer = clew.nn.Embedding(7, 3, sparse=True)
    layer(clew.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="not offered with sparse gradients"):
        clew.optim.SGD(layer.parameters(), lr=0.1, weight_decay=0.1).step()
    with pytest.raises(RuntimeError, match="not compatible with sparse gradients"):
        clew.optim.Adagrad(layer.parameters(), weight_decay=0.1).step()
    with pytest.raises((RuntimeError, NotImplementedError), match="sparse"):
        clew.optim.Adam(layer.parameters()).step()


LAYOUTS = ("to_sparse", "to_sparse_csr", "to_sparse_csc")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_the_sparse_tensor_itself(layout):
    x = getattr(clew.eye(3, dtype=clew.float64) * 3, layout)().requires_grad_()
    (got,) = clew.autograd.grad((x * x).sum(), x)
    assert got.layout is x.layout
    assert got.to_dense().equal(6 * clew.eye(3, dtype=clew.float64))
    y = x * x
    y.backward(y.detach(), inputs=[x])
    assert x.grad.to_dense().equal(54 * clew.eye(3, dtype=clew.float64))
    ones = clew.ones(3, 2, dtype=clew.float64)
    assert clew.autograd.gradcheck(lambda m: m @ ones, (x,))
    assert clew.autograd.gradcheck(lambda m: m * m, (x,), masked=True)
    assert clew.autograd.gradgradcheck(lambda m: m * m * m, (x,))
    with pytest.raises(NotImplementedError, match="pass masked=True"):
        clew.autograd.gradcheck(lambda m: m @ ones, (x,), masked=False)


def test_gradients_that_lie_elsewhere_are_refused():
    a = clew.eye(3).to_sparse().requires_grad_()
    other = clew.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], [1.0, 1.0, 1.0], (3, 3))
    for bad in (other, clew.ones(3), clew.ones(3, 3), clew.eye(3).to_sparse_csr()):
        with pytest.raises(RuntimeError, match="elements in the same places"):
            (a * 2).backward(bad)
        with pytest.raises(RuntimeError, match="elements in the same places"):
            clew.autograd.grad(a * 2, a, bad)
        with pytest.raises(RuntimeError, match="same places"):
            a.grad = bad
    with pytest.raises(RuntimeError, match="root's layout"):
        (a.to_dense() * 2).backward(other)


def test_optimizers_refuse_what_they_cannot_train():
    table = clew.nn.Embedding(3, 2, sparse=True)
    table(clew.tensor([0])).sum().backward()
    before = table.weight.detach().clone()
    for name in "Adam AdamW RMSprop Adadelta Adamax NAdam RAdam Rprop ASGD".split():
        opt = getattr(clew.optim, name)(table.parameters(), lr=0.1)
        with pytest.raises(RuntimeError, match=f"{name}: sparse gradients.*SparseAdam"):
            opt.step()
    assert table.weight.equal(before)
    for x in (
        clew.eye(3).to_sparse().requires_grad_(),
        clew.eye(3).to_sparse_csr().requires_grad_(),
        clew.nested.nested_tensor([clew.ones(1), clew.ones(2)], requires_grad=True),
    ):
        with pytest.raises(NotImplementedError, match=r"give its .values\(\)"):
            clew.optim.SGD([x], lr=1.0)
    x = clew.eye(2).to_sparse_csr().requires_grad_()
    opt = clew.optim.Adam([x.values()], lr=0.1)
    x.sum().backward()
    opt.step()
    np.testing.assert_allclose(x.to_dense().detach(), 0.9 * np.eye(2), rtol=1e-6)


def test_lbfgs_and_gradient_scaling_with_sparse_gradients():
    table = clew.nn.Embedding.from_pretrained(clew.ones(3, 2), freeze=False, sparse=True)
    opt = clew.optim.LBFGS(table.parameters(), lr=1.0)

    def closure():
        opt.zero_grad()
        loss = table(clew.tensor([0, 0])).square().sum()
        loss.backward()
        return loss

    opt.step(closure)
    np.testing.assert_allclose(table.weight.detach(), [[0, 0], [1, 1], [1, 1]], atol=1e-5)
    scaler = clew.amp.GradScaler("cpu", init_scale=4.0)
    opt = clew.optim.SGD(table.parameters(), lr=1.0)
    for factor, want in ((1.0, [1 - 2.0, 1 - 2.0]), (float("inf"), [-1.0, -1.0])):
        opt.zero_grad()
        scaler.scale((table(clew.tensor([1, 1])) * factor).sum()).backward()
        scaler.step(opt)
        scaler.update()
        assert table.weight[1].tolist() == want
    assert scaler.get_scale() == 2.0


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_gradients_of_sparse_parameters_are_clipped(layout):
    matrix = clew.eye(3) * 2
    weight = matrix.to_sparse() if layout == "coo" else getattr(matrix, f"to_sparse_{layout}")()
    model = clew.nn.Module()
    model.weight = clew.nn.Parameter(weight)
    model.bias = clew.nn.Parameter(clew.ones(4))
    (clew.sparse.sum(model.weight * model.weight) + model.bias.sum()).backward()
    norm = clew.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert norm.item() == pytest.approx((3 * 16 + 4) ** 0.5)
    np.testing.assert_allclose(model.weight.grad._elements.numpy(), 4 / 52**0.5, rtol=1e-5)
    clew.nn.utils.clip_grad_value_(model.parameters(), 0.1)
    np.testing.assert_allclose(model.weight.grad._elements.numpy(), 0.1, rtol=1e-5)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_modules_with_sparse_parameters_change_dtype(layout):
    matrix = clew.eye(3) * 2
    model = clew.nn.Module()
    weight = matrix.to_sparse() if layout == "coo" else getattr(matrix, f"to_sparse_{layout}")()
    model.weight = clew.nn.Parameter(weight)
    model.to("cpu").double()
    assert model.weight.dtype == model.weight._elements.dtype == clew.float64
    (model.weight @ clew.ones(3, 1).double()).sum().backward()
    assert model.weight.grad.dtype == clew.float64


def test_indices_of_bags_with_sparse_gradients_are_integers():
    weight = clew.ones(4, 2, requires_grad=True)
    for indices, offsets in (([0.0], [0]), ([0], [0.0])):
        with pytest.raises(RuntimeError, match="embedding_bag: indices and offsets must be int64"):
            F.embedding_bag(clew.tensor(indices), weight, clew.tensor(offsets), sparse=True)


def test_elements_of_equal_places_get_their_gradient_once():
    """That of PyTorch 2.13, so that a step by hand is the same."""

    def make():
        places = [[0, 0, 1, 0], [1, 3, 0, 1]]
        return clew.sparse_coo_tensor(places, [1.0, 1.0, 3.0, 0.5], (2, 4)).requires_grad_()

    x = make()
    x.to_dense().square().sum().backward()
    wanted = [[0.0, 3.0, 0.0, 2.0], [6.0, 0.0, 0.0, 0.0]]
    assert x.grad.to_dense().tolist() == wanted and x.grad.is_coalesced()
    y = make()
    (grad,) = clew.autograd.grad(y.to_dense().square().sum(), y)
    assert grad.to_dense().tolist() == wanted
    with clew.no_grad():
        x.add_(x.grad, alpha=-0.5)
        assert x.to_dense().tolist() == [[0.0] * 4] * 2
        x.add_(clew.sparse_coo_tensor([[1], [0]], [2.0], (2, 4)))
        assert x.to_dense().tolist() == [[0.0] * 4, [2.0, 0.0, 0.0, 0.0]]
        with pytest.raises(RuntimeError, match="cannot get other places"):
            x.add_(clew.sparse_coo_tensor([[1], [1]], [2.0], (2, 4)))


def test_copy_of_other_places_is_recorded():
    dense = clew.tensor([[1.0, 0.0], [2.0, 3.0]], requires_grad=True)
    for layout in (clew.sparse_coo, clew.sparse_csr):
        copy = clew.zeros_like(dense.detach().to_sparse(layout=layout))
        copy.copy_(dense.to_sparse(layout=layout))
        (grad,) = clew.autograd.grad(copy.to_dense().square().sum(), dense)
        assert grad.to_dense().tolist() == [[2, 0], [4, 6]]
        with clew.no_grad():
            copy = clew.zeros_like(dense.detach().to_sparse(layout=layout))
            assert not copy.copy_(dense.to_sparse(layout=layout)).requires_grad


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("batch", [(3,), (2, 3), (0,)])
def test_products_with_batches_of_dense_matrices(layout, batch):
    r = np.random.default_rng(3)
    a = clew.tensor(r.normal(size=(4, 6)) * (r.random((4, 6)) < 0.5), requires_grad=True)
    left = clew.tensor(r.normal(size=(*batch, 5, 4)), requires_grad=True)
    right = clew.tensor(r.normal(size=(*batch, 6, 2)), requires_grad=True)
    bias = clew.tensor(r.normal(size=6), requires_grad=True)

    def run(m, turned):
        made = left @ m, m @ right, F.linear(left, turned, bias), F.linear(left, turned)
        loss = sum(t.square().sum() for t in made)
        grads = clew.autograd.grad(loss, (left, right, bias, a))
        there = clew.where(a.detach() != 0, grads[3].to_dense(), 0)
        return made, (*grads[:3], there)

    def sparse(t):
        name = "to_sparse" if layout == "coo" else f"to_sparse_{layout}"
        return getattr(t, name)(*([(2, 2)] if layout.startswith("b") else []))

    for got, want in zip(run(sparse(a), sparse(a.t())), run(a, a.t())):
        for g, w in zip(got, want):
            assert g.shape == w.shape and g.layout is clew.strided
            np.testing.assert_allclose(g.detach(), w.detach(), atol=1e-12)
    one = clew.tensor(r.normal(size=4))
    np.testing.assert_allclose(F.linear(one, sparse(a.t())).detach(), (one @ a).detach())
