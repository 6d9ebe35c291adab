"""Samples of matrix products, linear maps and contractions."""

from __future__ import annotations

import numpy as np

from samples import COMPLEX, FLOATS, INTS, E, Op, S

MIXED = (*FLOATS, *COMPLEX)


def _linear(x, w, b=None):
    y = x @ (w.T if w.ndim == 2 else w)
    return y if b is None else y + b


def _plus(product):
    def run(i, a, b, *, beta=1, alpha=1):
        p = alpha * product(a, b)
        return p if beta == 0 else beta * i + p

    return run


def _bilinear(a, b, w, c=None):
    y = np.einsum("...i,oij,...j->...o", a, w, b)
    return y if c is None else y + c


def _mm(r):
    return [
        S(r.normal((3, 4)), r.normal((4, 5))),
        S(r.normal((1, 1)), r.normal((1, 1))),
        S(r.normal((0, 2)), r.normal((2, 3))),
        S(r.normal((2, 0)), r.normal((0, 3))),
        S(r.complex((2, 3)), r.complex((3, 2))),
    ]


def _matmul(r):
    return [
        S(r.normal(3), r.normal(3)),
        S(r.normal((2, 3)), r.normal(3)),
        S(r.normal(3), r.normal((3, 2))),
        S(r.normal((2, 1, 2, 3)), r.normal((4, 3, 2))),
        S(r.normal((4, 2, 3)), r.normal((3, 2))),
        S(r.complex((2, 2, 3)), r.complex((2, 3, 1))),
    ]


OPS = [
    Op(
        "matmul",
        np.matmul,
        _matmul,
        dtypes=MIXED,
        integers=INTS,
        rtol=4,
        errors=[
            E(S(np.ones(()), np.ones(3)), RuntimeError, "at least one dimension"),
            E(S(np.ones((2, 3)), np.ones((2, 3))), RuntimeError, "must equal other.shape"),
        ],
    ),
    Op(
        "mm",
        np.matmul,
        _mm,
        dtypes=MIXED,
        integers=INTS,
        rtol=4,
        errors=[E(S(np.ones((2, 3)), np.ones((2, 3))), RuntimeError, "must equal")],
    ),
    Op(
        "bmm",
        np.matmul,
        lambda r: [
            S(r.normal((2, 3, 4)), r.normal((2, 4, 5))),
            S(r.normal((0, 3, 4)), r.normal((0, 4, 5))),
            S(r.complex((2, 2, 2)), r.complex((2, 2, 2))),
        ],
        dtypes=MIXED,
        integers=INTS,
        rtol=4,
        errors=[E(S(np.ones((2, 2, 2)), np.ones((3, 2, 2))), RuntimeError, "batch sizes")],
    ),
    Op(
        "mv",
        np.matmul,
        lambda r: [S(r.normal((3, 4)), r.normal(4)), S(r.complex((3, 4)), r.complex(4))],
        dtypes=MIXED,
        integers=INTS,
        rtol=4,
        errors=[E(S(np.ones(2), np.ones(2)), RuntimeError, "2 and 1 dimensions")],
    ),
    Op(
        "dot",
        np.dot,
        lambda r: [
            S(r.normal(7), r.normal(7)),
            S(r.normal(0), r.normal(0)),
            S(r.complex(3), r.complex(3)),
        ],
        dtypes=MIXED,
        integers=INTS,
        rtol=4,
        errors=[E(S(np.ones(2), np.ones(3)), RuntimeError, "must equal")],
    ),
    Op(
        "vdot",
        np.vdot,
        lambda r: [S(r.normal(7), r.normal(7)), S(r.complex(3), r.complex(3))],
        dtypes=MIXED,
        rtol=4,
        errors=[E(S(np.ones((2, 2)), np.ones(2)), RuntimeError, "1 dimension")],
    ),
    Op(
        "inner",
        np.inner,
        lambda r: [
            S(r.normal((2, 3)), r.normal((4, 3))),
            S(r.normal(3), r.normal(3)),
            S(r.normal(()), r.normal((2, 3))),
            S(r.complex((2, 3)), r.complex(3)),
        ],
        dtypes=MIXED,
        rtol=4,
        errors=[E(S(np.ones(2), np.ones(3)), RuntimeError, "last sizes must be equal")],
    ),
    Op(
        "outer",
        np.outer,
        lambda r: [S(r.normal(3), r.normal(4)), S(r.complex(2), r.complex(3))],
        dtypes=MIXED,
        integers=INTS,
        errors=[E(S(np.ones((2, 2)), np.ones(2)), RuntimeError, "1 dimension")],
    ),
    Op(
        "ger",
        np.outer,
        lambda r: [S(r.normal(3), r.normal(4))],
        errors=[E(S(np.ones((2, 2)), np.ones(2)), RuntimeError, "1 dimension")],
    ),
    Op(
        "kron",
        np.kron,
        lambda r: [
            S(r.normal((2, 3)), r.normal((3, 2))),
            S(r.normal(2), r.normal((2, 3))),
            S(r.complex(2), r.complex(2)),
        ],
        dtypes=MIXED,
        integers=INTS,
    ),
    Op(
        "_tensordot",
        lambda a, b, p, q: np.tensordot(a, b, (p, q)),
        lambda r: [
            S(r.normal((2, 3, 4)), r.normal((4, 3, 2)), [2, 1], [0, 1]),
            S(r.normal((2, 3)), r.normal((2, 3)), [0], [0]),
            S(r.normal((2, 3)), r.normal(2), [], []),
            S(r.complex((2, 3)), r.complex((3, 2)), [1], [0]),
        ],
        dtypes=MIXED,
        rtol=4,
        errors=[
            E(S(np.ones(2), np.ones(3), [0], [0]), RuntimeError, "equal sizes"),
            E(S(np.ones(2), np.ones(2), [0], []), RuntimeError, "equally long"),
        ],
    ),
    Op(
        "addmm",
        _plus(np.matmul),
        lambda r: [
            S(r.normal((3, 5)), r.normal((3, 4)), r.normal((4, 5))),
            S(r.normal(5), r.normal((3, 4)), r.normal((4, 5)), beta=2, alpha=3),
            S(r.normal((3, 5)), r.normal((3, 4)), r.normal((4, 5)), beta=0),
            S(r.complex((2, 2)), r.complex((2, 3)), r.complex((3, 2)), beta=2 - 1j, alpha=1j),
        ],
        dtypes=MIXED,
        rtol=6,
        errors=[E(S(np.ones((3, 3)), np.ones((2, 2)), np.ones((2, 2))), RuntimeError, "broadcast")],
    ),
    Op(
        "addmv",
        _plus(np.matmul),
        lambda r: [
            S(r.normal(3), r.normal((3, 4)), r.normal(4)),
            S(r.normal(()), r.normal((3, 4)), r.normal(4), beta=0.5, alpha=2),
        ],
        dtypes=FLOATS,
        rtol=6,
        errors=[E(S(np.ones(3), np.ones(3), np.ones(3)), RuntimeError, "2 and 1 dimensions")],
    ),
    Op(
        "addr",
        _plus(np.outer),
        lambda r: [
            S(r.normal((3, 4)), r.normal(3), r.normal(4)),
            S(r.normal((3, 1)), r.normal(3), r.normal(4), beta=0.5, alpha=2),
            S(r.normal((3, 4)), r.normal(3), r.normal(4), beta=0),
        ],
        dtypes=FLOATS,
        rtol=6,
        errors=[E(S(np.ones((3, 3)), np.ones(2), np.ones(2)), RuntimeError, "broadcast")],
    ),
    Op(
        "addbmm",
        _plus(lambda a, b: np.einsum("bij,bjk->ik", a, b)),
        lambda r: [
            S(r.normal((3, 5)), r.normal((2, 3, 4)), r.normal((2, 4, 5))),
            S(r.normal((3, 5)), r.normal((2, 3, 4)), r.normal((2, 4, 5)), beta=2, alpha=0.5),
        ],
        dtypes=FLOATS,
        rtol=6,
        errors=[E(S(np.ones((3, 3)), np.ones((2, 2)), np.ones((2, 2))), RuntimeError, "batches")],
    ),
    Op(
        "baddbmm",
        _plus(np.matmul),
        lambda r: [
            S(r.normal((2, 3, 5)), r.normal((2, 3, 4)), r.normal((2, 4, 5))),
            S(r.normal((3, 1)), r.normal((2, 3, 4)), r.normal((2, 4, 5)), beta=2, alpha=0.5),
        ],
        dtypes=FLOATS,
        rtol=6,
        errors=[
            E(S(np.ones((3, 3)), np.ones((2, 2)), np.ones((2, 2))), RuntimeError, "dimensions")
        ],
    ),
    Op(
        "nn.functional.linear",
        _linear,
        lambda r: [
            S(r.normal((2, 3, 4)), r.normal((5, 4)), r.normal(5)),
            S(r.normal(4), r.normal((5, 4))),
            S(r.normal((3, 4)), r.normal(4)),
            S(r.complex((2, 3)), r.complex((4, 3)), r.complex(4)),
        ],
        dtypes=MIXED,
        rtol=6,
        errors=[
            E(S(np.ones((2, 3)), np.ones((4, 5))), RuntimeError, "must equal weight.shape"),
            E(S(np.ones((2, 3)), np.ones((4, 3)), np.ones(5)), RuntimeError, "bias"),
        ],
    ),
    Op(
        "nn.functional.bilinear",
        _bilinear,
        lambda r: [
            S(r.normal((2, 3)), r.normal((2, 4)), r.normal((5, 3, 4)), r.normal(5)),
            S(r.normal((2, 2, 3)), r.normal((2, 2, 4)), r.normal((1, 3, 4))),
        ],
        rtol=6,
        errors=[E(S(np.ones(2), np.ones(2), np.ones((2, 2))), RuntimeError, "3 dimensions")],
    ),
]
