"""Samples of losses that are native operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import FLOATS, E, Op, Rng, S


def parts(x_shape: Any, target: np.ndarray, weight: Any, ignore: int) -> Any:
    """One-hot selection [N, C, ...] times the weights, and the weight of each target."""
    classes = x_shape[1] if len(x_shape) > 1 else x_shape[0]
    w = np.ones(classes) if weight is None else weight
    kept = target != ignore
    safe = np.where(kept, target, 0)
    each = np.where(kept, w[safe], 0.0)
    hot = (np.arange(classes) == safe[..., None]) * each[..., None]
    return np.moveaxis(hot, -1, 1 if len(x_shape) > 1 else 0), each


def nll(x: np.ndarray, target: np.ndarray, weight: Any, ignore: int, reduction: str) -> Any:
    hot, each = parts(x.shape, target, weight, ignore)
    loss = -(hot * x).sum(axis=1 if x.ndim > 1 else 0)
    total = each.sum()
    out = loss if reduction == "none" else loss.sum() / (total if reduction == "mean" else 1)
    return np.asarray(out), np.asarray(total)


def backward(
    g: np.ndarray,
    target: np.ndarray,
    weight: Any,
    total: np.ndarray,
    size: Any,
    ignore: int,
    reduction: str,
) -> Any:
    hot, _ = parts(size, target, weight, ignore)
    g = np.expand_dims(g, 1 if len(size) > 1 else 0) if reduction == "none" else g
    return -hot * g / (total if reduction == "mean" else 1)


def samples(r: Rng) -> list[S]:
    t = r.integers(0, 3, 4)
    ignored = np.array([0, -100, 2, 1])
    w = r.uniform(3, 0.5, 2)
    return [
        S(r.normal((4, 3)), t, None, -100, "mean"),
        S(r.normal((4, 3)), ignored, w, -100, "mean"),
        S(r.normal((4, 3)), t, w, 1, "sum"),
        S(r.normal((4, 3)), ignored, None, -100, "none"),
        S(r.normal((2, 3, 5)), r.integers(0, 3, (2, 5)), w, -100, "mean"),
        S(r.normal((2, 3, 2, 2)), r.integers(0, 3, (2, 2, 2)), None, -100, "none"),
        S(r.normal(3), np.array(1), w, -100, "mean"),
        S(r.normal((4, 3)), t.astype(np.uint8), None, -100, "mean"),
    ]


def backward_samples(r: Rng) -> list[S]:
    out = []
    for s in samples(r):
        x, t, w, ignore, reduction = s.args
        loss, total = nll(x, t, w, ignore, reduction)
        out.append(S(r.normal(loss.shape), t, w, total, list(x.shape), ignore, reduction))
    return out


def cross_entropy(
    x: np.ndarray, target: np.ndarray, weight: Any, ignore: int, reduction: str, smoothing: float
) -> Any:
    dim = 1 if x.ndim > 1 else 0
    top = x.max(axis=dim, keepdims=True)
    log_sum = top + np.log(np.exp(x - top).sum(axis=dim, keepdims=True))
    logp, classes = x - log_sum, x.shape[dim]
    hot, each = parts(x.shape, target, weight, ignore)
    shape = [1] * x.ndim
    shape[dim] = classes
    w = np.ones(classes) if weight is None else weight
    kept = np.expand_dims(target != ignore, dim)
    mixed = (1 - smoothing) * hot + smoothing / classes * kept * w.reshape(shape)
    loss, total = -(mixed * logp).sum(axis=dim), each.sum()
    out = loss if reduction == "none" else loss.sum() / (total if reduction == "mean" else 1)
    pair = np.stack([log_sum.squeeze(dim), np.zeros(np.shape(target))])
    return np.asarray(out), pair, np.asarray(total)


def cross_entropy_samples(r: Rng) -> list[S]:
    # The weights get no gradient here: cross_entropy is composed where they want one.
    plain = [S(s.args[0], s.args[1], None, *s.args[3:], 0.0) for s in samples(r)]
    smooth = [S(*s.args[:5], 0.3) for s in plain]
    return (
        plain + smooth + [S(r.normal((3, 4, 70)), r.integers(0, 4, (3, 70)), None, 2, "mean", 0.1)]
    )


def cross_entropy_backward(
    g: np.ndarray,
    x: np.ndarray,
    target: np.ndarray,
    weight: Any,
    log_sum: np.ndarray,
    total: np.ndarray,
    ignore: int,
    reduction: str,
    smoothing: float,
) -> Any:
    dim = 1 if x.ndim > 1 else 0
    hot, _ = parts(x.shape, target, weight, ignore)
    shape = [1] * x.ndim
    shape[dim] = classes = x.shape[dim]
    w = np.ones(classes) if weight is None else weight
    kept = np.expand_dims(target != ignore, dim)
    mixed = (1 - smoothing) * hot + smoothing / classes * kept * w.reshape(shape)
    p = np.exp(x - np.expand_dims(log_sum[0], dim))
    g = np.expand_dims(g, dim) if reduction == "none" else g
    slopes = p * mixed.sum(axis=dim, keepdims=True) - mixed
    return slopes * g / (total if reduction == "mean" else 1)


def cross_entropy_backward_samples(r: Rng) -> list[S]:
    weighted = [S(*s.args, 0.2) for s in samples(r)]
    out = []
    for s in cross_entropy_samples(r) + weighted:
        loss, log_sum, total = cross_entropy(*s.args)
        x, t, w, *rest = s.args
        out.append(S(r.normal(loss.shape), x, t, w, log_sum, total, *rest))
    return out


def distance(x: Any, y: Any, edge: float, half: float, line: float) -> Any:
    d = np.abs(x - y)
    return (
        half * d * d if np.isinf(edge) else np.where(d <= edge, half * d * d, line * (d - edge / 2))
    )


CURVES = {
    "_mse_loss": (np.inf, 1.0, 0.0),
    "_smooth_l1_loss": (0.6, 0.5 / 0.6, 1.0),
    "_huber_loss": (0.6, 0.5, 0.6),
}


def distance_total(x: Any, y: Any, *args: Any) -> Any:
    each = distance(x, y, *args[:3])
    return np.asarray(each.mean() if args[3] else each.sum())


def total_samples(curve: Any) -> Any:
    def samples(r: Rng) -> list[S]:
        shapes: list[tuple[int, ...]] = [(4, 9), (), (2, 3, 5)]
        return [
            S(r.normal(shape), r.normal(shape), *curve, mean)
            for shape in shapes
            for mean in (True, False)
        ]

    return samples


def bce(x: Any, t: Any) -> Any:
    return -t * np.log(x) - (1 - t) * np.log1p(-x)


def bce_logits(x: Any, t: Any) -> Any:
    return np.logaddexp(0, x) - x * t


def two_classes(r: Rng) -> list[S]:
    shapes: list[tuple[Any, Any]] = [((4, 9), (4, 9)), ((4, 9), (9,)), ((), (3,)), ((70,), (70,))]
    return [S(r.uniform(a, 0.1, 0.9), r.uniform(b)) for a, b in shapes]


X = np.zeros((2, 3))
PAIRS = np.zeros((2, 2))
TOTALS = [
    Op(
        name,
        distance_total,
        total_samples(curve),
        dtypes=FLOATS,
        errors=[
            E(S(X, np.zeros(3), *curve, True), RuntimeError, "one shape"),
            E(S(X, X.astype(np.float32), *curve, True), RuntimeError, "floating dtype"),
        ],
    )
    for name, curve in CURVES.items()
]
OPS = [
    *TOTALS,
    Op(
        "_distance",
        distance,
        lambda r: [
            S(r.normal(shape), r.normal(other), *curve)
            for curve in CURVES.values()
            for shape, other in (((4, 9), (4, 9)), ((4, 9), (9,)), ((), (3,)))
        ],
        dtypes=FLOATS,
    ),
    Op("_binary_cross_entropy", bce, two_classes, dtypes=FLOATS, rtol=5),
    Op("_binary_cross_entropy_with_logits", bce_logits, two_classes, dtypes=FLOATS, rtol=5),
    Op(
        "_nll_loss",
        nll,
        samples,
        dtypes=FLOATS,
        errors=[
            E(S(X, np.array([5, 1]), None, -100, "mean"), IndexError, "out of bounds"),
            E(S(X, np.array([0, 1, 2]), None, -100, "mean"), ValueError, "batch size"),
            E(S(X, np.array([0.0, 1.0]), None, -100, "mean"), RuntimeError, "dtype"),
            E(S(X, np.array([0, 1]), np.ones(2), -100, "mean"), RuntimeError, "weight"),
            E(S(X, np.array([0, 1]), None, -100, "average"), ValueError, "reduction"),
            E(
                S(np.zeros((2, 3, 4)), np.zeros((2, 5), dtype=np.int64), None, -100, "mean"),
                RuntimeError,
                "expected target",
            ),
        ],
    ),
    Op(
        "_cross_entropy",
        cross_entropy,
        cross_entropy_samples,
        dtypes=FLOATS,
        rtol=5,
        errors=[
            E(S(X, np.array([5, 1]), None, -100, "mean", 0.0), IndexError, "out of bounds"),
            E(S(X, np.array([0, 1]), None, -100, "average", 0.0), ValueError, "reduction"),
        ],
    ),
    Op("_nll_loss_backward", backward, backward_samples, dtypes=FLOATS),
    Op(
        "_cross_entropy_backward",
        cross_entropy_backward,
        cross_entropy_backward_samples,
        rtol=5,
        grad=False,
        errors=[
            E(
                S(np.zeros(()), X, np.array([5, 1]), None, PAIRS, np.ones(()), -100, "mean", 0.0),
                IndexError,
                "out of bounds",
            ),
            E(
                S(np.zeros(()), X, np.array([0, 1]), None, X, np.ones(()), -100, "mean", 0.0),
                RuntimeError,
                "must come from",
            ),
            E(
                S(np.zeros(2), X, np.array([0, 1]), None, PAIRS, np.ones(()), -100, "sum", 0.0),
                RuntimeError,
                "losses' shape",
            ),
        ],
    ),
]
