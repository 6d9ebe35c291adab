"""RNN, LSTM, GRU against loops in NumPy; packed sequences; cells; errors."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn
from clew.nn.utils import rnn as R
from samples import sigmoid

D = clew.float64
rng = np.random.default_rng(2)
t = clew.tensor


def step(kind, x, state, p):
    w_ih, w_hh, b_ih, b_hh = p
    a, b = x @ w_ih.T + b_ih, state[0] @ w_hh.T + b_hh
    if kind == "RNN":
        return (np.tanh(a + b),)
    if kind == "LSTM":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
    r, z = sigmoid(ar + br), sigmoid(az + bz)
    n = np.tanh(an + r * bn)
    return ((1 - z) * n + z * state[0],)


def params(m, layer, back):
    end = f"_l{layer}" + ("_reverse" if back else "")
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    zero = np.zeros(m.weight_ih_l0.shape[0])
    return [getattr(m, n + end).detach().numpy() if hasattr(m, n + end) else zero for n in names]


def reference(kind, m, x, state):
    """x: (L, features) of one sequence; state: per layer and direction a tuple."""
    finals = []
    for layer in range(m.num_layers):
        sides = []
        for back in range(2 if m.bidirectional else 1):
            s = state[len(finals)]
            outs = []
            for row in x[::-1] if back else x:
                s = step(kind, row, s, params(m, layer, back))
                outs.append(s[0])
            finals.append(s)
            sides.append(np.array(outs[::-1] if back else outs))
        x = np.concatenate(sides, -1)
    return x, finals


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [False, True])
def test_against_a_loop(kind, layers, both, bias, batch_first):
    m = getattr(nn, kind)(
        3, 4, layers, bias=bias, bidirectional=both, batch_first=batch_first, dtype=D
    )
    x = rng.normal(size=(5, 2, 3))
    n = layers * (2 if both else 1)
    start = [rng.normal(size=(n, 2, 4)) for _ in range(2 if kind == "LSTM" else 1)]
    hx = tuple(t(s) for s in start)
    given = t(x.swapaxes(0, 1).copy() if batch_first else x)
    out, h = m(given, hx if kind == "LSTM" else hx[0])
    out = out.transpose(0, 1) if batch_first else out
    h = h if kind == "LSTM" else (h,)
    for k in range(2):
        want, finals = reference(
            kind, m, x[:, k], [tuple(s[j, k] for s in start) for j in range(n)]
        )
        np.testing.assert_allclose(out[:, k].detach().numpy(), want, atol=1e-12)
        for j in range(n):
            for got, f in zip(h, finals[j], strict=True):
                np.testing.assert_allclose(got[j, k].detach().numpy(), f, atol=1e-12)
    single, hs = m(t(x[:, 0].copy()), None)
    whole, _ = m(given)
    whole = whole.transpose(0, 1) if batch_first else whole
    np.testing.assert_allclose(single.detach().numpy(), whole[:, 0].detach().numpy(), atol=1e-12)
    assert (hs[0] if kind == "LSTM" else hs).shape == (n, 4)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("sorted_already", [True, False])
def test_packed_sequences_are_sequences_alone(kind, sorted_already):
    lengths = [5, 3, 3, 1] if sorted_already else [3, 5, 1, 3]
    m = getattr(nn, kind)(3, 4, 2, bidirectional=True, dtype=D)
    x = clew.randn(6, 4, 3, dtype=D, requires_grad=True)
    h0 = clew.randn(4, 4, 4, dtype=D)
    packed = R.pack_padded_sequence(x, lengths, enforce_sorted=sorted_already)
    assert packed.batch_sizes.tolist() == [4, 3, 3, 1, 1]
    out, h = m(packed, (h0, h0) if kind == "LSTM" else h0)
    assert isinstance(out, R.PackedSequence)
    padded, sizes = R.pad_packed_sequence(out, padding_value=-7.0, total_length=6)
    assert sizes.tolist() == lengths and padded.shape == (6, 4, 8)
    h = h if kind == "LSTM" else (h,)
    for k, n in enumerate(lengths):
        s = h0[:, k].contiguous()
        alone, ha = m(x[:n, k], (s, s) if kind == "LSTM" else s)
        ha = ha if kind == "LSTM" else (ha,)
        np.testing.assert_allclose(
            padded[:n, k].detach().numpy(), alone.detach().numpy(), atol=1e-12
        )
        assert bool((padded[n:, k] == -7).all())
        for a, b in zip(h, ha, strict=True):
            np.testing.assert_allclose(a[:, k].detach().numpy(), b.detach().numpy(), atol=1e-12)
    out.data.sum().backward()
    for k, n in enumerate(lengths):
        assert x.grad[:n, k].any() and not x.grad[n:, k].any()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_cell_is_a_layer_of_one_step(kind):
    cell = getattr(nn, kind + "Cell")(3, 4, dtype=D)
    layer = getattr(nn, kind)(3, 4, dtype=D)
    layer.load_state_dict({k + "_l0": v for k, v in cell.state_dict().items()})
    x = clew.randn(2, 3, dtype=D)
    got = cell(x)
    _, want = layer(x.unsqueeze(0))
    for a, b in zip(
        got if kind == "LSTM" else (got,), want if kind == "LSTM" else (want,), strict=True
    ):
        np.testing.assert_allclose(a.detach().numpy(), b[0].detach().numpy(), atol=1e-12)
    alone = cell(x[0])
    assert (alone[0] if kind == "LSTM" else alone).shape == (4,)


def test_projection_and_dropout():
    m = nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True)
    out, (h, c) = m(clew.ones(4, 2, 3))
    assert out.shape == (4, 2, 4) and h.shape == (4, 2, 2) and c.shape == (4, 2, 5)
    assert m.weight_hr_l1_reverse.shape == (2, 5)
    m = nn.GRU(3, 4, 2, dropout=0.5)
    x = clew.ones(3, 2, 3)
    assert not clew.equal(m(x)[0], m(x)[0])
    assert clew.equal(m.eval()(x)[0], m(x)[0])
    with pytest.warns(UserWarning, match="num_layers=1"):
        nn.GRU(3, 4, dropout=0.5)


def test_names_and_weights():
    m = nn.LSTM(3, 4, 2, bidirectional=True)
    assert list(m.state_dict()) == m._flat_weights_names
    assert len(m.all_weights) == 4 and m.all_weights[0][0] is m.weight_ih_l0
    assert m.flatten_parameters() is None
    bound = 1 / 2
    assert all(p.abs().max() <= bound for p in m.parameters())
    assert repr(nn.GRU(3, 4, 2, False, True, 0.5, True)) == (
        "GRU(3, 4, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)"
    )


def test_padding_and_packing():
    a, b, c = (clew.arange(float(n)).unsqueeze(1) for n in (3, 1, 2))
    padded = R.pad_sequence([a, b, c], padding_value=9.0)
    assert padded.squeeze(-1).tolist() == [[0, 0, 0], [1, 9, 1], [2, 9, 9]]
    left = R.pad_sequence([a, b], True, 9.0, "left").squeeze(-1)
    assert left.tolist() == [[0, 1, 2], [9, 9, 0]]
    back = R.unpad_sequence(padded, t([3, 1, 2]))
    assert [s.squeeze(-1).tolist() for s in back] == [[0, 1, 2], [0], [0, 1]]
    packed = R.pack_sequence([a, b, c], enforce_sorted=False)
    assert [s.squeeze(-1).tolist() for s in R.unpack_sequence(packed)] == [[0, 1, 2], [0], [0, 1]]
    assert packed.sorted_indices.tolist() == [0, 2, 1] and packed.double().data.dtype == D
    assert packed.unsorted_indices.tolist() == [0, 2, 1] and not packed.is_cuda
    assert packed.to(clew.float32) is packed
    for bad in (
        lambda: R.pack_padded_sequence(clew.ones(3, 2, 1), [1, 2]),
        lambda: R.pack_padded_sequence(clew.ones(3, 2, 1), [2, 0]),
        lambda: R.pack_padded_sequence(clew.ones(3, 2, 1), [2]),
        lambda: R.pack_padded_sequence(clew.ones(3, 2, 1), [9, 2]),
        lambda: R.pad_sequence([]),
        lambda: R.pad_sequence([clew.ones(2, 1), clew.ones(2, 2)]),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.raises(ValueError, match="total_length"):
        R.pad_packed_sequence(packed, total_length=1)


@pytest.mark.parametrize("dtype", [clew.int64, clew.bool, clew.float16, clew.complex64])
@pytest.mark.parametrize("longer", [None, 3])
def test_padding_keeps_the_dtype(dtype, longer):
    packed = R.pack_sequence([clew.tensor([1, 1]).to(dtype), clew.tensor([1]).to(dtype)])
    padded, _ = R.pad_packed_sequence(packed, batch_first=True, total_length=longer)
    assert padded.dtype is dtype
    assert padded.to(clew.int64)[:, :2].tolist() == [[1, 1], [1, 0]]
    assert R.unpack_sequence(packed)[1].dtype is dtype


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        (lambda: nn.LSTM(3, 4)(clew.ones(5, 2, 4)), RuntimeError, "Expected 3, got 4"),
        (lambda: nn.LSTM(3, 4)(clew.ones(5)), ValueError, "2D or 3D"),
        (lambda: nn.LSTM(3, 4)(clew.ones(0, 2, 3)), RuntimeError, "larger than 0"),
        (lambda: nn.GRU(3, 4)(clew.ones(5, 2, 3), clew.ones(2, 2, 4)), RuntimeError, "(1, 2, 4)"),
        (lambda: nn.GRU(3, 4)(clew.ones(5, 3), clew.ones(1, 1, 4)), RuntimeError, "2-D"),
        (lambda: nn.GRU(3, 4)(clew.ones(5, 2, 3, dtype=D)), ValueError, "dtype"),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
        (lambda: nn.RNN(3, 4, nonlinearity="no"), ValueError, "Unknown nonlinearity"),
        (lambda: nn.LSTM(3, 0), ValueError, "hidden_size"),
        (lambda: nn.LSTM(3, 4, 0), ValueError, "num_layers"),
        (lambda: nn.GRU(2, 4, 2**70), ValueError, "GRU: num_layers must be at most"),
        (lambda: nn.LSTM(3, 4, dropout=2), ValueError, "[0, 1]"),
        (lambda: nn.LSTMCell(3, 4)(clew.ones(2, 4)), RuntimeError, "got 4 expected 3"),
        (lambda: nn.LSTMCell(3, 4)(clew.ones(2, 2, 3)), ValueError, "1D or 2D"),
        (lambda: nn.GRUCell(3, 4)(clew.ones(2, 3), clew.ones(1, 4)), RuntimeError, "(2, 4)"),
    ],
)
def test_mistakes(what, error, text):
    with pytest.raises(error) as caught:
        what()
    assert text in str(caught.value)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_threads_share_the_batch(kind):
    """Sequences are cut among threads; the result stays the same bits for one thread count."""
    m = getattr(nn, kind)(40, 96, bidirectional=True)
    x = clew.randn(30, 21, 40)
    packed = R.pack_padded_sequence(x, [30 - k for k in range(21)])
    before, found = clew.get_num_threads(), []
    try:
        for threads in (1, 3, 3):
            clew.set_num_threads(threads)
            for given in (x, packed):
                m.zero_grad()
                out = m(given)[0]
                out = out.data if given is packed else out
                out.square().sum().backward()
                found.append([out, *(p.grad for p in m.parameters())])
    finally:
        clew.set_num_threads(before)
    for one, three, again in zip(*(found[2 * k] + found[2 * k + 1] for k in range(3)), strict=True):
        assert clew.equal(three, again)
        scale = one.abs().max().item()
        assert clew.allclose(one, three, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_half_precision_computes_in_float(kind):
    m = getattr(nn, kind)(3, 4, 2)
    x = clew.randn(5, 2, 3)
    want = m(x)[0]
    m.bfloat16()
    out, h = m(x.bfloat16())
    last = h[0] if kind == "LSTM" else h
    assert out.dtype == clew.bfloat16 and last.dtype == clew.bfloat16
    assert clew.allclose(out.float(), want, atol=0.05)
    out.sum().backward()
    assert all(p.grad.dtype == clew.bfloat16 for p in m.parameters())
    cell = getattr(nn, kind + "Cell")(3, 4, dtype=clew.bfloat16)
    got = cell(x[0].bfloat16())
    assert (got[0] if kind == "LSTM" else got).dtype == clew.bfloat16


def test_states_may_be_detached_in_place():
    m = nn.LSTM(3, 4)
    h = None
    for _ in range(2):
        out, h = m(clew.ones(2, 2, 3), h)
        out.sum().backward()
        for s in h:
            s.detach_()
    rnn = nn.GRU(3, 4, 2, bidirectional=True)
    rnn(clew.ones(2, 2, 3))[1].detach_()


@pytest.mark.parametrize("kind", ["RNN", "GRU"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_the_output_may_be_written_to(kind, batch_first):
    m = getattr(nn, kind)(3, 4, batch_first=batch_first, dtype=D)
    x = clew.randn(5, 2, 3, dtype=D)
    want = clew.autograd.grad((m(x)[0] * 2).square().sum(), list(m.parameters()))
    got = clew.autograd.grad(m(x)[0].mul_(2).square().sum(), list(m.parameters()))
    assert all(clew.equal(a, b) for a, b in zip(want, got, strict=True))


def test_weights_that_are_not_parameters():
    m = nn.utils.parametrizations.weight_norm(nn.LSTM(3, 4), "weight_hh_l0")
    x = clew.randn(5, 2, 3)
    plain = nn.LSTM(3, 4)
    plain.load_state_dict({k: getattr(m, k) for k in plain.state_dict()})
    assert clew.allclose(m(x)[0], plain(x)[0])
    m(x)[0].sum().backward()
    assert all(p.grad is not None for p in m.parameters())
    zeros = {k: clew.zeros_like(p) for k, p in plain.named_parameters()}
    assert not clew.func.functional_call(plain, zeros, (x,))[0].any()


def test_gradients_of_each_output_alone():
    m = nn.LSTM(3, 4, dtype=D)
    x = clew.randn(5, 2, 3, dtype=D, requires_grad=True)
    h = [clew.randn(1, 2, 4, dtype=D, requires_grad=True) for _ in range(2)]
    for pick in (lambda o, s: o[:2], lambda o, s: s[0], lambda o, s: s[1]):

        def f(x, h, c, pick=pick):
            return pick(*m(x, (h, c)))

        assert clew.autograd.gradcheck(f, (x, *h))
        assert clew.autograd.gradgradcheck(f, (x, *h))
    cell = nn.LSTMCell(3, 4, dtype=D)
    for k in range(2):
        assert clew.autograd.gradcheck(lambda x, k=k: cell(x)[k], (x[0].detach().requires_grad_(),))


def test_vmap_and_per_sample_gradients():
    from clew.func import grad, vmap

    m = nn.GRU(3, 4, dtype=D)
    x = clew.randn(3, 5, 2, 3, dtype=D)
    params = dict(m.named_parameters())

    def loss(p, x):
        return clew.func.functional_call(m, p, (x,))[0].square().sum()

    each = vmap(grad(loss), (None, 0))(params, x)
    for k in range(3):
        alone = grad(loss)(params, x[k])
        for name in params:
            assert clew.allclose(each[name][k], alone[name])


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_flat_weights_can_be_set(kind):
    layer, x = kind(2, 3), clew.ones(4, 1, 2)
    expected = layer(x)[0]
    names = layer._flat_weights_names
    layer._flat_weights = [getattr(layer, n) for n in names]  # those it has: they stay named
    layer.weight_ih_l0 = nn.Parameter(layer.weight_ih_l0.detach() * 2)
    assert layer._flat_weights[0] is layer.weight_ih_l0
    assert not clew.allclose(layer(x)[0], expected)
    layer.weight_ih_l0 = nn.Parameter(layer.weight_ih_l0.detach() / 2)
    # Others, as a wrapper that drops weights makes them.
    scale = clew.tensor(0.5, requires_grad=True)
    layer._flat_weights = [w * scale for w in layer._flat_weights]
    halved = layer(x)[0]
    assert not clew.allclose(halved, expected)
    halved.sum().backward()
    assert scale.grad.item() != 0 and len(list(layer.parameters())) == 4
    assert layer._flat_weights[0] is not layer.weight_ih_l0
    layer.weight_ih_l0 = nn.Parameter(layer.weight_ih_l0.detach())
    assert layer._flat_weights[0] is layer.weight_ih_l0  # setting one by name replaces it
    layer._flat_weights = [getattr(layer, n) for n in names]
    assert clew.allclose(layer(x)[0], expected)
    with pytest.raises(ValueError, match="expected 4 weights"):
        layer._flat_weights = []
    assert layer._all_weights == [names]
