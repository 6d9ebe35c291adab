"""Samples of products of a sparse matrix in rows with a dense one."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, S, ids

X = np.zeros((3, 2))
V = np.zeros(2)


def rows_of(crow: Any) -> np.ndarray:
    return np.repeat(np.arange(len(crow) - 1), np.diff(crow))


def csr_mm(crow: Any, col: Any, values: Any, dense: Any, mirror: Any = None) -> Any:
    matrix = np.zeros((len(crow) - 1, len(dense)), np.result_type(values, np.float32))
    np.add.at(matrix, (rows_of(crow), col), values)
    return matrix @ dense


def csr_dots(crow: Any, col: Any, a: Any, b: Any, mirror: Any = None) -> Any:
    return (a[rows_of(crow)] * b[col]).sum(1)


def csr_mirror(crow: Any, col: Any, columns: int) -> Any:
    order = np.argsort(col, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(col, minlength=columns))])
    return np.concatenate([starts, rows_of(crow)[order], order])


CROW, COL = ids(0, 2, 2, 5), ids(0, 2, 1, 1, 3)
NARROW = (CROW.astype(np.int32), COL.astype(np.int32))

OPS = [
    Op(
        "_sparse_csr_mm",
        csr_mm,
        lambda r: [
            S(CROW, COL, r.normal((5,)), r.normal((4, 3))),
            S(CROW, COL, r.normal((5,)), r.normal((4, 3)), csr_mirror(CROW, COL, 4)),
            S(*NARROW, r.normal((5,)), r.normal((4, 37))),
            S(CROW, COL, r.normal((5,)), r.normal((4, 1))),
            S(ids(0, 0), ids(), r.normal((0,)), r.normal((4, 2))),
            S(ids(0), ids(), r.normal((0,)), r.normal((4, 2))),
        ],
        dtypes=FLOATS + COMPLEX,
        errors=[
            E(S(ids(0, 1), ids(3), np.ones(1), X), IndexError, r"row 0: .* in \[0, 3\)"),
            E(S(ids(0, 1), ids(-1), np.ones(1), X), IndexError, r"row 0: .* in \[0, 3\)"),
            E(S(ids(0, 2), ids(1), np.ones(1), X), IndexError, "rise from 0 to the number"),
            E(S(ids(1, 0), ids(1), np.ones(1), X), IndexError, "rise from 0 to the number"),
            E(S(ids(0, 1), ids(1), V, X), RuntimeError, "shape of col_indices"),
            E(S(ids(0, 1), ids(1), np.ones(1), V), RuntimeError, "dense must be a matrix"),
            E(S(ids(), ids(1), np.ones(1), X), RuntimeError, "one element more"),
            E(S(NARROW[0], COL, np.ones(5), X), RuntimeError, "both be int64 or both int32"),
        ],
    ),
    Op(
        "_sparse_csr_dots",
        csr_dots,
        lambda r: [
            S(CROW, COL, r.normal((3, 2)), r.normal((4, 2))),
            S(CROW, COL, r.normal((3, 2)), r.normal((4, 2)), csr_mirror(CROW, COL, 4)),
            S(*NARROW, r.normal((3, 37)), r.normal((4, 37))),
            S(ids(0, 0), ids(), r.normal((1, 2)), r.normal((4, 2))),
        ],
        dtypes=FLOATS + COMPLEX,
        errors=[
            E(S(ids(0, 1), ids(4), X[:1], X), IndexError, r"row 0: .* in \[0, 3\)"),
            E(S(ids(0, 1), ids(0), X, X), RuntimeError, "the first one with 1 rows"),
            E(S(ids(0, 1), ids(0), V, X), RuntimeError, "must be matrices"),
        ],
    ),
    Op(
        "_sparse_csr_mirror",
        csr_mirror,
        lambda r: [
            S(CROW, COL, 4),
            S(*NARROW, 6),
            S(ids(0, 0), ids(), 2),
        ],
        grad=False,
        errors=[
            E(S(ids(0, 1), ids(2), 2), IndexError, r"row 0: .* in \[0, 2\)"),
            E(S(ids(0, 1), ids(0, 1), 2), IndexError, "rise from 0 to the number"),
            E(S(ids(0, 1), ids(0), -1), RuntimeError, "must not be negative"),
        ],
    ),
]
