"""Samples of repeating, reversing, triangles, diagonals and padding."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, S, of_each_kind

DTYPES = FLOATS + COMPLEX
INTS = ("int64", "uint8", "uint16", "uint64")
X = np.zeros((2, 3))
V = np.zeros(3)


def args_of(values: Any) -> Any:
    return values[0] if len(values) == 1 and isinstance(values[0], (tuple, list)) else values


def tile(x: Any, *n: Any) -> Any:
    return np.tile(x, args_of(n))


def repeat_interleave(x: Any, n: Any, dim: Any = None, output_size: Any = None) -> Any:
    return np.repeat(x, n, axis=dim)


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    return np.roll(x, shifts, dims)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), dtype=x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def constant_pad(x: Any, pad: Any, value: Any = 0) -> Any:
    before = [0] * x.ndim
    after = [0] * x.ndim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    if not x.ndim:
        return x
    x = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, x.shape))]
    return np.pad(
        x, [(max(b, 0), max(a, 0)) for b, a in zip(before, after)], constant_values=value or 0
    )


def pad_mode(x: Any, pad: Any, mode: str) -> Any:
    width = [(0, 0)] * (x.ndim - len(pad) // 2) + [
        (pad[2 * i], pad[2 * i + 1]) for i in reversed(range(len(pad) // 2))
    ]
    return np.pad(x, width, mode={"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    return constant_pad(x, pad, value) if mode == "constant" else pad_mode(x, pad, mode)


def meshgrid(tensors: Any, indexing: Any = None) -> Any:
    return tuple(np.meshgrid(*tensors, indexing=indexing or "ij"))


def op(name: str, reference: Any, samples: Any, errors: Any = (), **options: Any) -> Op:
    return Op(
        name, reference, samples, dtypes=DTYPES, integers=INTS, errors=list(errors), **options
    )


some = functools.partial(of_each_kind, shape=(2, 3))


MODES = [
    S((1, 2), "reflect"),
    S((2, 0), "replicate"),
    S((2, 1), "circular"),
    S((1, 1, 1, 0), "reflect"),
    S((1, 0, 2, 2), "circular"),
    S((0, 3, 1, 0), "replicate"),
]

OPS = [
    op(
        "repeat",
        tile,
        lambda r: [*some(r, S(2, 1), S((1, 2, 2)), S(1, 1), S(0, 2)), S(r.normal(()), 3)],
        [E(S(X, 2), RuntimeError, "at least"), E(S(X, 2, -1), RuntimeError, "negative")],
    ),
    op(
        "tile",
        tile,
        lambda r: [*some(r, S((2, 1)), S((2,)), S((2, 1, 2)), S(2, 2)), S(r.normal(()), (2,))],
        [E(S(X, (-1,)), RuntimeError, "negative")],
    ),
    Op(
        "repeat_interleave",
        repeat_interleave,
        lambda r: [
            *some(r, S(2), S(2, 1), S(3, dim=-2), S(0, 0), S(1, 0)),
            S(r.normal((2, 3)), np.array([1, 0, 2]), 1),
            S(r.normal((3,)), np.array(2), output_size=6),
            S(r.normal((3,)), np.array([2]), 0),
        ],
        dtypes=DTYPES,
        why="data",
        out=False,
        errors=[
            E(S(X, -1), RuntimeError, "negative"),
            E(S(X, np.array([1, 2]), 1), RuntimeError, "one element or 3"),
            E(S(X, 2, output_size=5), RuntimeError, "output_size"),
            E(S(X, V, 1), RuntimeError, "int64"),
        ],
    ),
    op(
        "flip",
        lambda x, *d: np.flip(x, args_of(d)),
        lambda r: [
            *some(r, S((0,)), S((0, 1)), S(1), S(-1, 0), S(())),
            S(r.normal(()), ()),
            S(r.normal((0, 2)), (0,)),
        ],
        [E(S(X, (0, 0)), RuntimeError, "twice"), E(S(X, (2,)), IndexError, "out of range")],
    ),
    op("fliplr", np.fliplr, lambda r: some(r, S()), [E(S(V), RuntimeError, "at least 2")]),
    op(
        "flipud",
        np.flipud,
        lambda r: [*some(r, S()), S(r.normal((3,)))],
        [E(S(np.array(1.0)), RuntimeError, "at least 1")],
    ),
    op(
        "roll",
        roll,
        lambda r: [
            *some(r, S(1), S(-2, 1), S((1, 2), (0, 1)), S(7, 0), S(0, 1), S((1, 1), (1, 1))),
            S(r.normal((0, 2)), 1, 0),
        ],
        [
            E(S(X, (1, 2)), RuntimeError, "one shift"),
            E(S(X, (1, 2), (0,)), RuntimeError, "equally long"),
            E(S(X, (), ()), RuntimeError, "empty"),
            E(S(X, 1, 2), IndexError, "out of range"),
        ],
    ),
    op(
        "rot90",
        lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
        lambda r: some(r, S(), S(2), S(3), S(-1), S(4), S(1, (1, 0))),
        [
            E(S(X, 1, (0, 0)), RuntimeError, "differ"),
            E(S(X, 1, (0,)), RuntimeError, "two"),
            E(S(V), RuntimeError, "at least 2"),
        ],
    ),
    op(
        "tril",
        lambda x, diagonal=0: np.tril(x, diagonal),
        lambda r: [
            *some(r, S(), S(1), S(-1), S(9), S(diagonal=-9), shape=(3, 4)),
            S(r.normal((2, 2, 3))),
            S(r.normal((0, 3))),
        ],
        [E(S(V), RuntimeError, "at least 2")],
    ),
    op(
        "triu",
        lambda x, diagonal=0: np.triu(x, diagonal),
        lambda r: [
            *some(r, S(), S(1), S(-1), S(9), S(diagonal=-9), shape=(3, 4)),
            S(r.normal((2, 2, 3))),
            S(r.normal((0, 3))),
        ],
        [E(S(V), RuntimeError, "at least 2")],
    ),
    op(
        "diag_embed",
        diag_embed,
        lambda r: [*some(r, S(), S(1), S(-2), S(0, 0, 2), S(1, 2, 1)), S(r.normal((2,)))],
        [E(S(np.array(1.0)), RuntimeError, "at least 1"), E(S(X, 0, 1, 1), RuntimeError, "differ")],
    ),
    op(
        "diag",
        lambda x, diagonal=0: np.diag(x, diagonal),
        lambda r: [*some(r, S(), S(1), S(-1), S(5)), S(r.normal((3,))), S(r.normal((2,)), -1)],
        [
            E(S(np.array(1.0)), RuntimeError, "1 or 2"),
            E(S(np.zeros((1, 1, 1))), RuntimeError, "1 or 2"),
        ],
    ),
    op(
        "diagflat",
        lambda x, offset=0: np.diagflat(x, offset),
        lambda r: [*some(r, S(), S(1)), S(r.normal(()))],
    ),
    op(
        "meshgrid",
        meshgrid,
        lambda r: [
            S([r.normal((2,)), r.normal((3,))]),
            S([r.normal((2,)), r.normal((3,)), r.normal((1,))], indexing="xy"),
            S([r.normal((2,))], indexing="ij"),
            S([r.complex((2,)), r.complex((2,))]),
        ],
        [
            E(S([X]), RuntimeError, "at most one"),
            E(S([]), RuntimeError, "non-empty"),
            E(S([V, V.astype(np.int64)]), RuntimeError, "one dtype"),
            E(S([V, None]), TypeError, "None"),
            E(S([V], indexing="yx"), RuntimeError, "'ij' or 'xy'"),
        ],
        why="view",
    ),
    op(
        "_constant_pad",
        constant_pad,
        lambda r: [
            *some(r, S((1, 2)), S((1, 0, 0, 2), 1.5), S((-1, 1)), S((0, -2, -1, 3), 2)),
            S(r.normal(()), ()),
            S(r.normal((0,)), (1, 1)),
        ],
        [
            E(S(X, (1,)), RuntimeError, "even"),
            E(S(X, (1, 1, 1, 1, 1, 1)), RuntimeError, "at most twice"),
            E(S(X, (-4, 0)), RuntimeError, "negative size"),
            E(S(X, (-2, -2)), RuntimeError, "negative size"),
            E(S(X, (2**62, 2**62)), RuntimeError, "large|memory|size"),
        ],
    ),
    op(
        "_pad_mode",
        pad_mode,
        lambda r: (
            [S(r.normal((1, 2, 3) if len(c.args[0]) == 2 else (1, 3, 4)), *c.args) for c in MODES]
            + [S(r.complex((2, 4)), (2, 1), "reflect")]
        ),
        [
            E(S(np.zeros((1, 1, 3)), (3, 0), "reflect"), RuntimeError, "at most 2"),
            E(S(np.zeros((1, 1, 3)), (4, 0), "circular"), RuntimeError, "at most 3"),
            E(S(V, (1, 1, 1, 1), "reflect"), RuntimeError, "last 1, 2 or 3"),
            E(S(X, (1, 1), "mirror"), NotImplementedError, "unrecognised"),
            E(S(np.zeros((1, 0)), (1, 1), "replicate"), RuntimeError, "must have elements"),
            E(S(np.zeros((1, 1, 3)), (0, -(2**63)), "replicate"), RuntimeError, "leaves nothing"),
        ],
    ),
    op(
        "nn.functional.pad",
        pad,
        lambda r: [
            *some(r, S((1, 2)), S((1, 0, 0, 2), value=1.5), S((-1, 1), "constant", 2.0)),
            *[S(r.normal((1, 2, 3) if len(c.args[0]) == 2 else (1, 3, 4)), *c.args) for c in MODES],
        ],
        [
            E(S(X, (1, 1), "reflect", 1.0), RuntimeError, "mode 'constant'"),
            E(S(X, (1, 1), "mirror"), NotImplementedError, "unrecognised"),
            E(S(V, (1, 1), "reflect"), NotImplementedError, "one or two more"),
        ],
    ),
]
