"""Samples of the normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import FLOATS, E, Op, Rng, S


def scaled(y: np.ndarray, w: Any, b: Any, shape: Any) -> np.ndarray:
    if w is not None:
        y = y * w.reshape(shape)
    return y if b is None else y + b.reshape(shape)


def layer_norm(
    x: np.ndarray, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> np.ndarray:
    axis = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    if x.size == 0:
        return x
    y = (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)
    return scaled(y, weight, bias, normalized_shape)


def rms_norm(
    x: np.ndarray, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> np.ndarray:
    axis = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    y = x / np.sqrt((x * x).mean(axis=axis, keepdims=True) + (1e-7 if eps is None else eps))
    return scaled(y, weight, None, normalized_shape)


def rms_rows(x: np.ndarray, weight: Any, n: int, k: int, eps: float) -> Any:
    rows = x.reshape(n, k)
    rstd = 1 / np.sqrt((rows * rows).mean(1) + eps)
    y = (rows * rstd[:, None]).reshape(x.shape)
    return y if weight is None else y * weight, rstd


def group_norm(
    x: np.ndarray, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> np.ndarray:
    rows = x.reshape(x.shape[0], num_groups, -1)
    y = (rows - rows.mean(axis=2, keepdims=True)) / np.sqrt(rows.var(axis=2, keepdims=True) + eps)
    return scaled(y.reshape(x.shape), weight, bias, (1, -1) + (1,) * (x.ndim - 2))


def batch_norm(
    x: np.ndarray,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> np.ndarray:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    axis = (0, *range(2, x.ndim))
    mean = x.mean(axis=axis) if training else running_mean
    var = x.var(axis=axis) if training else running_var
    return scaled(
        (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps), weight, bias, shape
    )


def layers(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4)), [4]),
        S(r.normal((2, 3, 4)), [3, 4], r.normal((3, 4)), r.normal((3, 4))),
        S(r.normal((3, 5)), (5,), r.normal(5), None, 1e-3),
        S(r.normal((3, 5)), normalized_shape=[5], bias=r.normal(5)),
        S(r.normal(6), [6], r.normal(6), r.normal(6)),
        S(r.normal((2, 70)) + 10, [70], r.normal(70), r.normal(70)),
        S(np.zeros((0, 4)), [4]),
    ]


def groups(r: Rng) -> list[S]:
    return [
        S(r.normal((2, 4, 3)), 2),
        S(r.normal((2, 4, 2, 3)), 2, r.normal(4), r.normal(4)),
        S(r.normal((2, 6)), 3, r.normal(6), r.normal(6), 1e-3),
        S(r.normal((2, 3, 5)), num_groups=3, weight=r.normal(3)),
        S(r.normal((3, 4)), 1, bias=r.normal(4)),
        S(r.normal((1, 2, 40)), 1, r.normal(2), r.normal(2)),
    ]


def batches(r: Rng) -> list[S]:
    return [
        S(r.normal((5, 3)), None, None, training=True),
        S(r.normal((4, 3, 2)), None, None, r.normal(3), r.normal(3), True, 0.1, 1e-3),
        S(r.normal((2, 3, 2, 3)), None, None, r.normal(3), None, True),
        S(r.normal((4, 3)), None, None, weight=r.normal(3), bias=r.normal(3), training=True),
        S(r.normal((3, 2, 40)) + 5, None, None, training=True),
    ]


def evaluated(r: Rng) -> list[S]:
    return [
        S(r.normal((4, 3)), r.normal(3), r.uniform(3, 0.5, 2)),
        S(
            r.normal((2, 3, 4)),
            r.normal(3),
            r.uniform(3, 0.5, 2),
            r.normal(3),
            r.normal(3),
            False,
            eps=1e-3,
        ),
    ]


def native(x: np.ndarray, w: Any, b: Any, n: int, g: int, k: int, s: int, eps: float) -> Any:
    v = x.reshape(n, g, k * s)
    mean, rstd = v.mean(axis=2), 1 / np.sqrt(v.var(axis=2) + eps)
    y = ((v - mean[..., None]) * rstd[..., None]).reshape(n, g, k, s)
    return scaled(y, w, b, (1, g, k, 1)).reshape(x.shape), mean, rstd


def native_samples(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4)), None, None, 3, 1, 4, 1, 1e-5),
        S(r.normal((2, 4, 3)), r.normal(4), r.normal(4), 2, 2, 2, 3, 1e-5),
        S(r.normal((2, 6)), r.normal(3), r.normal(3), 4, 1, 3, 1, 1e-2),
    ]


def statistics(x: np.ndarray, n: int, g: int) -> Any:
    v = x.reshape(n, g, -1)
    return v.mean(axis=2), 1 / np.sqrt(v.var(axis=2) + 1e-5)


def native_backward_samples(r: Rng) -> list[S]:
    out = []
    for w, shape in [(None, (3, 1, 4, 1)), (4, (2, 2, 2, 3)), (4, (3, 1, 4, 1))]:
        x = r.normal(shape)
        out.append(
            S(
                r.normal(shape),
                x,
                *statistics(x, *shape[:2]),
                None if w is None else r.normal(w),
                *shape,
            )
        )
    return out


def native_backward(
    g: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    w: Any,
    n: int,
    gr: int,
    k: int,
    s: int,
) -> np.ndarray:
    m, r = mean.reshape(n, gr, 1, 1), rstd.reshape(n, gr, 1, 1)
    a = (g if w is None else g * w.reshape(1, gr, k, 1).reshape(1, gr, k, 1)).reshape(n, gr, k, s)
    xhat = (x.reshape(n, gr, k, s) - m) * r
    return (
        r
        * (
            a
            - a.mean(axis=(2, 3), keepdims=True)
            - xhat * (a * xhat).mean(axis=(2, 3), keepdims=True)
        )
    ).reshape(x.shape)


def native_weight_backward(
    g: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    n: int,
    gr: int,
    k: int,
    s: int,
) -> Any:
    xhat = (x - mean.reshape(n, gr, 1, 1)) * rstd.reshape(n, gr, 1, 1)
    return (g * xhat).sum(axis=(0, 3)).reshape(-1), g.sum(axis=(0, 3)).reshape(-1)


def per_channel(v: np.ndarray, ndim: int) -> np.ndarray:
    return v.reshape((1, -1) + (1,) * (ndim - 2))


def native_batch(
    x: np.ndarray, w: Any, b: Any, rm: Any, rv: Any, training: bool, eps: float
) -> Any:
    axis = (0, *range(2, x.ndim))
    mean, var = (x.mean(axis=axis), x.var(axis=axis)) if training else (rm, rv)
    count = x.size / x.shape[1]
    y = batch_norm(x, mean, var, w, b, False, 0.1, eps)
    return y, mean, 1 / np.sqrt(var + eps), var * count / (count - 1) if training else var


def batch_backward_samples(r: Rng) -> list[S]:
    out = []
    for shape, w, training in [((5, 3), 3, True), ((4, 3, 2), None, True), ((4, 2, 3), 2, False)]:
        x = r.normal(shape)
        axis = (0, *range(2, x.ndim))
        out.append(
            S(
                r.normal(shape),
                x,
                x.mean(axis=axis),
                1 / np.sqrt(x.var(axis=axis) + 1e-5),
                None if w is None else r.normal(w),
                training,
            )
        )
    return out


def batch_backward(
    g: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray, w: Any, training: bool
) -> np.ndarray:
    m, r = per_channel(mean, x.ndim), per_channel(rstd, x.ndim)
    a = g if w is None else g * per_channel(w, x.ndim)
    if not training:
        return r * a
    axis, xhat = (0, *range(2, x.ndim)), (x - m) * r
    return r * (
        a - a.mean(axis=axis, keepdims=True) - xhat * (a * xhat).mean(axis=axis, keepdims=True)
    )


def batch_weight_backward(g: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray) -> Any:
    axis = (0, *range(2, x.ndim))
    return (g * (x - per_channel(mean, x.ndim)) * per_channel(rstd, x.ndim)).sum(axis=axis), g.sum(
        axis=axis
    )


def rms_backward_samples(r: Rng) -> list[S]:
    out = []
    for shape, k, w, wants in [
        ((3, 4), 4, None, False),
        ((2, 3, 4), 12, (3, 4), True),
        ((6, 70), 70, 70, True),
        ((0, 4), 4, 4, True),
    ]:
        x = r.normal(shape)
        n = x.size // k
        weight = None if w is None else r.normal(w)
        out.append(S(r.normal(shape), x, rms_rows(x, None, n, k, 0.1)[1], weight, n, k, wants))
    return out


def rms_backward(
    g: np.ndarray, x: np.ndarray, rstd: np.ndarray, w: Any, n: int, k: int, wants: bool
) -> Any:
    rows, flow, r = x.reshape(n, k), g.reshape(n, k), rstd[:, None]
    dw = (flow * rows * r).sum(0) if wants else np.zeros(0)
    if w is not None:
        flow = flow * w.reshape(1, k)
    dx = flow * r - rows * r**3 * (flow * rows).mean(1, keepdims=True)
    return dx.reshape(x.shape), dw


Z = np.zeros
X = np.zeros((3, 4))
OPS = [
    Op(
        "nn.functional.layer_norm",
        layer_norm,
        layers,
        dtypes=FLOATS,
        rtol=5,
        errors=[
            E(S(Z((2, 3)), [4]), RuntimeError, "normalized_shape"),
            E(S(Z((2, 3)), []), RuntimeError, "at least one"),
            E(S(Z((2, 3)), [3], Z(2)), RuntimeError, "weight and bias"),
            E(S(Z(3), [2, 3]), RuntimeError, "normalized_shape"),
            E(S(np.arange(3), [3]), NotImplementedError, "floating point"),
        ],
    ),
    Op(
        "nn.functional.rms_norm",
        rms_norm,
        lambda r: [
            S(r.normal((3, 4)), [4], eps=1e-3),
            S(r.normal((2, 3, 4)), (3, 4), r.normal((3, 4)), 1e-5),
            S(r.normal(5), [5], weight=r.normal(5)),
        ],
        dtypes=("float32", "float16", "bfloat16"),
        rtol=5,
        errors=[E(S(Z((2, 3)), [4]), RuntimeError, "normalized_shape")],
    ),
    Op(
        "nn.functional.group_norm",
        group_norm,
        groups,
        dtypes=FLOATS,
        rtol=5,
        errors=[
            E(S(Z((2, 3)), 2), RuntimeError, "divisible"),
            E(S(Z((2, 3)), 0), RuntimeError, "greater than 0"),
            E(S(Z(3), 1), RuntimeError, "2 dimensions"),
            E(S(Z((2, 3)), 1, Z(2)), RuntimeError, "weight"),
        ],
    ),
    Op(
        "nn.functional.batch_norm",
        batch_norm,
        batches,
        dtypes=FLOATS,
        rtol=5,
        why="writes",
        errors=[
            E(S(Z((1, 3)), None, None, training=True), ValueError, "more than 1 value"),
            E(S(Z((2, 3)), None, None), RuntimeError, "running_mean"),
            E(S(Z(3), None, None), RuntimeError, "2 dimensions"),
            E(S(Z((2, 3)), Z(2), Z(3)), RuntimeError, "running_mean"),
            E(S(Z((2, 3)), None, None, Z(4), training=True), RuntimeError, "weight"),
        ],
    ),
    Op(
        "_rms_norm",
        rms_rows,
        lambda r: [
            S(r.normal((3, 4)), None, 3, 4, 1e-3),
            S(r.normal((2, 3, 4)), r.normal((3, 4)), 2, 12, 1e-5),
            S(r.normal((6, 70)), r.normal(70), 6, 70, 1e-6),
            S(r.normal((0, 4)), r.normal(4), 0, 4, 1e-6),
            S(r.normal(5), r.normal(5), 1, 5, 0.0),
        ],
        rtol=5,
        errors=[
            E(S(Z((3, 4)), None, 3, 5, 1e-5), RuntimeError, "n \\* k elements"),
            E(S(Z((3, 4)), Z(3), 3, 4, 1e-5), RuntimeError, "weight"),
            E(S(np.arange(4), None, 1, 4, 1e-5), RuntimeError, "floating point"),
        ],
    ),
    Op(
        "_native_norm",
        native,
        native_samples,
        rtol=5,
        errors=[E(S(Z((3, 4)), None, None, 3, 2, 4, 1, 1e-5), RuntimeError, "does not fit")],
    ),
    Op(
        "_rms_norm_backward",
        rms_backward,
        rms_backward_samples,
        rtol=5,
        grad=False,
        errors=[
            E(S(X, X, Z(3), None, 3, 5, True), RuntimeError, "n \\* k elements"),
            E(S(X, X, Z(2), None, 3, 4, True), RuntimeError, "for each row"),
            E(S(X, X, Z(3), Z(3), 3, 4, True), RuntimeError, "weight"),
        ],
    ),
    Op("_native_norm_backward", native_backward, native_backward_samples, rtol=5),
    Op(
        "_native_norm_gradients",
        lambda g, x, m, r, w, *s: (
            native_backward(g, x, m, r, w, *s),
            *native_weight_backward(g.reshape(s), x.reshape(s), m, r, *s),
        ),
        native_backward_samples,
        rtol=5,
        grad=False,
        errors=[E(S(X, X, Z(3), Z(3), None, 3, 2, 4, 1), RuntimeError, "does not fit")],
    ),
    Op(
        "_native_norm_weight_backward",
        native_weight_backward,
        lambda r: [S(*s.args[:4], *s.args[5:]) for s in native_backward_samples(r)],
        rtol=5,
    ),
    Op(
        "_native_batch_norm",
        native_batch,
        lambda r: [
            S(r.normal((5, 3)), None, None, None, None, True, 1e-5),
            S(r.normal((4, 3, 2)), r.normal(3), r.normal(3), None, None, True, 1e-3),
        ],
        rtol=5,
        grad=False,
    ),
    Op("_native_batch_norm_backward", batch_backward, batch_backward_samples, rtol=5),
    Op(
        "_native_batch_norm_gradients",
        lambda g, x, m, r, w, training: (
            batch_backward(g, x, m, r, w, training),
            *batch_weight_backward(g, x, m, r),
        ),
        batch_backward_samples,
        rtol=5,
        grad=False,
        errors=[E(S(X, Z((3, 3)), Z(3), Z(3), None, True), RuntimeError, "like input")],
    ),
    Op(
        "_native_batch_norm_weight_backward",
        batch_weight_backward,
        lambda r: [S(*s.args[:4]) for s in batch_backward_samples(r)],
        rtol=5,
    ),
]
