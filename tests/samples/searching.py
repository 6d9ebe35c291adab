"""Samples of searching: nonzero elements, places in sorted rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, S, ids

DTYPES = FLOATS + COMPLEX
INTS = ("int64", "int32")
X = np.zeros((2, 3))
V = np.zeros(3)


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    return np.stack(np.nonzero(x), -1) if x.ndim else np.zeros((int(x != 0), 0))


def searchsorted(
    rows: Any,
    v: Any,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    side = "right" if right else side or "left"
    if rows.ndim == 1:
        return np.searchsorted(rows, v, side, sorter)
    flat = [
        np.searchsorted(a, b, side)
        for a, b in zip(rows.reshape(-1, rows.shape[-1]), v.reshape(-1, v.shape[-1]))
    ]
    return np.stack(flat).reshape(v.shape)


OPS = [
    Op(
        "_nonzero_flat",
        lambda x: np.flatnonzero(x),
        lambda r: [S(r.bools((3, 4))), S(r.integers(0, 2, 9) * 0.5), S(np.array(2.0))],
        dtypes=FLOATS,
        grad=False,
        why="data",
    ),
    Op(
        "nonzero",
        nonzero,
        lambda r: [
            S(np.array([[0.0, 1.5], [2.0, 0.0]])),
            S(np.zeros((0, 2))),
            S(np.array([1.0])),
            S(np.array(3.0)),
            S(np.array([0j, 1j])),
            S(np.array([[True], [False]])),
        ],
        dtypes=DTYPES,
        integers=INTS,
        grad=False,
        out=False,
        why="data",
    ),
    Op(
        "argwhere",
        nonzero,
        lambda r: [S(np.array([[0.0, 1.5], [2.0, 0.0]])), S(np.array([0j, 1j]))],
        dtypes=DTYPES,
        integers=INTS,
        grad=False,
        why="data",
    ),
    Op(
        "bucketize",
        lambda x, b, out_int32=False, right=False: np.searchsorted(
            b, x, "right" if right else "left"
        ),
        lambda r: [
            S(r.normal((2, 3)), np.array([-1.0, 0.0, 1.0])),
            S(np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.0]), right=True),
            S(np.array([1.0, 2.0]), np.array([1.0, 2.0]), out_int32=True),
            S(np.array(0.5), np.array([0.0])),
        ],
        dtypes=("float32", "float64"),
        grad=False,
        errors=[E(S(V, X), RuntimeError, "one dimension")],
    ),
    Op(
        "searchsorted",
        searchsorted,
        lambda r: [
            S(np.array([1.0, 2.0, 3.0]), r.normal((2, 2))),
            S(
                np.array([[1.0, 2.0], [3.0, 4.0]]),
                np.array([[1.0, 1.5, 9.0], [3.0, 4.0, 5.0]]),
                right=True,
            ),
            S(np.array([1.0, 2.0]), 2.0),
            S(np.array([1.0, 2.0, 2.0]), np.array([2.0]), side="right"),
            S(np.array([3.0, 1.0, 2.0]), np.array([1.5, 2.5]), sorter=ids(1, 2, 0)),
            S(np.array([1.0, np.nan]), np.array([np.nan, 5.0]), out_int32=True),
        ],
        dtypes=("float32", "float64"),
        grad=False,
        errors=[
            E(S(X, V), RuntimeError, "all but the last"),
            E(S(V, V, side="middle"), RuntimeError, "'left' or 'right'"),
            E(S(V, V, right=True, side="left"), RuntimeError, "contradict"),
            E(S(V, V, sorter=ids(0)), RuntimeError, "sorter"),
            E(S(V, V, sorter=ids(0, 1, 7)), IndexError, "sorter index 7"),
        ],
    ),
]
