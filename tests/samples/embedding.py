"""Samples of embeddings: rows of a table, their sums, gradients of the table."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from samples import FLOATS, E, Op, S, ids

X = np.zeros((2, 3))
V = np.zeros(3)


def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale: bool = False, adjoint: bool = False
) -> Any:
    out = weight[indices].copy()
    if adjoint:
        out[indices == padding_idx] = 0
        if scale:
            out /= np.array([(indices == i).sum() for i in indices.ravel()]).reshape(
                *indices.shape, 1
            )
    return out


def embedding_bag(w: Any, ids: Any, edges: Any, factors: Any, mean: bool = False) -> Any:
    out = np.zeros((len(edges) - 1, w.shape[1]), w.dtype)
    for b, (begin, end) in enumerate(itertools.pairwise(edges)):
        for k in range(begin, end):
            out[b] += w[ids[k]] * (1 if factors is None else factors[k])
        if mean and end > begin:
            out[b] /= end - begin
    return out


def bag_spread(g: Any, ids: Any, edges: Any, factors: Any, rows: int, mean: bool) -> Any:
    out = np.zeros((rows, g.shape[1]), g.dtype)
    for b, (begin, end) in enumerate(itertools.pairwise(edges)):
        for k in range(begin, end):
            share = (1 if factors is None else factors[k]) / (end - begin if mean else 1)
            out[ids[k]] += g[b] * share
    return out


def bag_dots(g: Any, w: Any, ids: Any, edges: Any, mean: bool) -> Any:
    out = np.zeros(len(ids), g.dtype)
    for b, (begin, end) in enumerate(itertools.pairwise(edges)):
        for k in range(begin, end):
            out[k] = g[b] @ w[ids[k]] / (end - begin if mean else 1)
    return out


def embedding_backward(
    g: Any, indices: Any, n: int, padding_idx: int = -1, scale: bool = False
) -> Any:
    out = np.zeros((n, g.shape[-1]), dtype=g.dtype)
    np.add.at(out, indices.ravel(), g.reshape(-1, g.shape[-1]))
    if scale:
        out /= np.maximum(np.bincount(indices.ravel(), minlength=n), 1)[:, None]
    if 0 <= padding_idx < n:
        out[padding_idx] = 0
    return out


def one_hot(x: Any, num_classes: int = -1) -> Any:
    n = int(x.max()) + 1 if num_classes == -1 else num_classes
    return (x[..., None] == np.arange(n)).astype(np.int64)


OPS = [
    Op(
        "_embedding",
        embedding,
        lambda r: [
            S(r.normal((4, 3)), ids([0, 3], [3, 1])),
            S(r.normal((4, 3)), ids(2, 2, 0), 2, True),
            S(r.normal((4, 2)), np.array(1)),
            S(r.normal((2, 2)), ids()),
        ],
        dtypes=FLOATS,
        second=True,
        grad=False,
        errors=[
            E(S(X, ids(2)), IndexError, "index 2 is out of range"),
            E(S(V, ids(0)), RuntimeError, "2 dimensions"),
            E(S(X, X), RuntimeError, "int64 or int32"),
        ],
        why="padding_idx and scaling make a gradient of their own: test_index_functions",
    ),
    Op(
        "_embedding_bag",
        embedding_bag,
        lambda r: [
            S(r.normal((4, 3)), ids(0, 3, 3, 1, 2), ids(0, 2, 2, 5), None),
            S(r.normal((4, 3)), ids(0, 3, 3, 1, 2), ids(0, 2, 2, 4), r.normal((5,))),
            S(r.normal((4, 3)), ids(0, 3, 3, 1, 2), ids(0, 3, 5), None, True),
            S(r.normal((4, 2)), ids(1, 1), ids(0, 1, 2), r.normal((2,)), True),
            S(r.normal((4, 2)), ids(), ids(0, 0), None),
        ],
        dtypes=("float32", "float64", "float16", "bfloat16"),
        errors=[
            E(S(X, ids(2), ids(0, 1), None), RuntimeError, "index 2 is out of range"),
            E(S(X, ids(1, 1), ids(0, 3), None), RuntimeError, "pass input's length 2"),
            E(S(X, ids(1, 1), ids(2, 1), None), RuntimeError, "must not decrease"),
            E(S(X, ids(1), ids(), None), RuntimeError, "at least one element"),
            E(S(V, ids(0), ids(0, 1), None), RuntimeError, "matrix"),
            E(S(X, ids(0), ids(0, 1), np.ones(2)), RuntimeError, "shape of indices"),
        ],
    ),
    Op(
        "_embedding_bag_spread",
        bag_spread,
        lambda r: [
            S(r.normal((3, 3)), ids(0, 3, 3, 1, 2), ids(0, 2, 2, 5), None, 4, False),
            S(r.normal((3, 3)), ids(0, 3, 3, 1, 2), ids(0, 2, 2, 4), r.normal((5,)), 4, False),
            S(r.normal((2, 3)), ids(0, 3, 3, 1, 2), ids(0, 3, 5), None, 5, True),
            S(r.normal((1, 2)), ids(), ids(0, 0), None, 4, False),
        ],
        grad=False,
        errors=[
            E(S(X, ids(2), ids(0, 1, 1), None, 2, False), RuntimeError, "index 2 is out of range"),
            E(S(X, ids(1), ids(0, 1), None, 2, False), RuntimeError, "a row for each bag"),
            E(S(X, ids(1), ids(0, 1, 1), None, -1, False), RuntimeError, "negative"),
        ],
    ),
    Op(
        "_embedding_bag_dots",
        bag_dots,
        lambda r: [
            S(r.normal((3, 3)), r.normal((4, 3)), ids(0, 3, 3, 1, 2), ids(0, 2, 2, 4), False),
            S(r.normal((2, 3)), r.normal((4, 3)), ids(0, 3, 3, 1, 2), ids(0, 3, 5), True),
        ],
        grad=False,
        errors=[
            E(S(X, X, ids(2), ids(0, 1, 1), False), RuntimeError, "index 2 is out of range"),
            E(S(X, V, ids(1), ids(0, 1, 1), False), RuntimeError, "matrix"),
        ],
    ),
    Op(
        "_embedding_backward",
        embedding_backward,
        lambda r: [
            S(r.normal((2, 2, 3)), ids([0, 3], [3, 1]), 4),
            S(r.normal((3, 3)), ids(2, 2, 0), 4, 2, True),
            S(r.normal((5, 2)), ids(1, 1, 1, 0, 0), 3, 0, True),
        ],
        dtypes=FLOATS,
        rtol=4,
        errors=[
            E(S(X, ids(2, 0), 2), IndexError, "index 2"),
            E(S(X, ids(0), 2), RuntimeError, "shape"),
        ],
    ),
    Op(
        "nn.functional.one_hot",
        one_hot,
        lambda r: [S(ids([0, 2], [1, 0])), S(ids(0, 2), 5), S(np.array(1), 3)],
        dtypes=("float32",),
        grad=False,
        errors=[
            E(S(ids(-1)), RuntimeError, "non-negative"),
            E(S(ids(3), 2), RuntimeError, "smaller than num_classes"),
            E(S(V), RuntimeError, "int64"),
            E(S(ids()), RuntimeError, "empty"),
            E(S(ids(0), -2), RuntimeError, "negative"),
        ],
        why="data",
    ),
]
