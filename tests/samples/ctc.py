"""Samples of CTC loss's native sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import E, Op, Rng, S


def asked(rows: list[list[int]], steps: list[int], width: int) -> tuple[np.ndarray, ...]:
    """States, skips and lengths of labels with the blank 0 between them."""
    states = np.zeros((len(rows), width), np.int64)
    skip = np.zeros((len(rows), width), bool)
    for n, row in enumerate(rows):
        for j, label in enumerate(row):
            states[n, 2 * j + 1] = label
            skip[n, 2 * j + 1] = j > 0 and label != row[j - 1]
    return states, skip, np.array([steps, [len(row) for row in rows]], np.int64)


def ctc(x: Any, states: Any, skip: Any, lengths: Any) -> tuple[Any, Any]:
    steps, batch, _ = x.shape
    width = states.shape[1]
    alpha = np.full((batch, steps, width + 2), -np.inf)
    loss = np.zeros(batch)
    for n in range(batch):
        used, labels = lengths[:, n]
        share = np.zeros(width)  # plain probabilities: these are short
        for t in range(used):
            ways = np.zeros(width)
            for s in range(2 * labels + 1):
                if t == 0:
                    ways[s] = s < 2
                else:
                    ways[s] = share[s] + (share[s - 1] if s > 0 else 0)
                    ways[s] += share[s - 2] if skip[n, s] else 0
            share = ways * np.exp(x[t, n, states[n]].astype(np.float64))
            with np.errstate(divide="ignore"):
                alpha[n, t, 2:] = np.log(share)
        total = share[max(2 * labels - 1, 0) : 2 * labels + 1].sum() if used else labels == 0
        loss[n] = -np.log(total) if total else np.inf
    return loss, alpha


def samples(r: Rng) -> list[S]:
    def logs(*shape: int) -> np.ndarray:
        x = r.normal(shape)
        return x - np.log(np.exp(x).sum(-1, keepdims=True))

    return [
        S(logs(6, 3, 4), *asked([[1, 1], [2, 3, 1], []], [6, 5, 4], 7)),
        S(logs(20, 1, 5), *asked([[1, 2, 3, 4, 4, 3, 2, 1]], [20], 17)),
        S(logs(2, 2, 3), *asked([[1, 1], [2]], [2, 0], 5)),  # no way: too short, and no step
        S(logs(0, 1, 2), *asked([[]], [0], 1)),
        S(logs(3, 0, 2), *asked([], [], 1)),
    ]


X = np.zeros((2, 1, 3))
OPS = [
    Op(
        "_ctc_loss",
        ctc,
        samples,
        grad=False,
        rtol=4.0,
        errors=[
            E(S(X, *asked([[1]], [3], 3)), RuntimeError, "3 steps"),
            E(S(X, *asked([[1]], [2], 3)[:2], np.array([[2], [2]])), RuntimeError, "2 labels"),
            E(S(X, *asked([[3]], [2], 3)), RuntimeError, "no class 3"),
            E(S(X, *asked([[1], [1]], [2, 2], 3)), RuntimeError, "must be"),
            E(S(X[0], *asked([[1]], [2], 3)), RuntimeError, "log_probs must be"),
        ],
    ),
    Op(
        "_ctc_loss_backward",
        None,
        lambda r: [
            S(
                r.normal(3),
                x,
                *rest,
                *(np.asarray(a, x.dtype) for a in ctc(x, *rest)),
            )
            for s in samples(r)[:1]
            for x, *rest in [s.args]
        ],
        grad=False,
        why="its values are tested through the derivatives of nn.functional.ctc_loss",
    ),
]
