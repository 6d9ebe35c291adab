"""Ragged tensors in shapes, products, attention and modules, row by row beside dense tensors."""

import numpy as np
import pytest

import clew
from clew import nn
from clew.autograd import gradcheck, gradgradcheck
from clew.nn import functional as F

COUNTS = [3, 1, 5, 2]


def rows(*tail, dtype=clew.float64, counts=COUNTS, seed=0):
    clew.manual_seed(seed)
    return [clew.randn(n, *tail, dtype=dtype) for n in counts]


def same(ragged, dense, atol=1e-10):
    got = ragged.unbind()
    assert len(got) == len(dense)
    for a, b in zip(got, dense, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=atol)


def of(values):
    return clew.nested.nested_tensor_from_jagged(
        values, clew.tensor(np.concatenate([[0], np.cumsum(COUNTS)]))
    )


ROW_WISE = {
    "transpose": (lambda x: x.transpose(-1, -2), (4, 3)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), (4,)),
    "unflatten": (lambda x: x.unflatten(-1, (2, 3)), (6,)),
    "heads": (lambda x: x.unflatten(-1, (2, 3)).transpose(-2, -3), (6,)),
    "chunk": (lambda x: x.chunk(2, -1)[1], (6,)),
    "split": (lambda x: x.split([1, 3], -1)[1], (4,)),
    "flip": (lambda x: x.flip(-1), (4,)),
    "linear": (lambda x: F.linear(x, WEIGHT, BIAS), (4,)),
    "matmul": (lambda x: x @ WEIGHT.t(), (4,)),
    "layer_norm": (lambda x: F.layer_norm(x, (4,), BIAS[:4], BIAS[:4]), (4,)),
    "rms_norm": (lambda x: F.rms_norm(x, (4,), BIAS[:4]), (4,)),
    "softmax of features": (lambda x: x.softmax(-1), (4,)),
    "log_softmax of features": (lambda x: F.log_softmax(x, -1), (4,)),
    "glu": (lambda x: F.glu(x, -1), (4,)),
    "cumsum of features": (lambda x: x.cumsum(-1), (4,)),
    "gelu": (lambda x: F.gelu(x) * 2 + 1, (4,)),
    "flatten": (lambda x: x.flatten(-2, -1), (4, 3)),
}
clew.manual_seed(1)
WEIGHT, BIAS = clew.randn(5, 4, dtype=clew.float64), clew.randn(5, dtype=clew.float64)


@pytest.mark.parametrize("name", ROW_WISE)
def test_each_row_gets_what_it_would_get_alone(name):
    fn, tail = ROW_WISE[name]
    parts = rows(*tail)
    same(fn(clew.nested.as_nested_tensor(parts)), [fn(p) for p in parts])


@pytest.mark.parametrize("name", ROW_WISE)
def test_derivatives(name):
    fn, tail = ROW_WISE[name]
    values = clew.cat(rows(*tail)).requires_grad_()
    assert gradcheck(lambda v: fn(of(v)).values(), [values])
    assert gradgradcheck(lambda v: fn(of(v)).values(), [values])


ALONG = {
    "softmax": lambda x, d: x.softmax(d),
    "log_softmax": lambda x, d: F.log_softmax(x, d),
    "cumsum": lambda x, d: x.cumsum(d),
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d),
    "amax": lambda x, d: x.amax(d),
}


@pytest.mark.parametrize("name", ALONG)
def test_along_the_ragged_dim(name):
    fn = ALONG[name]
    parts = rows(4)
    got = fn(clew.nested.as_nested_tensor(parts), 1)
    want = [fn(p, 0) for p in parts]
    same(got, want) if got.is_nested else same(got, clew.stack(want))
    values = clew.cat(parts).requires_grad_()

    def dense(v):
        y = fn(of(v), 1)
        return y.values() if y.is_nested else y

    assert gradcheck(dense, [values])
    assert gradgradcheck(dense, [values])


def test_embedding_and_dropout():
    table = clew.randn(10, 4)
    index = [clew.randint(0, 10, (n,)) for n in COUNTS]
    same(F.embedding(clew.nested.as_nested_tensor(index), table), [table[i] for i in index])
    x = clew.nested.as_nested_tensor(rows(4))
    dropped = F.dropout(x, 0.5)
    kept = dropped.values() != 0
    np.testing.assert_allclose(dropped.values()[kept].numpy(), 2 * x.values()[kept].numpy())
    assert F.dropout(x, 0.5, training=False).values().equal(x.values())


def test_cat_stack_and_batches_of_rows():
    a, b = rows(4), rows(4, seed=2)
    x, y = map(clew.nested.as_nested_tensor, (a, b))
    same(clew.cat([x, y], -1), [clew.cat([p, q], -1) for p, q in zip(a, b, strict=True)])
    same(clew.cat([x, y]), [*a, *b])
    same(x[1:3], a[1:3])
    assert x[2].equal(a[2])


@pytest.mark.parametrize("causal", [False, True])
def test_attention_stays_in_its_row(causal):
    q, k, v = (rows(2, 6, seed=s) for s in range(3))

    def heads(parts):
        return clew.nested.as_nested_tensor(parts).transpose(1, 2)

    got = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=causal)
    want = [
        F.scaled_dot_product_attention(
            *(t.transpose(0, 1).unsqueeze(0) for t in one), is_causal=causal
        ).squeeze(0)
        for one in zip(q, k, v, strict=True)
    ]
    same(got, want)
    values = [clew.cat(p).requires_grad_() for p in (q, k, v)]

    def dense(*vs):
        made = F.scaled_dot_product_attention(
            *(of(t).transpose(1, 2) for t in vs), is_causal=causal
        )
        return made.values()

    assert gradcheck(dense, values)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_layer(norm_first):
    clew.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=clew.float64
    )
    parts = rows(8)
    x = clew.nested.as_nested_tensor(parts).requires_grad_()
    got = layer(x)
    same(got, [layer(p.unsqueeze(0)).squeeze(0) for p in parts])
    got.values().square().sum().backward()
    grads = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    sum(layer(p.unsqueeze(0)).square().sum() for p in parts).backward()
    for g, p in zip(grads, layer.parameters(), strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-8, atol=1e-10)


def test_an_encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, dtype=clew.float64)
    model = nn.TransformerEncoder(layer, 2)
    for training in (True, False):
        model.train(training)
        parts = rows(8)
        same(
            model(clew.nested.as_nested_tensor(parts)),
            [model(p.unsqueeze(0)).squeeze(0) for p in parts],
        )


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind):
    model = getattr(nn, kind)(4, 3, 2, batch_first=True, bidirectional=True, dtype=clew.float64)
    parts = rows(4)
    out, last = model(clew.nested.as_nested_tensor(parts))
    alone = [model(p.unsqueeze(0)) for p in parts]
    same(out, [o.squeeze(0) for o, _ in alone])
    last = last[0] if kind == "LSTM" else last
    for k, (_, h) in enumerate(alone):
        h = h[0] if kind == "LSTM" else h
        np.testing.assert_allclose(last[:, k].detach(), h[:, 0].detach(), rtol=1e-8)


def test_packed_sequences_both_ways():
    parts = rows(4)
    x = clew.nested.as_nested_tensor(parts)
    packed = clew.nested.to_packed_sequence(x)
    want = nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.equal(want.data) and packed.batch_sizes.equal(want.batch_sizes)
    same(clew.nested.from_packed_sequence(packed), parts)


def test_collation_in_a_loader():
    samples = [(clew.full((n,), float(n)), n) for n in COUNTS]
    loader = clew.utils.data.DataLoader(samples, 2, collate_fn=clew.nested.collate)
    (x, n), (y, _) = loader
    assert x.offsets().tolist() == [0, 3, 4] and n.tolist() == [3, 1]
    same(y, [s for s, _ in samples[2:]])


def test_losses():
    a, b = rows(4), rows(4, seed=3)
    x, y = map(clew.nested.as_nested_tensor, (a, b))
    np.testing.assert_allclose(
        float(F.mse_loss(x, y)), float(F.mse_loss(clew.cat(a), clew.cat(b))), rtol=1e-12
    )


def test_what_has_no_rule_says_what_to_do():
    x = clew.nested.as_nested_tensor(rows(4))
    for bad in (
        lambda: clew.linalg.svd(x),
        lambda: x.transpose(0, 1),
        lambda: nn.MultiheadAttention(4, 2)(x, x, x),
        lambda: nn.LSTM(4, 3)(x),
        lambda: F.scaled_dot_product_attention(x, x, x),
        lambda: nn.Conv1d(4, 4, 3, dtype=clew.float64)(x),
    ):
        with pytest.raises((RuntimeError, NotImplementedError, ValueError)) as error:
            bad()
        assert len(str(error.value)) > 30


def test_losses_of_each_element():
    a, b = rows(4), rows(4, seed=3)
    x, y = map(clew.nested.as_nested_tensor, (a, b))
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        got = loss(x, y, reduction="none")
        same(got, [loss(p, q, reduction="none") for p, q in zip(a, b, strict=True)])


@pytest.mark.parametrize("sparse", [False, True])
def test_tables_get_gradients_of_ragged_indices(sparse):
    ids = clew.nested.nested_tensor([clew.tensor([1, 2, 1]), clew.tensor([], dtype=clew.int64)])
    factors = clew.nested.nested_tensor([clew.tensor([1.0, 2.0, 3.0]), clew.tensor([])])
    table = nn.Embedding(3, 2, sparse=sparse)
    (table(ids) * factors.unsqueeze(-1)).sum().backward()
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [4, 4], [2, 2]]
    bags = nn.EmbeddingBag(3, 2, mode="sum", sparse=sparse)
    made = bags(ids, per_sample_weights=factors)
    w = bags.weight.detach()
    np.testing.assert_allclose(made[0].detach(), w[1] * 4 + w[2] * 2, rtol=1e-6)
    assert made[1].tolist() == [0, 0]
    made.sum().backward()
    assert bags.weight.grad.to_dense().tolist() == [[0, 0], [4, 4], [2, 2]]


def test_prelu_and_one_hot():
    parts = rows(4)
    x = clew.nested.as_nested_tensor(parts)
    act = nn.PReLU(dtype=clew.float64)
    same(act(x), [act(p) for p in parts])
    slopes = nn.PReLU(4, dtype=clew.float64)
    same(slopes(x.transpose(1, 2)), [slopes(p).t() for p in parts])
    with pytest.raises(RuntimeError, match="one for each place of dim 1"):
        slopes(x)
    same(F.one_hot((x > 0).long()), [F.one_hot((p > 0).long(), 2) for p in parts])
    assert clew.count_nonzero(x > 0, 1).tolist() == [(p > 0).sum(0).tolist() for p in parts]


def test_full_backward_hooks():
    seen = []
    layer = nn.Linear(4, 2, dtype=clew.float64)
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in, grad_out)))
    layer.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2,))
    x = clew.nested.nested_tensor(rows(4), requires_grad=True)
    layer(x).sum().backward()
    want = 2 * layer.weight.detach().sum(0)
    same(x.grad, [want.expand(n, 4) for n in COUNTS])
    np.testing.assert_allclose(layer.bias.grad.numpy(), [22.0, 22.0])
    ((grad_in,), (grad_out,)) = seen[0]
    same(grad_in, [want.expand(n, 4) for n in COUNTS])
    same(grad_out, [clew.full((n, 2), 2.0) for n in COUNTS])


class _Square(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, grad):
        raise AssertionError


def test_gradients_are_not_lost_in_functions_and_checkpoints():
    x = clew.nested.nested_tensor(rows(4), requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"ragged tensors .* give it .values\(\)"):
        _Square.apply(x)
    with pytest.raises(NotImplementedError, match="sparse tensors"):
        _Square.apply(clew.eye(2).to_sparse().requires_grad_())
    checkpoint = clew.utils.checkpoint.checkpoint
    with pytest.raises(NotImplementedError, match=r"CheckpointFunction.apply"):
        checkpoint(lambda t: (t * t).sum(1), x, use_reentrant=True)
    checkpoint(lambda t: (t * t).sum(1), x, use_reentrant=False).sum().backward()
    same(x.grad, [2 * r.detach() for r in x.unbind()])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_states_for_another_number_of_rows(kind):
    layer = getattr(nn, kind)(4, 3, batch_first=True, dtype=clew.float64)
    x = clew.nested.as_nested_tensor(rows(4))
    for count in (len(COUNTS) - 1, len(COUNTS) + 1):
        h = clew.zeros(1, count, 3, dtype=clew.float64)
        with pytest.raises(RuntimeError, match=rf"{kind}: hx must be \(layers, 4, features\)"):
            layer(x, (h, h) if kind == "LSTM" else h)


def test_gradients_of_ragged_parameters_are_clipped():
    x = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(1, 3)], layout=clew.jagged)
    dense = clew.nn.Parameter(clew.ones(4))
    ragged = clew.nn.Parameter(x)
    clip = clew.nn.utils
    ((ragged * ragged).sum() + dense.sum()).backward()
    assert clip.clip_grad_norm_([ragged, dense], 1.0).item() == pytest.approx(40**0.5)
    np.testing.assert_allclose(ragged.grad.values().numpy(), 2 / 40**0.5, rtol=1e-5)
    np.testing.assert_allclose(dense.grad.numpy(), 1 / 40**0.5, rtol=1e-5)
    clip.clip_grad_value_([ragged, dense], 0.1)
    assert ragged.grad.values().max().item() == pytest.approx(0.1)
    assert clip.clip_grad_norm_(ragged, 1.0).item() == pytest.approx(0.3)


def test_modules_with_ragged_parameters_change_dtype():
    model = clew.nn.Module()
    rows = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(1, 3)], layout=clew.jagged)
    model.rows = clew.nn.Parameter(rows)
    model.to("cpu").double()
    assert model.rows.dtype == model.rows.values().dtype == clew.float64
    (model.rows * 2).sum().backward()
    assert model.rows.grad.values().tolist() == [[2.0] * 3] * 3
    with pytest.raises(RuntimeError, match="data: assigned data must have the elements"):
        model.rows.data = clew.ones(2, 2, 3)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("given", [False, True])
def test_recurrent_layers_pass_over_empty_rows(kind, given):
    clew.manual_seed(0)
    model = kind(4, 5, num_layers=2, batch_first=True, bidirectional=True)
    rows = [clew.randn(n, 4) for n in (3, 0, 2, 0)]
    states = [clew.randn(4, 4, 5) for _ in range(2 if kind is nn.LSTM else 1)]
    if not given:
        states = [clew.zeros_like(s) for s in states]

    def packed(parts):
        return tuple(parts) if kind is nn.LSTM else parts[0]

    leaves = [row.clone().requires_grad_() for row in rows]
    x = clew.nested.as_nested_tensor(leaves, layout=clew.jagged)
    out, last = model(x, packed(states) if given else None)
    last = last if kind is nn.LSTM else (last,)
    assert out._rows.counts == [3, 0, 2, 0] and out.values().shape == (5, 10)
    out.values().sin().sum().backward()
    for i, row in enumerate(rows):
        if not len(row):
            for got, want in zip(last, states):
                assert got[:, i].tolist() == want[:, i].tolist()
            assert leaves[i].grad.shape == (0, 4)
            continue
        leaf = row.clone().requires_grad_()
        own, ends = model(leaf[None], packed([s[:, i : i + 1].contiguous() for s in states]))
        ends = ends if kind is nn.LSTM else (ends,)
        clew.testing.assert_close(out.unbind()[i], own[0])
        for got, want in zip(last, ends):
            clew.testing.assert_close(got[:, i], want[:, 0])
        own.sin().sum().backward()
        clew.testing.assert_close(leaves[i].grad, leaf.grad)


def test_recurrent_layers_over_empty_rows_alone():
    x = clew.nested.nested_tensor([clew.ones(0, 4)] * 2, layout=clew.jagged)
    model = nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True, proj_size=3)
    for batch, count in ((x, 2), (x[[]], 0)):
        out, (h, c) = model(batch)
        assert out.size(0) == count and out.values().shape == (0, 6)
        assert h.shape == (4, count, 3) and c.shape == (4, count, 5)
    with pytest.raises(RuntimeError, match="a column for each row"):
        nn.GRU(4, 5, batch_first=True)(x, clew.ones(1, 1, 5))


NO_ROWS = clew.nested.nested_tensor([clew.ones(3, 4)])[1:].transpose(1, 2)


@pytest.mark.parametrize(
    ("call", "channels", "places"),
    [
        (clew.nn.Conv1d(4, 5, 3, padding=1), 5, None),
        (clew.nn.ConvTranspose1d(4, 5, 3), 5, None),
        (clew.nn.MaxPool1d(2), 4, None),
        (clew.nn.AvgPool1d(2), 4, None),
        (clew.nn.AdaptiveAvgPool1d(2), 4, 2),
        (clew.nn.AdaptiveMaxPool1d(2), 4, 2),
        (clew.nn.GroupNorm(2, 4), 4, None),
        (clew.nn.InstanceNorm1d(4), 4, None),
        (clew.nn.BatchNorm1d(4), 4, None),
        (clew.nn.Dropout1d(0.5), 4, None),
    ],
)
def test_batches_without_rows(call, channels, places):
    made = call(NO_ROWS)
    if places:
        assert tuple(made.shape) == (0, channels, places)
    else:
        assert made.is_nested and made.unbind() == ()
        assert made.dim() == 3 and made.size(1) == channels


def test_probabilities_without_rows():
    rows = clew.nested.nested_tensor([clew.ones(3)])[1:]
    assert tuple(clew.multinomial(rows, 2).shape) == (0, 2)


def test_losses_and_prelu_inside_autocast_choose_the_dtypes_of_dense_ones():
    rows = [clew.randn(n, 4) for n in (3, 1)]
    x = clew.nested.nested_tensor(rows).transpose(1, 2)
    classes = clew.nested.nested_tensor([clew.arange(n) for n in (3, 1)])
    low, slopes = clew.bfloat16, clew.tensor([0.1])
    with clew.autocast("cpu", dtype=low):
        loss = F.cross_entropy(x.to(low), classes)
        want = F.cross_entropy(clew.cat(rows).to(low), clew.tensor([0, 1, 2, 0]))
        assert loss.dtype is want.dtype is clew.float32
        clew.testing.assert_close(loss, want)
        got = F.prelu(x, slopes)
        assert got.dtype is F.prelu(rows[0], slopes).dtype is low
