"""Ops that draw random numbers, at arguments that leave nothing to chance."""

from __future__ import annotations

import numpy as np

from samples import FLOATS, FLOATS_32_64, E, Op, Rng, S


def certain(r: Rng) -> list[S]:
    """Probabilities 0 and 1."""
    return [
        S(np.round(r.uniform((3, 4)))),
        S(np.asarray(1.0)),
        S(np.zeros((0, 2))),
        S(np.ones((2, 1, 3))),
    ]


def certain_p(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 2)), 0.0),
        S(r.normal((2,)), 1.0),
        S(r.normal(), 1.0),
        S(r.normal((0,)), 1.0),
    ]


def bernoulli(x: np.ndarray, p: float | None = None) -> np.ndarray:
    return x if p is None else np.full(x.shape, p)


OPS = [
    Op(
        "bernoulli",
        bernoulli,
        lambda r: certain(r) + certain_p(r),
        dtypes=FLOATS,
        grad=False,
        errors=[
            E(S(np.full((2,), 1.5)), RuntimeError, r"probability must be in \[0, 1\]"),
            E(S(np.full((2,), np.nan)), RuntimeError, r"probability must be in \[0, 1\]"),
            E(S(np.ones(2), -0.1), RuntimeError, r"p must be in \[0, 1\]"),
            E(S(np.ones(2, dtype=np.int64)), RuntimeError, "floating point"),
        ],
    ),
    Op(
        "poisson",
        lambda rate: rate,
        lambda r: [S(np.zeros((2, 3))), S(np.zeros(())), S(np.zeros((0, 3)))],
        dtypes=FLOATS,
        grad=False,
        errors=[
            E(S(np.array([-1.0])), RuntimeError, "must be finite and not negative"),
            E(S(np.array([np.inf])), RuntimeError, "must be finite and not negative"),
        ],
    ),
    Op(
        "_log_gamma_draws",
        lambda a: np.where(a == 0, -np.inf, a),
        lambda r: [S(np.array([0.0, np.inf])), S(np.zeros((0, 3)))],
        dtypes=("float64",),
        grad=False,
    ),
    Op(
        "_binomial_draws",
        lambda n, p: n * p,
        lambda r: [S(r.integers(0, 9, (3, 4)).astype(float), np.round(r.uniform((3, 4))))],
        dtypes=("float64",),
        grad=False,
    ),
    Op(
        "binomial",
        lambda count, prob: count * prob,
        lambda r: [
            S(r.integers(0, 9, (3, 4)).astype(float), np.round(r.uniform((3, 4)))),
            S(r.integers(0, 9, (3, 1)).astype(float), np.round(r.uniform((4,)))),
            S(np.asarray(5.0), np.asarray(1.0)),
            S(np.zeros((0, 2)), np.ones((1, 2))),
        ],
        dtypes=FLOATS,
        grad=False,
        errors=[
            E(S(np.ones(2), np.array([0.5, 1.5])), RuntimeError, r"prob must be in \[0, 1\]"),
            E(S(np.ones(2), np.array([0.5, np.nan])), RuntimeError, r"prob must be in \[0, 1\]"),
            E(S(np.array([-1.0]), np.ones(1)), RuntimeError, "whole and not negative"),
            E(S(np.array([1.5]), np.ones(1)), RuntimeError, "whole and not negative"),
            E(S(np.ones(2, dtype=np.int64), np.ones(2)), ValueError, "floating point"),
            E(S(np.ones(2), np.ones(3)), RuntimeError, "broadcast|match"),
            E(S(3.0, np.ones(3)), TypeError, "Tensor"),
        ],
    ),
    Op(
        "multinomial",
        lambda w, n, replacement=False: np.repeat(np.argmax(w, -1)[..., None], n, -1),
        lambda r: [
            S(np.array([0.0, 2.0, 0.0]), 4, True),
            S(np.eye(3)[[2, 0]], 2, replacement=True),
            S(np.eye(4), 1),
        ],
        dtypes=FLOATS,
        grad=False,
        errors=[
            E(S(np.zeros(3), 1), RuntimeError, "sum above 0"),
            E(S(np.array([-1.0, 2.0]), 1), RuntimeError, "neither inf, nan nor"),
            E(S(np.ones(2), 3), RuntimeError, "without replacement"),
            E(S(np.array([0.0, 1.0]), 2), RuntimeError, "with a weight above 0"),
            E(S(np.ones(2), 0), RuntimeError, "num_samples must be above 0"),
            E(S(np.ones((2, 2, 2)), 1), RuntimeError, "1 or 2 dims"),
            E(S(np.ones((0,)), 1, True), RuntimeError, "categories"),
        ],
    ),
    Op(
        "_normal",
        lambda mean, std: mean + 0 * std,
        lambda r: [
            S(r.normal((3, 4)), np.zeros((3, 4))),
            S(r.normal((3, 1)), np.zeros((4,))),
            S(r.normal(), np.zeros(())),
        ],
        dtypes=FLOATS,
        grad=False,
        errors=[
            E(S(np.zeros(2), np.array([1.0, -1.0])), RuntimeError, "std must be 0 or above"),
            E(S(np.zeros(2), np.ones(3)), RuntimeError, "broadcast"),
        ],
    ),
]


def keep_all_or_none(r: Rng, shape: tuple[int, ...] = (2, 3, 4)) -> list[S]:
    return [
        S(r.normal(shape), 0.0, True),
        S(r.normal(shape), 1.0, True),
        S(r.normal(shape), 0.5, False),
    ]


def dropped(x: np.ndarray, p: float = 0.5, training: bool = True) -> np.ndarray:
    return x * 0.0 if training and p == 1.0 else x


BAD_P = [
    E(S(np.ones((1, 2, 3)), 1.5, True), ValueError, "between 0 and 1"),
    E(S(np.ones((1, 2, 3)), -0.5, True), ValueError, "between 0 and 1"),
]
SHAPES = {
    "nn.functional.dropout1d": (2, 3, 4),
    "nn.functional.dropout2d": (2, 3, 2, 2),
    "nn.functional.dropout3d": (2, 3, 2, 1, 2),
}

for name in (
    "dropout",
    "alpha_dropout",
    "feature_dropout",
    "feature_alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout",
    *SHAPES,
):
    errors = list(BAD_P)
    shape = SHAPES.get(name, (2, 3, 4))
    if name == "nn.functional.dropout1d":
        errors = [E(S(np.ones(2), 0.5, True), RuntimeError, "dims")]
    elif "feature" in name:
        errors = [*BAD_P, E(S(np.ones(3), 0.5, True), RuntimeError, "at least 2 dims")]
    OPS.append(
        Op(
            name,
            dropped,
            lambda r, shape=shape: keep_all_or_none(r, shape),
            dtypes=FLOATS,
            inplace=False,  # nothing dropped, nothing written: tests/test_random.py has the rest
            errors=errors,
        )
    )


def masked(
    x: np.ndarray, keep: float, scale: float, shift: float, low: float, feature: bool
) -> tuple[np.ndarray, np.ndarray]:
    shape = x.shape[:2] + (1,) * (x.ndim - 2) if feature else x.shape
    mask = np.full(shape, keep == 1.0)
    return np.where(mask, x * scale + shift, low), mask


OPS += [
    Op(
        "_masked_dropout",
        masked,
        lambda r: [
            S(r.normal((3, 4)), 1.0, 2.0, 0.5, -1.0, False),
            S(r.normal((2, 3, 4)), 1.0, 1.5, 0.0, 0.0, True),
            S(r.normal((2, 3)), 0.0, 1.5, 0.0, 3.0, False),
            S(r.normal(), 1.0, 1.5, 0.0, 0.0, False),
            S(r.normal((0, 3)), 1.0, 1.5, 0.0, 0.0, True),
        ],
        dtypes=FLOATS,
    ),
    Op(
        "_dropout_backward",
        lambda g, mask, scale: g * mask * scale,
        lambda r: [
            S(r.normal((3, 4)), r.bools((3, 4)), 2.0),
            S(r.normal((2, 3, 4)), r.bools((2, 3, 1)), 1.25),
            S(r.normal(), r.bools(), 2.0),
            S(r.normal((0, 2)), r.bools((0, 2)), 2.0),
        ],
        dtypes=FLOATS_32_64,
        errors=[E(S(np.ones(2), np.ones(2), 1.0), RuntimeError, "mask must be bool")],
    ),
]
