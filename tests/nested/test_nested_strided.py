"""Nested tensors whose rows differ in several sizes, row by row beside dense tensors."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import clew

F = clew.nn.functional
SHAPES = [(2, 3), (4, 5), (1, 2)]


def tensors(shapes=SHAPES, seed=0):
    r = np.random.default_rng(seed)
    return [clew.tensor(r.normal(size=s)) for s in shapes]


def nested(rows):
    return clew.nested.as_nested_tensor(rows, layout=clew.strided)


def check(got, want):
    if isinstance(want, list):
        assert got.is_nested
        assert got.layout is clew.strided
        got = got.unbind()
        assert len(got) == len(want)
        for g, w in zip(got, want):
            clew.testing.assert_close(g, w, rtol=1e-10, atol=1e-12)
    else:
        assert not got.is_nested
        clew.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_parts():
    rows = tensors()
    x = clew.nested.nested_tensor(rows)
    check(x, rows)
    assert (x.dim(), x.size(0), len(x), x.numel(), x.nbytes) == (3, 3, 3, 28, 224)
    assert x.values().tolist() == [e for r in rows for e in r.reshape(-1).tolist()]
    assert x._nested_tensor_size().tolist() == [list(s) for s in SHAPES]
    assert x.is_leaf
    assert x.is_contiguous()
    check(x[1], rows[1])
    check(x[-1, 0], rows[-1][0])
    check(x[:2], rows[:2])
    check(x[::2, :1], [r[:1] for r in rows[::2]])
    with pytest.raises(RuntimeError, match="rows differ in dim 1"):
        x.size(1)
    assert repr(x.shape) == "clew.Size([3, *, *])"
    assert x.shape == (x * 2).shape == x.size()
    assert x.shape != x.mT.shape
    assert x.shape.numel() == 28
    with pytest.raises(TypeError, match=r"another one in each row.*_nested_tensor_size"):
        int(x.shape[1])
    assert nested(tensors([(2, 3), (2, 5)])).size(1) == 2


def test_layout_follows_the_rows_unless_it_is_given():
    alike = tensors([(2, 3), (4, 3)])
    assert clew.nested.nested_tensor(alike).layout is clew.jagged
    assert clew.nested.nested_tensor(alike, layout=clew.strided).layout is clew.strided
    assert clew.nested.as_nested_tensor(tensors()).layout is clew.strided
    x = nested(alike)
    turned = clew.nested.as_nested_tensor(x, layout=clew.jagged)
    assert turned.layout is clew.jagged
    check(clew.nested.as_nested_tensor(turned, layout=clew.strided), alike)
    assert clew.nested.as_nested_tensor(x) is x
    check(nested(clew.arange(6.0).reshape(2, 3)), [clew.arange(3.0), clew.arange(3.0, 6.0)])
    check(clew.nested.nested_tensor([1.0, 2.0]), [clew.tensor(1.0), clew.tensor(2.0)])
    batch = clew.nested.collate([(r, 1) for r in tensors()])
    check(batch[0], tensors())


def test_to_padded_tensor():
    rows = tensors()
    x = nested(rows)
    want = clew.full((3, 4, 5), -1.0, dtype=clew.float64)
    for w, r in zip(want, rows):
        w[: r.shape[0], : r.shape[1]] = r
    check(x.to_padded_tensor(-1.0), want)
    larger = clew.nested.to_padded_tensor(x, -1.0, (4, 5, 6))
    assert tuple(larger.shape) == (4, 5, 6)
    check(larger[:3, :4, :5], want)
    assert float(larger.sum()) == pytest.approx(float(x.values().sum()) - (4 * 5 * 6 - 28))


W = clew.tensor(np.random.default_rng(3).normal(size=(2, 3)))
WIDE = [(2, 3), (4, 3), (1, 3)]
CASES = {
    "relu": (lambda x: x.relu(), lambda r: r.relu(), SHAPES),
    "arithmetic": (
        lambda x: (2 - x) * x / (x * x + 1),
        lambda r: (2 - r) * r / (r * r + 1),
        SHAPES,
    ),
    "where": (
        lambda x: clew.where(x > 0, x, x * 0.1),
        lambda r: clew.where(r > 0, r, r * 0.1),
        SHAPES,
    ),
    "masked_fill": (
        lambda x: x.masked_fill(x > 0, 0.5),
        lambda r: r.masked_fill(r > 0, 0.5),
        SHAPES,
    ),
    "gelu": (lambda x: F.gelu(x), lambda r: F.gelu(r), SHAPES),
    "rows of size 1": (
        lambda x: x - x.amax(2, keepdim=True) * x.amin(1, keepdim=True),
        lambda r: r - r.amax(1, keepdim=True) * r.amin(0, keepdim=True),
        SHAPES,
    ),
    "dense row": (lambda x: x * W[0] + W[1:], lambda r: r * W[0] + W[1:], WIDE),
    "linear": (lambda x: F.linear(x, W, W[:, 0]), lambda r: F.linear(r, W, W[:, 0]), WIDE),
    "matmul": (lambda x: x @ W.t(), lambda r: r @ W.t(), WIDE),
    "of both": (lambda x: x @ x.transpose(1, 2), lambda r: r @ r.t(), SHAPES),
    "bmm": (lambda x: clew.bmm(x.mT, x), lambda r: r.t() @ r, SHAPES),
    "softmax": (lambda x: x.softmax(-1), lambda r: r.softmax(-1), SHAPES),
    "log_softmax": (lambda x: F.log_softmax(x, 1), lambda r: F.log_softmax(r, 0), SHAPES),
    "layer_norm": (
        lambda x: F.layer_norm(x, (3,), W[0]),
        lambda r: F.layer_norm(r, (3,), W[0]),
        WIDE,
    ),
    "rms_norm": (lambda x: F.rms_norm(x, (3,)), lambda r: F.rms_norm(r, (3,)), WIDE),
    "sum": (lambda x: x.sum(-1, keepdim=True), lambda r: r.sum(-1, keepdim=True), SHAPES),
    "mean": (lambda x: x.mean(1), lambda r: r.mean(0), SHAPES),
    "amax": (lambda x: x.amax((1, 2)), lambda r: r.amax((0, 1)), SHAPES),
    "max": (lambda x: x.max(2).values, lambda r: r.max(1).values, SHAPES),
    "norm": (lambda x: x.norm(dim=2), lambda r: r.norm(dim=1), SHAPES),
    "normalize": (
        lambda x: F.normalize(x, p=3.0, dim=-1),
        lambda r: F.normalize(r, p=3.0, dim=-1),
        SHAPES,
    ),
    "cumsum": (lambda x: x.cumsum(1), lambda r: r.cumsum(0), SHAPES),
    "transpose": (lambda x: x.transpose(1, 2), lambda r: r.t(), SHAPES),
    "permute": (lambda x: x.permute(0, 2, 1), lambda r: r.t(), SHAPES),
    "unsqueeze": (lambda x: x.unsqueeze(1).squeeze(1) * x, lambda r: r * r, SHAPES),
    "flatten": (lambda x: x.flatten(1), lambda r: r.flatten(), SHAPES),
    "view": (lambda x: x.view(3, -1, 3, 1), lambda r: r.unsqueeze(-1), WIDE),
    "reshape": (lambda x: x.reshape(3, -1), lambda r: r.reshape(-1), WIDE),
    "cat": (lambda x: clew.cat([x, x.exp()], 1), lambda r: clew.cat([r, r.exp()]), SHAPES),
    "narrow": (lambda x: x.narrow(1, 0, 1), lambda r: r[:1], SHAPES),
    "select": (lambda x: x.select(2, 0), lambda r: r[:, 0], SHAPES),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_and_their_gradients_to_second_order(name):
    call, reference, shapes = CASES[name]
    check(call(nested(tensors(shapes))), [reference(r) for r in tensors(shapes)])
    weights = clew.tensor(np.random.default_rng(5).normal(size=100))

    def derivatives(of_rows):
        rows = [r.requires_grad_() for r in tensors(shapes)]
        made = of_rows([r * r for r in rows])
        total = sum((m.reshape(-1) * weights[: m.numel()]).sum() for m in made)
        first = clew.autograd.grad(total, rows, create_graph=True)
        again = sum((g * g).sum() for g in first)
        return first, clew.autograd.grad(again, rows)

    ours = derivatives(lambda rows: call(nested(rows)).unbind())
    plain = derivatives(lambda rows: [reference(r) for r in rows])
    for got, want in zip(ours, plain):
        for g, w in zip(got, want):
            clew.testing.assert_close(g, w, rtol=1e-8, atol=1e-10)


def test_reductions_of_everything():
    x = nested(tensors())
    whole = clew.cat([r.reshape(-1) for r in tensors()])
    for name in ("sum", "mean", "max", "amin", "std", "argmax", "norm"):
        check(getattr(x, name)(), getattr(whole, name)())
    assert bool((x == x).all())
    assert clew.equal(x, x.clone())
    assert not clew.equal(x, x + 1)
    assert clew.allclose(x, x + 1e-12)


def test_losses():
    x, y = nested(tensors()), nested(tensors(seed=1))
    whole = [clew.cat([r.reshape(-1) for r in tensors(seed=s)]) for s in (0, 1)]
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        check(loss(x, y), loss(*whole))
        check(loss(x, y, reduction="none").values(), loss(*whole, reduction="none"))


def test_pieces_and_joins():
    rows = tensors([(2, 4), (3, 4)])
    low, high = nested(rows).chunk(2, -1)
    check(low, [r[:, :2] for r in rows])
    check(high, [r[:, 2:] for r in rows])
    first, rest = nested(rows).split_with_sizes([1, 3], 2)
    check(first, [r[:, :1] for r in rows])
    check(rest, [r[:, 1:] for r in rows])
    check(clew.cat([nested(rows), nested(tensors())]), [*rows, *tensors()])
    check(nested(rows).narrow(0, 1, 1), rows[1:])


def test_leaf_gets_a_nested_gradient():
    x = clew.nested.nested_tensor(tensors(), requires_grad=True)
    (x * x).sum().backward()
    check(x.grad, [2 * r for r in tensors()])
    y = x.exp()
    (got,) = clew.autograd.grad(y, x, clew.ones_like(y))
    check(got, [r.exp() for r in tensors()])


def test_tools_that_look_at_all_tensors():
    x = nested(tensors()).requires_grad_()
    y = (x * 2).relu()
    with clew.debug.leaks() as found:
        kept = [x * 3]
    assert len(kept) == 1
    assert all(growth.holding.bytes > 0 for growth in found)
    assert len(list(clew.graph(y.sum()))) > 1
    with clew.debug.nan_watch():
        y.sum().backward()


def test_a_functions_gradient_at_nested_rows():
    got = clew.func.grad(lambda v: (v * v).sum())(nested(tensors()))
    check(got, [2 * r for r in tensors()])


def test_modules():
    rows = [r.float() for r in tensors(WIDE)]
    x = nested(rows)
    for module in (clew.nn.Linear(3, 2), clew.nn.LayerNorm(3), clew.nn.GELU(), clew.nn.Tanh()):
        check_float(module(x), [module(r) for r in rows])
    table = clew.nn.Embedding(5, 3)
    numbers = [clew.tensor([[0, 1], [2, 3]]), clew.tensor([[4, 4, 1]])]
    check_float(table(nested(numbers)), [table(n) for n in numbers])
    heads = [clew.randn(2, n, 4) for n in (3, 5)]
    got = F.scaled_dot_product_attention(nested(heads), nested(heads), nested(heads))
    want = [F.scaled_dot_product_attention(h[None], h[None], h[None])[0] for h in heads]
    check_float(got, want)
    made = F.dropout(nested([clew.ones(50, 40), clew.ones(3, 70)]), 0.25)
    assert made.values().unique().tolist() == pytest.approx([0.0, 4 / 3])


def check_float(got, want):
    assert got.layout is clew.strided
    for g, w in zip(got.unbind(), want):
        clew.testing.assert_close(g, w)


def test_writing():
    x = nested(tensors())
    kept = x
    x += 1
    x.mul_(2).clamp_(min=0)
    x[0].zero_()
    want = [((r + 1) * 2).clamp(min=0) for r in tensors()]
    want[0].zero_()
    check(kept, want)
    y = nested(tensors())
    y -= y.amax(2, keepdim=True)
    check(y, [r - r.amax(1, keepdim=True) for r in tensors()])
    with pytest.raises(RuntimeError, match="the result must have"):
        x.amax(2, keepdim=True).sub_(x)
    x.copy_(nested(tensors()))
    check(x, tensors())
    check(clew.zeros_like(x), [r * 0 for r in tensors()])
    check(clew.full_like(x, 3.0), [r * 0 + 3 for r in tensors()])


def test_copies_files_and_text():
    x = nested(tensors()).requires_grad_()
    file = io.BytesIO()
    clew.save({"x": x}, file)
    loaded = clew.load(io.BytesIO(file.getvalue()))["x"]
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), loaded):
        check(other.detach(), tensors())
        assert other.requires_grad
        assert other.is_leaf
    small = clew.nested.nested_tensor([clew.ones(1, 2), clew.zeros(2, 1)])
    want = "nested_tensor([\n  tensor([[1., 1.]]),\n  tensor([[0.],\n          [0.]])\n])"
    assert repr(small) == want
    assert repr(small * small.requires_grad_()).startswith("nested_tensor([\n  tensor([[1., 1.]])")
    assert "grad_fn=<" in repr(small * 2)
    clew.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError):
        clew.testing.assert_close(x, x + 1)


X = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(4, 5)])
RAGGED = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(4, 3)])


def test_rows_without_elements_in_their_last_dim():
    rows = tensors([(2, 0), (3, 0)])
    weight, bias = clew.ones(3, 0, dtype=clew.float64), clew.ones(3, dtype=clew.float64)
    check(F.linear(nested(rows), weight, bias), [F.linear(r, weight, bias) for r in rows])
    check(F.layer_norm(nested(rows), (0,)), rows)


def test_rows_that_lists_tensors_and_masks_name():
    rows = tensors([(2, 1, 3), (4, 1, 5), (1, 1, 2)])
    x = nested(rows)
    check(x[[2, 0]], [rows[2], rows[0]])
    check(x[clew.tensor([-1, -1])], [rows[2], rows[2]])
    check(x[clew.tensor([True, False, True])], [rows[0], rows[2]])
    check(x[[0, 1], 1:, 0], [r[1:, 0] for r in rows[:2]])
    check(x[clew.tensor(1)], rows[1])
    check(x[...], rows)
    check(x[..., 0], [r[..., 0] for r in rows])
    check(x[..., 0, 0, :1], [r[0, 0, :1] for r in rows])
    check(x[..., 1, 0, 0, 1], rows[1][0, 0, 1])
    check(x[..., :2, 0, 0, 1], [r[0, 0, 1] for r in rows[:2]])
    with pytest.raises(IndexError, match="too many indices"):
        x[..., 1, 0, 0, 0, 0]
    check(x.squeeze(), [r.squeeze(1) for r in rows])
    for key, message in (([], "at least one row"), ([3], "out of bounds"), ([True], "mask")):
        with pytest.raises(IndexError, match=message):
            x[key]


BAD = [
    (lambda: X + X.mT, RuntimeError, "rows of the same sizes"),
    (lambda: X + X[:1], RuntimeError, "same number of rows"),
    (lambda: X + clew.ones(3, 1, 1), RuntimeError, "each of 2 rows"),
    (lambda: X + RAGGED, NotImplementedError, "no rule for"),
    (lambda: RAGGED + X, NotImplementedError, "no rule for"),
    (lambda: X.softmax(0), RuntimeError, "dim 0 counts the rows"),
    (lambda: X.sum(3), IndexError, r"\[-3, 2\]"),
    (lambda: X.unbind(1), RuntimeError, "dim must be 0"),
    (lambda: X.transpose(0, 1), RuntimeError, "dim 0 counts the rows"),
    (lambda: F.linear(X, clew.ones(2, 3)), RuntimeError, "3 elements in their last dim"),
    (lambda: F.layer_norm(X, (3,)), RuntimeError, "all end with the sizes"),
    (lambda: X.to_padded_tensor(0.0, (2, 4, 4)), RuntimeError, r"at least \[2, 4, 5\]"),
    (lambda: X @ clew.ones(3, 5, 2), RuntimeError, "one for each row"),
    (lambda: X[2], IndexError, "out of range for 2 rows"),
    (lambda: X.numpy(), NotImplementedError, "layout=clew.jagged"),
    (lambda: X.sort(), NotImplementedError, "sort: there is no rule"),
    (lambda: clew.stack([X, X]), NotImplementedError, "stack"),
    (lambda: clew.add(X, X, out=clew.ones(1)), NotImplementedError, "out= is not offered"),
    (lambda: clew.max(X, X, 0), TypeError, "no further arguments"),
    (lambda: X.view(3, -1), RuntimeError, "number of rows, 2"),
    (lambda: X.chunk(4, 1), RuntimeError, "same number of pieces"),
    (lambda: clew.ones(2).add_(X), RuntimeError, "written into a dense"),
    (lambda: clew.nested.as_nested_tensor(X, layout=clew.jagged), RuntimeError, "one dim only"),
    (lambda: clew.nn.LSTM(3, 2, batch_first=True)(X), RuntimeError, "layout=clew.jagged"),
    (
        lambda: clew.nn.MultiheadAttention(4, 2, batch_first=True)(X, X, X, need_weights=False),
        RuntimeError,
        "layout=clew.jagged",
    ),
    (lambda: F.embedding_bag(X.long(), clew.ones(2, 2)), ValueError, "ragged input"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "parts",
    [
        (clew.ones(6), clew.tensor([[2, 2]])),
        (clew.ones(6), clew.tensor([[-2, -3]])),
        (clew.ones(6), clew.tensor([[2.0, 3.0]])),
        (clew.ones(2, 3), clew.tensor([[2, 3]])),
        (clew.ones(0), clew.zeros(0, 2).long()),
        (clew.ones(6), clew.tensor([[2**62, 2**62]])),
    ],
)
def test_damaged_files(parts, monkeypatch):
    monkeypatch.setattr(type(X), "_saved_parts", lambda self: ("strided", (*parts, "nested")))
    file = io.BytesIO()
    clew.save(X, file)
    with pytest.raises(pickle.UnpicklingError, match="sparse tensor"):
        clew.load(io.BytesIO(file.getvalue()))
