"""MultiheadAttention and the transformer against plain NumPy; masks in every form."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn

D = clew.float64
rng = np.random.default_rng(3)
t = clew.tensor
pytestmark = pytest.mark.filterwarnings("ignore")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def reference(m, q, k, v, mask=None):
    """One sample: q (L, E), k, v (S, E); mask (heads, L, S) is added."""
    w, b = m.in_proj_weight.detach().numpy(), m.in_proj_bias.detach().numpy()
    e, h = m.embed_dim, m.num_heads
    q, k, v = (
        x @ w[i * e : (i + 1) * e].T + b[i * e : (i + 1) * e] for i, x in enumerate((q, k, v))
    )
    heads = [np.split(x, h, -1) for x in (q, k, v)]
    outs, weights = [], []
    for i in range(h):
        score = heads[0][i] @ heads[1][i].T / np.sqrt(e // h)
        if mask is not None:
            score = score + mask[i]
        weights.append(softmax(score))
        outs.append(weights[-1] @ heads[2][i])
    out = np.concatenate(outs, -1) @ m.out_proj.weight.detach().numpy().T
    return out + m.out_proj.bias.detach().numpy(), np.array(weights)


def made(**kw):
    m = nn.MultiheadAttention(6, 2, dtype=D, **kw)
    with clew.no_grad():
        for p in m.parameters():
            p.copy_(t(rng.normal(size=tuple(p.shape))))
    return m


MASKS = {
    "none": (None, None),
    "bool": (np.triu(np.ones((3, 4), bool), 1), None),
    "float": (rng.normal(size=(3, 4)), None),
    "heads": (rng.normal(size=(4, 3, 4)), None),
    "padding": (None, np.array([[0, 0, 1, 0], [0, 1, 1, 1]], bool)),
    "both": (np.triu(np.ones((3, 4), bool), 2), np.array([[0, 0, 1, 0], [0, 0, 1, 1]], bool)),
    "float padding": (None, rng.normal(size=(2, 4))),
}


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("which", MASKS)
def test_attention(batch_first, need_weights, which):
    m = made(batch_first=batch_first)
    q, k, v = rng.normal(size=(2, 3, 6)), rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 4, 6))
    mask, padding = MASKS[which]

    def place(x):
        return t(x) if batch_first else t(x).transpose(0, 1)

    out, weights = m(
        place(q),
        place(k),
        place(v),
        key_padding_mask=None if padding is None else t(padding),
        attn_mask=None if mask is None else t(mask),
        need_weights=need_weights,
        average_attn_weights=False,
    )
    out = out if batch_first else out.transpose(0, 1)
    assert (weights is not None) == need_weights
    for n in range(2):
        add = np.zeros((2, 3, 4))
        for part in (mask if mask is None or mask.ndim == 2 else mask[2 * n : 2 * n + 2],
                     None if padding is None else padding[n]):  # fmt: skip
            if part is not None:
                add = add + (np.where(part, -np.inf, 0) if part.dtype == bool else part)
        want, w = reference(m, q[n], k[n], v[n], add)
        np.testing.assert_allclose(out[n].detach().numpy(), want, atol=1e-10)
        if need_weights:
            np.testing.assert_allclose(weights[n].detach().numpy(), w, atol=1e-10)


def test_unbatched_mean_weights_and_causal():
    m = made()
    x = rng.normal(size=(4, 6))
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=D)
    out, weights = m(t(x), t(x), t(x), attn_mask=causal)
    want, w = reference(m, x, x, x, np.broadcast_to(causal.numpy(), (2, 4, 4)))
    np.testing.assert_allclose(out.detach().numpy(), want, atol=1e-10)
    np.testing.assert_allclose(weights.detach().numpy(), w.mean(0), atol=1e-10)
    fast, none = m(t(x), t(x), t(x), attn_mask=causal, is_causal=True, need_weights=False)
    assert none is None
    np.testing.assert_allclose(fast.detach().numpy(), want, atol=1e-10)
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        m(t(x), t(x), t(x), is_causal=True)


def test_extra_keys_and_other_widths():
    m = made(add_zero_attn=True, add_bias_kv=True)
    x = rng.normal(size=(3, 6))
    _, weights = m(t(x), t(x), t(x), attn_mask=t(np.zeros((3, 3), bool)))
    assert weights.shape == (3, 5)
    m = nn.MultiheadAttention(6, 3, kdim=4, vdim=5, bias=False)
    assert sorted(m.state_dict()) == [
        "k_proj_weight", "out_proj.weight", "q_proj_weight", "v_proj_weight",
    ]  # fmt: skip
    out, _ = m(clew.ones(2, 1, 6), clew.ones(3, 1, 4), clew.ones(3, 1, 5))
    assert out.shape == (2, 1, 6)


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        (lambda: nn.MultiheadAttention(5, 2), AssertionError, "divisible by num_heads"),
        (lambda: nn.MultiheadAttention(0, 2), ValueError, "greater than 0"),
        (lambda: made()(*[clew.ones(1, 2, 3, 6)] * 3), AssertionError, "4-D query"),
        (lambda: made()(*[clew.ones(2, 3, 4)] * 3), AssertionError, "embedding dimension of 6"),
        (
            lambda: made()(*[clew.ones(3, 2, 6, dtype=D)] * 3, attn_mask=clew.ones(2, 2, dtype=D)),
            RuntimeError,
            "should be (3, 3)",
        ),
        (
            lambda: made()(*[clew.ones(3, 2, 6)] * 3, key_padding_mask=clew.ones(3)),
            AssertionError,
            "2-D but found 1-D",
        ),
        (
            lambda: made()(
                *[clew.ones(3, 6, dtype=D)] * 3, attn_mask=clew.ones(3, 3, dtype=clew.int64)
            ),
            AssertionError,
            "only bool and floating",
        ),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="no"), RuntimeError, "relu/gelu"),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 8)(clew.ones(2, 3, 4), clew.ones(2, 2, 4)),
            RuntimeError,
            "batch number",
        ),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 8)(clew.ones(2, 3, 4), clew.ones(2, 3, 5)),
            RuntimeError,
            "feature number",
        ),
    ],
)
def test_mistakes(what, error, text):
    with pytest.raises(error) as caught:
        what()
    assert text in str(caught.value)


def layer_norm(x, m):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + m.eps) * m.weight.detach().numpy() + m.bias.detach().numpy()


def linear(x, m):
    return x @ m.weight.detach().numpy().T + m.bias.detach().numpy()


@pytest.mark.parametrize("norm_first", [False, True])
def test_layers_against_numpy(norm_first):
    kw = {"dropout": 0.0, "norm_first": norm_first, "dtype": D, "batch_first": True}
    x, mem = rng.normal(size=(3, 6)), rng.normal(size=(5, 6))
    enc = nn.TransformerEncoderLayer(6, 2, 8, **kw)

    def feed(m, z):
        return linear(np.maximum(linear(z, m.linear1), 0), m.linear2)

    def own(z):
        return reference(enc.self_attn, z, z, z)[0]

    if norm_first:
        y = x + own(layer_norm(x, enc.norm1))
        want = y + feed(enc, layer_norm(y, enc.norm2))
    else:
        y = layer_norm(x + own(x), enc.norm1)
        want = layer_norm(y + feed(enc, y), enc.norm2)
    np.testing.assert_allclose(enc(t(x)[None])[0].detach().numpy(), want, atol=1e-10)
    np.testing.assert_allclose(enc(t(x)).detach().numpy(), want, atol=1e-10)

    dec = nn.TransformerDecoderLayer(6, 2, 8, **kw)

    def own(z):
        return reference(dec.self_attn, z, z, z)[0]

    def over(z):
        return reference(dec.multihead_attn, z, mem, mem)[0]

    if norm_first:
        y = x + own(layer_norm(x, dec.norm1))
        y = y + over(layer_norm(y, dec.norm2))
        want = y + feed(dec, layer_norm(y, dec.norm3))
    else:
        y = layer_norm(x + own(x), dec.norm1)
        y = layer_norm(y + over(y), dec.norm2)
        want = layer_norm(y + feed(dec, y), dec.norm3)
    got = dec(t(x)[None], t(mem)[None])[0]
    np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-10)


def test_a_causal_encoder_does_not_look_ahead():
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)
    enc = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))
    assert enc.layers[0] is not enc.layers[1]
    x = clew.randn(1, 5, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    first = enc(x, mask)
    y = x.clone()
    y[0, 4] += 1
    second = enc(y, mask, is_causal=True)
    np.testing.assert_allclose(
        first[0, :4].detach().numpy(), second[0, :4].detach().numpy(), atol=1e-6
    )
    assert not np.allclose(first[0, 4].detach().numpy(), second[0, 4].detach().numpy())
    hidden = t([[False, False, False, False, True]])
    np.testing.assert_allclose(
        enc(x, src_key_padding_mask=hidden)[0, :4].detach().numpy(),
        enc(y, src_key_padding_mask=hidden)[0, :4].detach().numpy(),
        atol=1e-6,
    )


def test_an_encoder_in_evaluation_gives_zeros_for_padding():
    x = clew.randn(2, 4, 4)
    end = t([[False, False, True, True], [True, True, True, True]])
    begin = t([[True, False, False, False], [False, False, False, True]])

    def encoder(norm=None, options=(), **layer):
        layer = {"dropout": 0.0, "batch_first": True, "bias": True, **layer}
        one = nn.TransformerEncoderLayer(4, layer.pop("nhead", 2), 8, **layer)
        return nn.TransformerEncoder(one, 2, norm, **dict(options)).eval()

    def zeros(model, padding=end, mask=None, x=x):
        return (model(x, mask, src_key_padding_mask=padding) == 0).all(-1).tolist()

    norm = nn.LayerNorm(4)
    nn.init.constant_(norm.bias, 3.0)
    with clew.no_grad():
        assert zeros(encoder()) == end.tolist()
        added = clew.zeros(2, 4).masked_fill(end, -clew.inf)
        assert zeros(encoder(), added) == end.tolist()
        assert zeros(encoder(), begin) == [[False] * 4] * 2  # not at the end of each row
        assert zeros(encoder(options={"mask_check": False}.items()), begin) == begin.tolist()
        assert (encoder(norm)(x, src_key_padding_mask=end)[1] == 3).all()  # the norm of zeros
        plain = encoder()
        for options in (
            {"options": {"enable_nested_tensor": False}.items()},
            {"norm_first": True},
            {"bias": False},
            {"nhead": 1},
            {"activation": clew.tanh},
        ):
            assert not any(zeros(encoder(**options))[0])
        assert not any(zeros(plain, mask=clew.zeros(4, 4))[0])
        assert not any(zeros(plain.train())[0])
        plain.eval().use_nested_tensor = False
        same = plain(x, src_key_padding_mask=end)[0, :2]
        plain.use_nested_tensor = True
        np.testing.assert_allclose(plain(x, src_key_padding_mask=end)[0, :2].numpy(), same.numpy())
        assert same.isfinite().all()
    assert not any(zeros(encoder())[0])  # a gradient is recorded
    assert zeros(encoder().requires_grad_(False)) == end.tolist()


def test_transformer_masks_and_custom_parts():
    m = nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True)
    src, tgt = clew.randn(2, 3, 4), clew.randn(2, 5, 4)
    mask = m.generate_square_subsequent_mask(5)
    a = m(src, tgt, tgt_mask=mask)
    assert a.shape == (2, 5, 4)
    other = tgt.clone()
    other[:, 4] += 1
    b = m(src, other, tgt_mask=mask, tgt_is_causal=True)
    np.testing.assert_allclose(a[:, :4].detach().numpy(), b[:, :4].detach().numpy(), atol=1e-6)

    class Twice(nn.Module):
        def forward(self, src, **kw):
            return src * 2

    m = nn.Transformer(4, 2, 1, 1, 8, custom_encoder=Twice())
    assert isinstance(m.encoder, Twice) and m(clew.ones(3, 4), clew.ones(2, 4)).shape == (2, 4)
