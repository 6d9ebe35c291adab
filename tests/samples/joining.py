"""Samples of cat, stack and relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, Rng, S

DTYPES = FLOATS + COMPLEX
INTS = ("int64", "uint8", "uint16", "uint64")
X = np.zeros((2, 3))


def cat(tensors: Any, dim: int = 0) -> Any:
    full = [t for t in tensors if t.shape != (0,)]
    return np.concatenate(full or tensors, axis=dim)


def cat_samples(r: Rng) -> list[S]:
    return [
        S([r.normal((2, 3)), r.normal((1, 3))]),
        S((r.normal((2, 1)), r.normal((2, 0)), r.normal((2, 3))), 1),
        S([r.normal((2, 3, 2)), r.normal((2, 1, 2))], -2),
        S([r.normal((2, 3, 1)), r.normal((2, 3, 2))], 2),
        S([r.normal((2, 2, 3, 2)), r.normal((2, 2, 1, 2))], 2),
        S([r.normal((0,)), r.normal((2, 2))], 1),
        S([r.normal((0,)), r.normal((0,))]),
        S([r.complex((2,)), r.complex((1,))]),
    ]


def like(name: str, reference: Any, shapes: Any, **options: Any) -> Op:
    def samples(r: Rng) -> list[S]:
        real = [S([r.normal(s) for s in group]) for group in shapes]
        return [*real, S([r.complex(s) for s in shapes[0]])]

    options.setdefault("errors", [])
    options["errors"] = [
        *options["errors"],
        E(S([]), RuntimeError, "non-empty"),
        E(S([X, None]), TypeError, "None|Tensors"),
    ]
    return Op(name, reference, samples, dtypes=DTYPES, integers=INTS, **options)


ERRORS = [
    E(S([]), ValueError, "non-empty"),
    E(S([X, np.zeros((3, 3))], 1), RuntimeError, "sizes must match"),
    E(S([X, np.zeros((2,))]), RuntimeError, "sizes must match"),
    E(S([np.array(1.0)]), RuntimeError, "0-d"),
    E(S([X], 2), IndexError, "out of range"),
    E(S([X, None]), TypeError, "None"),
    E(S(X), TypeError, "tuple of Tensors"),
]

OPS = [
    *[
        Op(name, cat, cat_samples, dtypes=DTYPES, integers=INTS, errors=ERRORS)
        for name in ("cat", "concat", "concatenate")
    ],
    Op(
        "_cat",
        lambda ts, dim, lengths: cat(ts, dim),
        lambda r: [S([r.normal((2, 3)), r.normal((1, 3))], 0, [2, 1])],
        dtypes=FLOATS,
        errors=[
            E(S([X], 0, [3]), RuntimeError, "sizes must match"),
            E(S([X], 0, []), RuntimeError, "one length"),
            E(S([], 0, []), RuntimeError, "non-empty"),
        ],
    ),
    Op(
        "stack",
        lambda ts, dim=0: np.stack(ts, dim),
        lambda r: [
            S([r.normal((2, 3)), r.normal((2, 3))]),
            S([r.normal((2,)), r.normal((2,)), r.normal((2,))], -1),
            S([r.normal(()), r.normal(())]),
            S([r.normal((2, 3))], 1),
            S([r.normal((0,)), r.normal((0,))]),
            S([r.complex((2,)), r.complex((2,))], 1),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S([]), RuntimeError, "non-empty"),
            E(S([X, np.zeros(2)]), RuntimeError, "equal sizes"),
            E(S([X], 3), IndexError, "out of range"),
            E(S([None]), TypeError, "None"),
        ],
    ),
    like("hstack", np.hstack, [[(2, 3), (2, 1)], [(2,), (3,)], [(), ()]]),
    like("vstack", np.vstack, [[(2, 3), (1, 3)], [(2,), (2,)], [(), ()]]),
    like("row_stack", np.vstack, [[(2, 3), (1, 3)], [(2,), (2,)], [(), ()]]),
    like("dstack", np.dstack, [[(2, 3), (2, 3)], [(2,), (2,)], [(), ()], [(1, 2, 3), (1, 2, 1)]]),
    like(
        "column_stack", np.column_stack, [[(2, 3), (2, 1)], [(2,), (2,)], [(), ()], [(2,), (2, 2)]]
    ),
]
