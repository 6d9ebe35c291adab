"""Samples of convolutions, sliding blocks and attention."""

from __future__ import annotations

import itertools

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, S, each


def _taps(w, out, stride, padding, dilation, in_size):
    """Every (kernel index, output index, input index) whose input lies inside the image."""
    for k in itertools.product(*map(range, w.shape[2:])):
        for p in itertools.product(*map(range, out)):
            i = tuple(
                a * s - q + b * d
                for a, s, q, b, d in zip(p, stride, padding, k, dilation, strict=True)
            )
            if all(0 <= a < n for a, n in zip(i, in_size, strict=True)):
                yield k, p, i


def map_forward(x, w, bias, size, stride, padding, dilation, groups):
    y = np.zeros((x.shape[0], w.shape[0], *size), np.result_type(x, w))
    cig, cog = w.shape[1], w.shape[0] // groups
    for k, p, i in _taps(w, size, stride, padding, dilation, x.shape[2:]):
        for g in range(groups):
            a, b = slice(g * cig, (g + 1) * cig), slice(g * cog, (g + 1) * cog)
            y[(slice(None), b, *p)] += x[(slice(None), a, *i)] @ w[(b, slice(None), *k)].T
    return y if bias is None else y + bias.reshape(-1, *[1] * len(size))


def map_input(y, w, bias, size, stride, padding, dilation, groups):
    cig, cog = w.shape[1], w.shape[0] // groups
    x = np.zeros((y.shape[0], cig * groups, *size), np.result_type(y, w))
    for k, p, i in _taps(w, y.shape[2:], stride, padding, dilation, size):
        for g in range(groups):
            a, b = slice(g * cig, (g + 1) * cig), slice(g * cog, (g + 1) * cog)
            x[(slice(None), a, *i)] += y[(slice(None), b, *p)] @ w[(b, slice(None), *k)]
    return x if bias is None else x + bias.reshape(-1, *[1] * len(size))


def map_weight(y, x, size, stride, padding, dilation, groups):
    cig, cog = x.shape[1] // groups, y.shape[1] // groups
    w = np.zeros((y.shape[1], cig, *size), np.result_type(y, x))
    for k, p, i in _taps(w, y.shape[2:], stride, padding, dilation, x.shape[2:]):
        for g in range(groups):
            a, b = slice(g * cig, (g + 1) * cig), slice(g * cog, (g + 1) * cog)
            w[(b, slice(None), *k)] += y[(slice(None), b, *p)].T @ x[(slice(None), a, *i)]
    return w


def conv(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    nd = w.ndim - 2
    if x.ndim == nd + 1:
        return conv(x[None], w, bias, stride, padding, dilation, groups)[0]
    stride, dilation = each(stride, nd), each(dilation, nd)
    extent = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:], strict=True)]
    if padding == "same":
        left, size = [(e - 1) // 2 for e in extent], x.shape[2:]
    else:
        left = each(0 if padding == "valid" else padding, nd)
        size = [
            (n + 2 * p - e) // s + 1
            for n, p, e, s in zip(x.shape[2:], left, extent, stride, strict=True)
        ]
    return map_forward(x, w, bias, size, stride, left, dilation, groups)


def conv_transpose(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    nd = w.ndim - 2
    if x.ndim == nd + 1:
        return conv_transpose(x[None], w, bias, stride, padding, output_padding, groups, dilation)[
            0
        ]
    stride, padding, extra, dilation = (
        each(v, nd) for v in (stride, padding, output_padding, dilation)
    )
    size = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
        for n, s, p, d, k, e in zip(
            x.shape[2:], stride, padding, dilation, w.shape[2:], extra, strict=True
        )
    ]
    return map_input(x, w, bias, size, stride, padding, dilation, groups)


def convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        return conv_transpose(x, w, bias, stride, padding, output_padding, groups, dilation)
    return conv(x, w, bias, stride, padding, dilation, groups)


def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 3:
        return unfold(x[None], kernel_size, dilation, padding, stride)[0]
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (
        each(v, 2) for v in (kernel_size, dilation, padding, stride)
    )
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    rows = range(0, x.shape[2] - dh * (kh - 1), sh)
    cols = range(0, x.shape[3] - dw * (kw - 1), sw)
    blocks = [
        x[:, :, i : i + dh * (kh - 1) + 1 : dh, j : j + dw * (kw - 1) + 1 : dw].reshape(
            x.shape[0], -1
        )
        for i in rows
        for j in cols
    ]
    return np.stack(blocks, -1)


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The transpose of unfold, column by column of its matrix."""
    if x.ndim == 2:
        return fold(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    (kh, kw), size = each(kernel_size, 2), each(output_size, 2)
    channels = x.shape[1] // (kh * kw)
    n = channels * size[0] * size[1]
    eye = np.eye(n).reshape(n, channels, *size)
    matrix = unfold(eye, kernel_size, dilation, padding, stride).reshape(n, -1)
    return (x.reshape(x.shape[0], -1) @ matrix.T).reshape(x.shape[0], channels, *size)


def attention(q, k, v, mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if enable_gqa:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
        v = np.repeat(v, q.shape[-3] // v.shape[-3], -3)
    s = (q @ np.swapaxes(k, -1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = np.tril(np.ones(s.shape[-2:], bool))
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return (e / np.where(total == 0, 1, total)) @ v


def fused(q, k, v, mask, scale, causal):
    gqa = q.ndim > 2
    out = attention(q, k, v, mask, 0.0, causal, scale=scale, enable_gqa=gqa)
    k = np.repeat(k, q.shape[-3] // k.shape[-3], -3) if gqa else k
    s = (q @ np.swapaxes(k, -1, -2)) * scale
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    s = s if mask is None else s + mask
    top = s.max(-1, keepdims=True)
    return out, np.concatenate([top, 1 / np.exp(s - top).sum(-1, keepdims=True)], -1)


ALL = (*FLOATS, *COMPLEX)


def _conv_samples(nd):
    def make(r):
        image, kernel = (5, 4, 3)[:nd], (3, 2, 2)[:nd]
        out = [
            S(r.normal((2, 3, *image)), r.normal((2, 3, *kernel)), r.normal(2)),
            S(r.normal((3, *image)), r.normal((2, 3, *kernel))),
            S(r.normal((1, 2, *image)), r.normal((4, 1, *kernel)), r.normal(4), 2, 1, 1, 2),
            S(
                r.normal((1, 1, *image)),
                r.normal((1, 1, *kernel)),
                None,
                [1] * nd,
                [2, 1, 1][:nd],
                2,
            ),
            S(r.normal((1, 2, *image)), r.normal((1, 2, *kernel)), None, 1, "same", 2),
            S(r.normal((1, 1, *image)), r.normal((2, 1, *kernel)), padding="valid", stride=2),
            S(r.normal((0, 1, *image)), r.normal((2, 1, *kernel))),
        ]
        if nd < 3:
            out.append(S(r.complex((1, 2, *image)), r.complex((2, 2, *kernel)), r.complex(2)))
        return out

    return make


def _transposed_samples(nd):
    def make(r):
        image, kernel = (3, 2, 2)[:nd], (3, 2, 2)[:nd]
        out = [
            S(r.normal((2, 3, *image)), r.normal((3, 2, *kernel)), r.normal(2)),
            S(r.normal((3, *image)), r.normal((3, 2, *kernel))),
            S(r.normal((1, 4, *image)), r.normal((4, 1, *kernel)), r.normal(2), 2, 1, 1, 2, 1),
            S(r.normal((1, 1, *image)), r.normal((1, 1, *kernel)), None, 1, 0, 1, 1, 2),
            S(r.normal((1, 1, *image)), r.normal((1, 1, *kernel)), None, 3, 0, [2] * nd),
        ]
        if nd < 3:
            out.append(S(r.complex((1, 2, *image)), r.complex((2, 2, *kernel))))
        return out

    return make


def _bad(nd, transposed):
    one = [1] * nd
    x, w = np.ones((1, 2, *[3] * nd)), np.ones((2, 2, *one))
    errors = [
        E(S(np.ones(3), w), RuntimeError, "dimensions"),
        E(S(np.ones((1, 3, *[3] * nd)), w), RuntimeError, "channels"),
        E(S(x, w, np.ones(3)), RuntimeError, "bias"),
        E(S(x, w, None, 0), RuntimeError, "stride"),
        E(S(x, w, None, 1, -1), RuntimeError, "padding"),
    ]
    if not transposed:
        errors += [
            E(S(x, np.ones((2, 2, *[4] * nd))), RuntimeError, "must not be larger"),
            E(S(x, w, None, 2, "same"), RuntimeError, "stride 1"),
            E(S(x, w, None, 1, "other"), RuntimeError, "'same', 'valid'"),
            E(S(x, np.ones((3, 1, *one)), None, 1, 0, 1, 2), RuntimeError, "divisible"),
        ]
    else:
        errors.append(E(S(x, w, None, 1, 0, 1), RuntimeError, "output_padding"))
    return errors


OPS = [
    *(
        Op(
            f"conv{nd}d",
            conv,
            _conv_samples(nd),
            dtypes=ALL,
            rtol=6,
            out=False,
            errors=_bad(nd, False),
        )
        for nd in (1, 2, 3)
    ),
    *(
        Op(
            f"conv_transpose{nd}d",
            conv_transpose,
            _transposed_samples(nd),
            dtypes=ALL,
            rtol=6,
            out=False,
            errors=_bad(nd, True),
        )
        for nd in (1, 2, 3)
    ),
    Op(
        "convolution",
        convolution,
        lambda r: [
            S(
                r.normal((1, 2, 4, 4)),
                r.normal((2, 2, 3, 3)),
                r.normal(2),
                [1, 2],
                [1, 0],
                [1],
                False,
                [0],
                1,
            ),
            S(r.normal((1, 2, 3)), r.normal((2, 1, 2)), None, [2], [0], [1], True, [1], 2),
        ],
        rtol=6,
        out=False,
        errors=[
            E(
                S(np.ones(2), np.ones(2), None, [1], [0], [1], False, [0], 1),
                RuntimeError,
                "dimensions",
            )
        ],
    ),
    Op(
        "_conv",
        map_forward,
        lambda r: [S(r.normal((2, 2, 5)), r.normal((4, 1, 2)), r.normal(4), [3], [2], [1], [2], 2)],
        rtol=6,
        errors=[
            E(
                S(np.ones((1, 1, 2)), np.ones((1, 1, 1)), None, [1], [0], [0], [1], 1),
                RuntimeError,
                "stride",
            )
        ],
    ),
    Op(
        "_conv_input",
        map_input,
        lambda r: [S(r.normal((2, 4, 3)), r.normal((4, 1, 2)), r.normal(2), [5], [2], [1], [2], 2)],
        rtol=6,
        errors=[
            E(
                S(np.ones((1, 1, 2)), np.ones((2, 1, 1)), None, [1], [1], [0], [1], 1),
                RuntimeError,
                "channels",
            )
        ],
    ),
    Op(
        "_conv_weight",
        map_weight,
        lambda r: [S(r.normal((2, 4, 3)), r.normal((2, 2, 5)), [2], [2], [1], [2], 2)],
        rtol=6,
        errors=[
            E(
                S(np.ones((1, 1, 2)), np.ones((2, 1, 1)), [1], [1], [0], [1], 1),
                RuntimeError,
                "batch",
            )
        ],
    ),
    Op(
        "nn.functional.unfold",
        unfold,
        lambda r: [
            S(r.normal((2, 2, 4, 5)), (2, 3)),
            S(r.normal((2, 5, 4)), 2, 2, 1, 2),
            S(r.normal((1, 1, 3, 3)), 2, padding=(1, 0), stride=(2, 1)),
        ],
        dtypes=FLOATS,
        errors=[
            E(S(np.ones((1, 1, 2, 2)), 3), RuntimeError, "must fit"),
            E(S(np.ones((2, 2)), 1), RuntimeError, "dimensions"),
        ],
    ),
    Op(
        "nn.functional.fold",
        fold,
        lambda r: [
            S(r.normal((2, 12, 9)), (4, 5), (2, 3)),
            S(r.normal((8, 6)), (5, 4), 2, 2, 1, 2),
            S(r.normal((1, 4, 4)), 3, 2, padding=(1, 0), stride=(2, 1)),
        ],
        rtol=4,
        errors=[
            E(S(np.ones((1, 4, 4)), (4, 4), 2), RuntimeError, "number of blocks"),
            E(S(np.ones((1, 3, 9)), (4, 4), 2), RuntimeError, "multiple"),
        ],
    ),
    Op(
        "_attention",
        fused,
        lambda r: [
            S(
                r.normal((2, 2, 3, 4)),
                r.normal((2, 2, 5, 4)),
                r.normal((2, 2, 5, 3)),
                None,
                0.5,
                False,
            ),
            S(r.normal((1, 4, 3)), r.normal((1, 6, 3)), r.normal((1, 6, 3)), None, 1.0, True),
            S(
                r.normal((2, 3, 4)),
                r.normal((1, 5, 4)),
                r.normal((1, 5, 2)),
                r.normal((3, 1)),
                0.3,
                False,
            ),
        ],
        grad=False,
        rtol=6,
        errors=[E(S(*[np.ones(3)] * 3, None, 1.0, False), RuntimeError, "do not fit")],
        why="its derivatives are tested through scaled_dot_product_attention",
    ),
    Op(
        "_attention_backward",
        None,
        lambda r: [
            S(
                r.normal((3, 2)),
                r.normal((3, 4)),
                r.normal((5, 4)),
                r.normal((5, 2)),
                None,
                r.normal((3, 2)),
                np.array([[9.0, 0.5]] * 3),
                0.5,
                False,
            ),
        ],
        grad=False,
        errors=[
            E(
                S(*[np.ones((2, 2))] * 4, None, np.ones((2, 3)), np.ones((2, 2)), 1.0, False),
                RuntimeError,
                "do not fit",
            )
        ],
        why="its values are tested through scaled_dot_product_attention's derivatives",
    ),
    Op(
        "nn.functional.scaled_dot_product_attention",
        attention,
        lambda r: [
            S(r.normal((2, 3, 4)), r.normal((2, 5, 4)), r.normal((2, 5, 3))),
            S(
                r.normal((1, 2, 4, 3)),
                r.normal((1, 2, 4, 3)),
                r.normal((1, 2, 4, 3)),
                is_causal=True,
            ),
            S(
                r.normal((2, 3, 4)),
                r.normal((2, 5, 4)),
                r.normal((2, 5, 3)),
                np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool),
            ),
            S(r.normal((3, 4)), r.normal((5, 4)), r.normal((5, 3)), r.normal((3, 5)), scale=0.3),
            S(r.normal((4, 3, 2)), r.normal((2, 5, 2)), r.normal((2, 5, 2)), enable_gqa=True),
        ],
        dtypes=FLOATS,
        rtol=6,
        out=False,
        errors=[
            E(S(np.ones(2), np.ones(2), np.ones(2)), RuntimeError, "at least 2 dimensions"),
            E(S(np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 4))), RuntimeError, "key.shape"),
            E(
                S(*[np.ones((2, 2))] * 3, np.ones((2, 2), bool), 0.0, True),
                RuntimeError,
                "not both",
            ),
            E(S(*[np.ones((2, 2))] * 3, None, 1.5), RuntimeError, "between 0 and 1"),
        ],
    ),
]
