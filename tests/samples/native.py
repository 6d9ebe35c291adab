"""Samples of norms with their statistics, dropout with its mask, segments, and other pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew

from . import COMPLEX, FLOATS_32_64, INTS, E, Op, Rng, S


def normed(x: Any, axes: Any, eps: float) -> tuple[Any, Any, Any]:
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def affine(x: Any, weight: Any, bias: Any, shape: Any) -> Any:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    y, mean, rstd = normed(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return affine(y, weight, bias, shape), mean, rstd


def group_norm(
    x: Any, weight: Any, bias: Any, n: int, c: int, rest: int, group: int, eps: float
) -> Any:
    y, mean, rstd = normed(x.reshape(n, group, c // group * rest), 2, eps)
    out = affine(y.reshape(n, c, rest), weight, bias, (1, c, 1)).reshape(x.shape)
    return out, mean[..., 0], rstd[..., 0]


def batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    axes = tuple(d for d in range(x.ndim) if d != 1)
    shape = [-1 if d == 1 else 1 for d in range(x.ndim)]
    y, m, rstd = normed(x, axes, eps)
    return affine(y, weight, bias, shape), m.ravel(), rstd.ravel()


def legit(x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    stats = () if not isinstance(rest[0], bool) else (None, None)
    return batch_norm(x, weight, bias, *stats, *rest)


def with_update(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Any:
    return (
        *batch_norm(x, weight, bias, mean, var, True, momentum, eps),
        np.zeros(0, dtype=np.uint8),
    )


def batch_samples(r: Rng) -> list[S]:
    w, b = r.normal((3,)), r.normal((3,))
    return [
        S(r.normal((4, 3)), w, b, None, None, True, 0.1, 1e-3),
        S(r.normal((2, 3, 4)), None, b, None, None, True, 0.5, 1e-5),
        S(r.normal((2, 3, 2, 2)), w, None, None, None, True, 0.1, 1e-2),
    ]


def segment(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    offsets: Any = None,
    axis: int = 0,
    initial: Any = None,
) -> Any:
    axis %= data.ndim
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if offsets is None:
        ends = np.cumsum(lengths, -1)
        starts = ends - lengths
    else:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    start = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[reduce]
    start = start if initial is None else initial
    out = np.empty([*data.shape[:axis], starts.shape[-1], *data.shape[axis + 1 :]])
    for at in np.ndindex(starts.shape):
        part = data[at[:-1]][starts[at] : ends[at]]
        if reduce in ("sum", "mean"):
            got = start + part.sum(0)
            if reduce == "mean":
                empty = np.nan if initial is None else initial
                got = got / len(part) if len(part) else np.full(got.shape, empty)
        elif reduce == "prod":
            got = start * part.prod(0)
        else:
            f = np.maximum if reduce == "max" else np.minimum
            got = f.reduce(part, 0, initial=start)
        out[at] = got
    return out


def segment_samples(r: Rng) -> list[S]:
    lengths = np.array([2, 0, 3])
    batched = np.array([[1, 2, 1], [0, 4, 0]])
    calls = []
    for how in ("sum", "mean", "max", "min", "prod", "amax", "amin"):
        calls += [
            S(r.distinct((5,)), how, lengths=lengths),
            S(r.distinct((5, 2)), how, offsets=np.array([0, 2, 2, 5]), initial=0.5),
            S(r.distinct((2, 4, 3)), how, lengths=batched, axis=1),
        ]
    return calls


SEGMENT_ERRORS = [
    E(S(np.ones((3,)), "sum"), RuntimeError, "lengths or offsets"),
    E(S(np.ones((3,)), "median", lengths=np.array([3])), RuntimeError, "must be one of"),
    E(S(np.ones((3,)), "sum", lengths=np.array([2])), RuntimeError, "sum to the size 3"),
    E(S(np.ones((3,)), "sum", lengths=np.array([-1, 4])), RuntimeError, "negative"),
    E(S(np.ones((3,)), "sum", lengths=np.array([[3]])), RuntimeError, "dimensions up to axis"),
]


def chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Any:
    parts = []
    for t in tensors:
        at = dim % t.ndim
        pad = [(0, 0)] * t.ndim
        pad[at] = (0, -t.shape[at] % num_chunks)
        parts.append(np.pad(t, pad).reshape([*t.shape[:at], num_chunks, -1]))
    return np.concatenate(parts, -1)


def masked_index(x: Any, mask: Any, indices: Any, fill: float) -> Any:
    if x.size == 0:
        return np.full(mask.shape, float(fill))
    at = tuple(np.clip(i, -n, n - 1) for i, n in zip(indices, x.shape))
    return np.where(mask, x[at], fill)


def masked_put(x: Any, mask: Any, indices: Any, values: Any) -> Any:
    out = x.copy()
    at = tuple(np.clip(i, -n, n - 1) for i, n in zip(indices, x.shape))
    np.add.at(out, np.broadcast_arrays(*at)[0] if len(at) == 1 else at, np.where(mask, values, 0))
    return out


def softmax_backward(g: Any, y: Any, dim: int, dtype: Any) -> Any:
    return y * (g - (g * y).sum(dim, keepdims=True))


def safe_softmax(x: Any, dim: int) -> Any:
    e = np.exp(x - np.maximum(x.max(dim, keepdims=True), -1e300))
    total = e.sum(dim, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def unpooled(g: Any, x: Any, *rest: Any) -> Any:
    out = np.zeros(x.shape)
    for plane in np.ndindex(x.shape[:-2]):
        np.add.at(out[plane].reshape(-1), rest[-1][plane].ravel(), g[plane].ravel())
    return out


def except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return np.asarray((np.abs(v) ** pow).sum() ** (1 / pow))
    others = tuple(d for d in range(v.ndim) if d != dim)
    return (np.abs(v) ** pow).sum(others, keepdims=True) ** (1 / pow)


def static(x: Any, *, size: int, fill_value: int = -1) -> Any:
    found = np.argwhere(x)[:size]
    return np.concatenate([found, np.full((size - len(found), x.ndim), fill_value)]).astype(int)


def hashed(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    axes = tuple(range(x.ndim)) if dim == () else dim
    return np.bitwise_xor.reduce(wide.view(np.uint64), axis=axes, keepdims=keepdim)


OPS = [
    Op(
        "native_layer_norm",
        layer_norm,
        lambda r: [
            S(r.normal((2, 3)), (3,), None, None, 1e-3),
            S(r.normal((2, 3, 4)), (3, 4), r.normal((3, 4)), r.normal((3, 4)), 0.1),
        ],
    ),
    Op(
        "native_group_norm",
        group_norm,
        lambda r: [
            S(r.normal((2, 6, 3)), None, None, 2, 6, 3, 3, 1e-3),
            S(r.normal((2, 4, 2, 2)), r.normal((4,)), r.normal((4,)), 2, 4, 4, 2, 0.1),
        ],
    ),
    Op("native_batch_norm", batch_norm, batch_samples),
    Op(
        "_native_batch_norm_legit",
        legit,
        lambda r: [*batch_samples(r), S(r.normal((4, 2)), None, None, True, 0.1, 1e-3)],
    ),
    Op(
        "_batch_norm_with_update",
        with_update,
        lambda r: [
            S(r.normal((4, 2)), r.normal((2,)), None, r.normal((2,)), r.uniform((2,)), 0.1, 0.1)
        ],
        grad=False,
        why="writes the running statistics; its derivatives are those of native_batch_norm",
    ),
    Op(
        "native_dropout",
        lambda x, p, train: (
            x if p == 0 or not train else x * 0,
            np.full(x.shape, p == 0 or not train),
        ),
        lambda r: [
            S(r.normal((2, 3)), 0.0, True),
            S(r.normal((3,)), 0.5, False),
            S(r.normal((3,)), 1.0, True),
        ],
        errors=[E(S(np.ones((2,)), 1.5, True), RuntimeError, "between 0 and 1")],
    ),
    Op(
        "native_dropout_backward",
        lambda g, mask, scale: g * mask * scale,
        lambda r: [
            S(r.normal((2, 3)), r.bools((2, 3)), 2.0),
            S(r.normal((3,)), r.bools((3,)), 0.0),
        ],
        out=False,
    ),
    Op(
        "native_norm",
        lambda x, p=2, dim=None, keepdim=False: np.asarray(
            (np.abs(x) ** p).sum(dim, keepdims=keepdim) ** (1 / p)
        ),
        lambda r: [S(r.normal((2, 3))), S(r.normal((2, 3)), 3, 1, True), S(r.normal((2, 3)), 1, 0)],
        out=False,
    ),
    Op(
        "norm_except_dim",
        except_dim,
        lambda r: [S(r.normal((2, 3, 2))), S(r.normal((2, 3)), 2, 1), S(r.normal((2, 3)), 1, -1)],
        out=False,
    ),
    Op(
        "_softmax_backward_data",
        softmax_backward,
        lambda r: [
            S(r.normal((2, 3)), r.uniform((2, 3)), 1, clew.float64),
            S(r.normal((2, 3)), r.uniform((2, 3)), -2, clew.float64),
        ],
        ("float64",),
        out=False,
    ),
    Op(
        "_safe_softmax",
        safe_softmax,
        lambda r: [S(r.normal((2, 3)), 1), S(r.normal((2, 3, 2)), -2), S(r.normal((3,)), 0)],
        out=False,
    ),
    Op(
        "_chunk_cat",
        chunk_cat,
        lambda r: [
            S([r.normal((2, 3)), r.normal((2, 5))], 1, 2),
            S([r.normal((3, 3, 2)), r.normal((1, 4, 2))], 0, 2),
            S([r.normal((4,))], -1, 4),
        ],
        errors=[
            E(S([], 0, 2), RuntimeError, "non-empty"),
            E(S([np.ones((2,))], 0, 0), RuntimeError, "positive"),
            E(S([np.ones((2, 2)), np.ones((3, 2))], 1, 2), RuntimeError, "must be equal"),
        ],
    ),
    Op(
        "_unsafe_masked_index",
        masked_index,
        lambda r: [
            S(
                r.normal((4, 3)),
                r.bools((5, 6)),
                [r.integers(-6, 6, (5, 1)), r.integers(-6, 6, (6,))],
                2.0,
            ),
            S(r.normal((4,)), r.bools((6,)), [r.integers(-9, 9, (6,))], -1.0),
        ],
        out=False,
    ),
    Op(
        "_unsafe_masked_index_put_accumulate",
        masked_put,
        lambda r: [
            S(
                r.normal((4, 3)),
                r.bools((5, 6)),
                [r.integers(-6, 6, (5, 1)), r.integers(-6, 6, (6,))],
                r.normal((5, 6)),
            ),
        ],
        out=False,
    ),
    Op(
        "max_pool2d_with_indices_backward",
        unpooled,
        lambda r: [
            S(
                r.normal((2, 2, 2)),
                r.normal((2, 4, 4)),
                2,
                2,
                0,
                1,
                False,
                r.integers(0, 16, (2, 2, 2)),
            )
        ],
        out=False,
    ),
    Op("segment_reduce", segment, segment_samples, out=False, errors=SEGMENT_ERRORS),
    Op("_segment_reduce", segment, segment_samples, out=False, errors=SEGMENT_ERRORS),
    Op(
        "frobenius_norm",
        lambda x, dim=None, keepdim=False: np.sqrt((np.abs(x) ** 2).sum(dim, keepdims=keepdim)),
        lambda r: [S(r.normal((2, 3))), S(r.normal((2, 3)), (0, 1), True), S(r.complex((2, 3)), 1)],
        FLOATS_32_64 + COMPLEX,
    ),
    Op(
        "frexp",
        np.frexp,
        lambda r: [
            S(r.normal((3, 4), 10.0)),
            S(np.array([0.0, 1.0, -1.0, 0.5, 1e-300, 3e38, -7.0])),
            S(r.normal(())),
            S(np.zeros((0, 2))),
        ],
        second=False,
        errors=[E(S(np.array([1, 2])), RuntimeError, "floating-point")],
        why="the exponent is constant: no second derivative",
    ),
    Op(
        "hash_tensor",
        hashed,
        lambda r: [
            S(r.normal((3, 4))),
            S(r.normal((3, 4)), 0),
            S(r.normal((2, 3, 4)), (0, -1), keepdim=True),
            S(r.integers(-9, 9, (5,))),
            S(r.bools((5,))),
            S(np.zeros((0, 3)), 0),
        ],
        grad=False,
        errors=[
            E(S(np.zeros((0,))), RuntimeError, "reduction dim"),
            E(S(np.ones((2,)), mode=1), RuntimeError, "mode"),
            E(S(np.array([1j])), NotImplementedError, "real"),
            E(S(np.ones((2,)), 1), IndexError, "out of range"),
        ],
    ),
    Op(
        "nonzero_static",
        static,
        lambda r: [
            S(np.array([[1.0, 0.0], [2.0, 3.0]]), size=5),
            S(np.array([[1.0, 0.0], [2.0, 3.0]]), size=2, fill_value=9),
            S(np.array(4.0), size=3),
            S(r.bools((6,)), size=0),
        ],
        integers=INTS,
        grad=False,
        errors=[E(S(np.ones((2,)), size=-1), RuntimeError, "non-negative")],
    ),
    Op(
        "fill_",
        lambda x, value: np.full(x.shape, value),
        lambda r: [S(r.normal((2, 3)), 2.5)],
        grad=False,
        out=False,
        why="writes",
    ),
    Op(
        "zero_",
        np.zeros_like,
        lambda r: [S(r.normal((2, 3)))],
        grad=False,
        out=False,
        why="writes",
    ),
]
