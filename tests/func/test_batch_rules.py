"""Batching rules of layers, against loops, whichever arguments are mapped."""

from __future__ import annotations

import pytest
from near import close, normal

import clew
from clew import nn
from clew.func import grad, jacfwd, jacrev, vmap


def _layers():
    f = nn.functional
    t = clew.tensor([[1, 3], [0, 4], [1, 1]])
    yield lambda x, w, b: f.layer_norm(x, (3,), w, b), [(4, 3), (3,), (3,)], ()
    yield lambda x, w, b: f.group_norm(x, 2, w, b), [(2, 4, 3), (4,), (4,)], ()
    yield lambda x, w, b: f.batch_norm(x, None, None, w, b, training=True), [(3, 2), (2,), (2,)], ()
    yield lambda x, m, w: f.batch_norm(x, m, w.exp(), w), [(3, 2, 2), (2,), (2,)], ()
    for mask in ((3, 5), (2, 1, 3, 5)):
        shapes = [(2, 2, 3, 4), (2, 2, 5, 4), mask]
        yield lambda q, k, m: f.scaled_dot_product_attention(q, k, k.sin(), m), shapes, ()
        yield lambda q, k, m: f.scaled_dot_product_attention(q, k, k, m > 0), shapes, ()
    yield lambda q, k: f.scaled_dot_product_attention(q, k, k, is_causal=True), [(3, 4), (3, 4)], ()
    for how in ("mean", "sum", "none"):
        yield (
            lambda x, w, t, how=how: f.nll_loss(x, t, w.exp(), reduction=how, ignore_index=1),
            [(2, 5), (5,)],
            (t,),
        )
        yield lambda x, t, how=how: f.cross_entropy(x, t[0], reduction=how), [(5,)], (t,)


@pytest.mark.parametrize("case", range(len(list(_layers()))))
def test_rules_of_layers(case):
    f, shapes, more = list(_layers())[case]
    full = [normal(3, *s, seed=i) for i, s in enumerate(shapes)] + list(more)
    floats = tuple(range(len(shapes)))

    def loss(*a):
        return f(*a).sin().sum()

    def slope(*a):
        return sum(g.sin().sum() for g in grad(loss, argnums=floats)(*a))

    for bits in range(1, 2 ** len(full)):
        dims = [0 if bits >> i & 1 else None for i in range(len(full))]
        args = [a if d == 0 else a[0] for a, d in zip(full, dims)]
        rows = [[a[i] if d == 0 else a for a, d in zip(args, dims)] for i in range(3)]
        close(vmap(f, in_dims=tuple(dims))(*args), clew.stack([f(*r) for r in rows]))
        for g in (grad(loss, argnums=floats), grad(slope, argnums=floats)):
            got = vmap(g, in_dims=tuple(dims))(*args)
            for a, b in zip(got, zip(*[g(*r) for r in rows])):
                close(a, clew.stack(b))
    leaves = [a[0].clone().requires_grad_() for a in full[: len(shapes)]]
    rest = [a[0] for a in more]
    out = f(*leaves, *rest)
    for way in (jacrev, jacfwd):
        table = way(f, argnums=floats)(*[x.detach() for x in leaves], *rest)
        for k, jacobian in enumerate(table):
            for row, o in zip(jacobian.reshape((-1, *leaves[k].shape)), out.reshape((-1,))):
                (want,) = clew.autograd.grad(o, leaves[k], retain_graph=True, allow_unused=True)
                close(row, clew.zeros_like(leaves[k]) if want is None else want)


def test_rules_of_layers_check_every_sample():
    f, x = nn.functional, normal(3, 2, 5)
    with pytest.raises(IndexError, match="out of bounds"):
        vmap(f.nll_loss)(x, clew.tensor([[0, 1], [5, 0], [0, 0]]))
    for g in (
        lambda a: f.layer_norm(a, (5,)),
        lambda a: f.cross_entropy(a, clew.tensor([0, 1]), reduction="none"),
        lambda a: f.scaled_dot_product_attention(a, a, a),
    ):
        assert vmap(g)(x[:0]).shape == (0, *g(x[0]).shape)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.max(),
        lambda x: x.min() * x.max(),
        lambda x: x.prod(),
        lambda x: x.prod(dtype=clew.float64),
        lambda x: nn.functional.pad(x, (1, -1, 0, 2), value=3.0),
        lambda x: x.index_put((clew.tensor([1, 0]),), x[0]),
        lambda x: x.index_put((clew.tensor([[1], [0]]), clew.tensor([0, 2])), x[:2, :2]),
        lambda x: x.index_put((None, clew.tensor([0, 0])), x[:, :2], accumulate=True),
        lambda x: _written(x, ([0, 1], slice(1, None)), x[0, 0] * 2),
        lambda x: _written(x, (slice(None), [2, 0]), x[:, :2] ** 2),
        lambda x: _written(x, ([1], [2]), 5.0),
        lambda x: _written(x, ([1],), clew.ones(1, 1, 3).double()),
    ],
)
@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_rules_of_reductions_and_writes(f, shape):
    """Values, gradients, Jacobians and nested samples; zeros and ties among them."""
    x = normal(4, *shape)
    x[1] = 0.0
    x[2, 0] = x[2, 1]
    rows = list(x)
    close(vmap(f)(x), clew.stack([f(r) for r in rows]))
    close(vmap(vmap(f), in_dims=1, out_dims=1)(clew.stack([x, x * 2], 1))[:, 1], vmap(f)(x * 2))
    assert vmap(f)(x[:0]).shape == (0, *f(x[0]).shape)

    def loss(r):
        return f(r).sin().sum()

    close(vmap(grad(loss))(x), clew.stack([grad(loss)(r) for r in rows]))
    close(grad(lambda a: vmap(loss)(a).sum())(x), vmap(grad(loss))(x))
    close(jacrev(f)(x[0]), jacfwd(f)(x[0]))
    close(vmap(jacrev(f))(x)[0], jacrev(f)(x[0]))


def _written(x, key, value):
    y = x * 1
    y[key] = value
    return y


def test_products_of_samples_have_the_dtype_asked_for():
    x = clew.tensor([[1, 2], [3, 4]])
    got = vmap(lambda a: a.prod())(x), vmap(lambda a: a.prod(dtype=clew.float32))(x)
    assert [g.dtype for g in got] == [clew.int64, clew.float32]
    assert [g.tolist() for g in got] == [[2, 12], [2.0, 12.0]]
    assert vmap(lambda a: (a > 1).prod())(x).tolist() == [0, 1]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda v: nn.functional.glu(v, -1),
        lambda v: nn.functional.adaptive_avg_pool1d(v, 2),
        lambda v: nn.functional.adaptive_max_pool1d(v, 2),
        lambda v: nn.functional.interpolate(v, 3, mode="area"),
    ],
)
def test_samples_along_any_dimension_keep_their_layout_to_themselves(function, dim):
    x = normal(4, 4, 4, 4)
    want = clew.stack([function(v) for v in x.unbind(dim)])
    close(vmap(function, in_dims=dim)(x), want)


def test_losses_that_check_their_targets_are_batched():
    x, y = normal(3, 5).sigmoid(), normal(3, 5, seed=1).sigmoid()
    classes = clew.tensor([[0, -1, 1, 1, 0], [3, 2, -1, 0, 0], [4, 1, 0, -1, 2]])
    for function, *given in (
        (nn.functional.binary_cross_entropy, x, y),
        (nn.functional.multi_margin_loss, x, clew.tensor([0, 4, 2])),
        (nn.functional.multilabel_margin_loss, x, classes),
    ):
        want = clew.stack([function(*row) for row in zip(*given)])
        close(vmap(function)(*given), want)
    with pytest.raises(RuntimeError, match="out of bounds"):
        vmap(nn.functional.multi_margin_loss)(x, clew.tensor([0, 9, 2]))


def test_unpooling_is_batched():
    x = normal(3, 2, 6, 6)
    y, at = nn.functional.max_pool2d(x, 2, return_indices=True)
    want = clew.stack([nn.functional.max_unpool2d(a, b, 2) for a, b in zip(y, at)])
    close(vmap(lambda a, b: nn.functional.max_unpool2d(a, b, 2))(y, at), want)


@pytest.mark.parametrize(
    "function",
    [
        lambda s: clew.select_scatter(clew.zeros(2, 4).double(), s, 0, 1),
        lambda s: clew.slice_scatter(clew.zeros(8).double(), s, 0, 2, 6),
        lambda s: clew.diagonal_scatter(clew.zeros(4, 4).double(), s),
    ],
)
def test_samples_are_scattered_into_one_input(function):
    x = normal(3, 4)
    close(vmap(function)(x), clew.stack([function(row) for row in x]))
    close(
        vmap(grad(lambda s: function(s).pow(2).sum()))(x),
        2 * x,
    )
