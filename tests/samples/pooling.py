"""Samples of pooling."""

from __future__ import annotations

import itertools

import numpy as np

from samples import FLOATS, E, Op, S, each


def _windows(sizes, kernel, stride, padding, dilation, ceil_mode):
    """Each dim's windows: (indices inside the image, number of places inside the padded image)."""
    out = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        spans = []
        for i in range(count):
            places = [i * s - p + j * d for j in range(k)]
            whole = min(i * s - p + k, n + p) - (i * s - p)
            spans.append(([a for a in places if 0 <= a < n], whole))
        out.append(spans)
    return out


def _adaptive(sizes, output):
    return [
        [(list(range(i * n // o, -(-(i + 1) * n // o))), 0) for i in range(o)]
        for n, o in zip(sizes, output, strict=True)
    ]


def _pool(x, windows, reduce):
    nd = len(windows)
    lead = x.shape[: x.ndim - nd]
    out = np.zeros((*lead, *(len(w) for w in windows)))
    for at in itertools.product(*(range(len(w)) for w in windows)):
        picked = [w[i] for w, i in zip(windows, at, strict=True)]
        count = int(np.prod([len(p[0]) for p in picked]))
        block = x[(..., *np.ix_(*(p[0] for p in picked)))].reshape(*lead, count)
        out[(..., *at)] = reduce(block, picked)
    return out


def _places(sizes):
    return np.arange(int(np.prod(sizes))).reshape(sizes)


def _max(x, windows):
    nd = len(windows)
    sizes = x.shape[x.ndim - nd :]
    values = _pool(x, windows, lambda b, _: b.max(-1))
    flat = np.broadcast_to(_places(sizes), x.shape)
    pairs = np.stack([x, flat], 0)
    best = _pool(pairs, windows, lambda b, _: np.stack([b[0].max(-1), _at_best(b)], 0))[1]
    return values, best.astype(np.int64)


def _at_best(b):
    return np.take_along_axis(b[1], b[0].argmax(-1)[..., None], -1)[..., 0]


def max_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *, nd):
    kernel = each(kernel_size, nd)
    args = (
        kernel,
        kernel if stride is None else each(stride, nd),
        each(padding, nd),
        each(dilation, nd),
    )
    return _max(x, _windows(x.shape[-nd:], *args, ceil_mode))


def avg_pool(
    x,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    nd,
):
    kernel = each(kernel_size, nd)
    args = (kernel, kernel if stride is None else each(stride, nd), each(padding, nd), [1] * nd)

    def mean(block, picked):
        count = np.prod([p[1] if count_include_pad else len(p[0]) for p in picked])
        return block.sum(-1) / (divisor_override or count)

    return _pool(x, _windows(x.shape[-nd:], *args, ceil_mode), mean)


def adaptive_avg(x, output_size, *, nd):
    return _pool(x, _adaptive(x.shape[-nd:], each(output_size, nd)), lambda b, _: b.mean(-1))


def adaptive_max(x, output_size, *, nd):
    return _max(x, _adaptive(x.shape[-nd:], each(output_size, nd)))


def _of(f, nd):
    return lambda *args, **kwargs: f(*args, **kwargs, nd=nd)


def _max_samples(nd):
    def make(r):
        image = (7, 6, 5)[:nd]
        return [
            S(r.distinct((2, 2, *image)), 2),
            S(r.distinct((1, *image)), 3, 1, 1),
            S(r.distinct((1, 1, *image)), 2, 2, 1, 2),
            S(r.distinct((1, 2, *image)), 3, 2, 1, 1, True),
            S(r.distinct((1, 1, 11, *image[1:])), [2] * nd, [1] * nd, 0, 1, False),
            S(r.distinct((0, 1, *image)), 2),
        ]

    return make


def _avg_samples(nd):
    def make(r):
        image = (7, 6, 5)[:nd]
        out = [
            S(r.normal((2, 2, *image)), 2),
            S(r.normal((1, *image)), 3, 1, 1),
            S(r.normal((1, 2, *image)), 3, 2, 1, True),
            S(r.normal((1, 2, *image)), 3, 2, 1, True, False),
            S(r.normal((1, 1, 11, *image[1:])), [2] * nd, [1] * nd),
            S(r.normal((0, 1, *image)), 2),
        ]
        if nd > 1:
            out.append(S(r.normal((1, 1, *image)), 2, divisor_override=3))
        return out

    return make


def _adaptive_samples(nd, fill):
    def make(r):
        image = (7, 6, 5)[:nd]
        x = getattr(r, fill)
        return [
            S(x((2, 1, *image)), 1),
            S(x((1, *image)), [3, 2, 4][:nd]),
            S(x((1, 2, *image)), [9, 6, 5][:nd]),
            S(x((0, 1, *image)), 2),
        ]

    return make


def _bad(nd):
    x = np.ones((1, 1, *[4] * nd))
    return [
        E(S(np.ones(2) if nd > 1 else np.ones(()), 2), RuntimeError, "dimensions"),
        E(S(x, 0), RuntimeError, "kernel_size"),
        E(S(x, 2, 0), RuntimeError, "stride"),
        E(S(x, 2, 1, 2), RuntimeError, "padding"),
        E(S(x, 6), RuntimeError, "does not fit"),
        E(S(np.ones((1, 0, *[4] * nd)), 2), RuntimeError, "only the batch may be empty"),
    ]


def _scatter(g, indices, size):
    nd = len(size)
    lead = g.shape[: g.ndim - nd]
    out = np.zeros((int(np.prod(lead)), int(np.prod(size))))
    for row, values, at in zip(
        out, g.reshape(len(out), -1), indices.reshape(len(out), -1), strict=True
    ):
        np.add.at(row, at, values)
    return out.reshape(*lead, *size)


def _gather(x, indices, nd):
    lead = x.shape[: x.ndim - nd]
    flat = np.take_along_axis(x.reshape(*lead, -1), indices.reshape(*lead, -1), -1)
    return flat.reshape(indices.shape)


def _avg_backward(g, size, kernel, stride, padding, ceil_mode, include, divisor):
    """The transpose of avg_pool, row by row of its matrix."""
    nd, n = len(size), int(np.prod(size))
    eye = np.eye(n).reshape(n, 1, *size)
    matrix = avg_pool(eye, kernel, stride, padding, ceil_mode, include, divisor, nd=nd).reshape(
        n, -1
    )
    lead = g.shape[: g.ndim - nd]
    return (g.reshape(*lead, -1) @ matrix.T).reshape(*lead, *size)


def _adaptive_backward(g, size):
    nd, n = len(size), int(np.prod(size))
    eye = np.eye(n).reshape(n, 1, *size)
    lead = g.shape[: g.ndim - nd]
    matrix = adaptive_avg(eye, g.shape[g.ndim - nd :], nd=nd).reshape(n, -1)
    return (g.reshape(*lead, -1) @ matrix.T).reshape(*lead, *size)


NDS = (1, 2, 3)
OPS = [
    *(
        Op(f"_max_pool{n}d", _of(max_pool, n), _max_samples(n), dtypes=FLOATS, errors=_bad(n))
        for n in NDS
    ),
    *(
        Op(
            "_avg_pool1d" if n == 0 else f"nn.functional.avg_pool{n or 1}d",
            _of(avg_pool, n or 1),
            _avg_samples(n or 1),
            dtypes=FLOATS,
            rtol=3,
            out=n != 1,
            errors=_bad(n or 1),
        )
        for n in (0, *NDS)
    ),
    *(
        Op(
            f"nn.functional.adaptive_avg_pool{n}d",
            _of(adaptive_avg, n),
            _adaptive_samples(n, "normal"),
            dtypes=FLOATS,
            rtol=3,
            errors=[E(S(np.ones((1, 1, *[2] * n)), -1), RuntimeError, "output sizes")],
        )
        for n in NDS
    ),
    *(
        Op(
            f"_adaptive_max_pool{n}d",
            _of(adaptive_max, n),
            _adaptive_samples(n, "distinct"),
            dtypes=FLOATS,
            errors=[E(S(np.ones((1, 1, *[2] * n)), -1), RuntimeError, "output sizes")],
        )
        for n in NDS
    ),
    Op(
        "_pool_scatter",
        _scatter,
        lambda r: [
            S(r.normal((2, 3, 4)), r.integers(0, 6, (2, 3, 4)), [6]),
            S(r.normal((1, 2, 2)), r.integers(0, 12, (1, 2, 2)), [3, 4]),
        ],
        errors=[E(S(np.ones((1, 2)), np.array([[0, 9]]), [4]), RuntimeError, "outside the input")],
    ),
    Op(
        "_pool_gather",
        _gather,
        lambda r: [
            S(r.normal((2, 3, 6)), r.integers(0, 6, (2, 3, 4)), 1),
            S(r.normal((1, 3, 4)), r.integers(0, 12, (1, 2, 2)), 2),
        ],
        errors=[E(S(np.ones((1, 4)), np.array([[0, 4]]), 1), RuntimeError, "outside the input")],
    ),
    Op(
        "_avg_pool_backward",
        _avg_backward,
        lambda r: [
            S(r.normal((2, 1, 4, 3)), [7, 5], [3, 3], [2, 2], [1, 1], True, True, None),
            S(r.normal((2, 6)), [7], [2], [1], [0], False, False, None),
        ],
        rtol=3,
        errors=[
            E(
                S(np.ones((1, 2)), [9], [2], [2], [0], False, True, None),
                RuntimeError,
                "spatial sizes",
            )
        ],
    ),
    Op(
        "_adaptive_avg_pool_backward",
        _adaptive_backward,
        lambda r: [S(r.normal((2, 1, 2, 3)), [7, 5]), S(r.normal((2, 9)), [5])],
        rtol=3,
        errors=[E(S(np.ones((1, 2)), [0]), RuntimeError, "at least 1")],
    ),
]
