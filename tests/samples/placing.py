"""Samples of what puts a tensor into a part of another: scatters into views, index_put ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import FLOATS_32_64, E, Op, S

DTYPES = (*FLOATS_32_64, "complex128")
X = np.arange(6.0).reshape(2, 3)


def _placed(x: Any, src: Any, key: Any) -> Any:
    made = x.copy()
    made[key] = src
    return made


def _at(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * (dim % x.ndim), index)


def diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    made = x.copy()
    view = np.diagonal(made, offset, dim1, dim2)
    view.flags.writeable = True
    view[...] = src
    return made


def as_strided_scatter(x: Any, src: Any, size: Any, stride: Any, storage_offset: int = 0) -> Any:
    made = np.ascontiguousarray(x).copy()
    steps = [s * made.itemsize for s in stride]
    part = made.reshape(-1)[storage_offset:]
    np.lib.stride_tricks.as_strided(part, size, steps)[...] = src
    return made


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    made = x.copy()
    if accumulate:
        np.add.at(made, tuple(indices), values)
    else:
        made[tuple(indices)] = values
    return made


def index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    made, src = np.moveaxis(x.copy(), dim, 0), np.moveaxis(source, dim, 0)
    for row in set(index.tolist()):
        parts = src[index == row]
        if include_self:
            parts = np.concatenate([made[row][None], parts])
        kinds = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}
        made[row] = kinds[reduce](parts, 0)
    return np.moveaxis(made, 0, dim)


OPS = [
    Op(
        "select_scatter",
        lambda x, src, dim, index: _placed(x, src, _at(x, dim, index)),
        lambda r: [
            S(r.normal((2, 3)), r.normal((2,)), 1, 2),
            S(r.normal((2, 3, 2)), r.normal((2, 2)), -2, -1),
            S(r.normal((3,)), r.normal(()), 0, 1),
            S(r.normal((0, 3)), r.normal((0,)), 1, 0),
        ],
        dtypes=DTYPES,
        errors=[E(S(X, np.ones(3), 1, 0), RuntimeError, "select_scatter")],
    ),
    Op(
        "slice_scatter",
        lambda x, src, dim=0, start=None, end=None, step=1: _placed(
            x, src, _at(x, dim, slice(start, end, step))
        ),
        lambda r: [
            S(r.normal((4, 2)), r.normal((2, 2)), 0, 1, 3),
            S(r.normal((2, 5)), r.normal((2, 2)), -1, 0, 4, 2),
            S(r.normal((3,)), r.normal((3,))),
            S(r.normal((3, 2)), r.normal((1, 2)), 0, -1),
        ],
        dtypes=DTYPES,
    ),
    Op(
        "diagonal_scatter",
        diagonal_scatter,
        lambda r: [
            S(r.normal((3, 3)), r.normal((3,))),
            S(r.normal((2, 3)), r.normal((2,)), 1),
            S(r.normal((2, 3, 4)), r.normal((3, 2)), 0, 0, 2),
        ],
        dtypes=DTYPES,
    ),
    Op(
        "as_strided_scatter",
        as_strided_scatter,
        lambda r: [
            S(r.normal((3, 3)), r.normal((3,)), (3,), (3,), 1),
            S(r.normal((2, 4)), r.normal((2, 2)), (2, 2), (4, 2)),
        ],
        dtypes=DTYPES,
    ),
    Op(
        "index_put",
        index_put,
        lambda r: [
            S(r.normal((4, 3)), [np.array([0, 2])], r.normal((2, 3))),
            S(r.normal((4, 3)), [np.array([0, 3]), np.array([1, 1])], r.normal((2,))),
            S(r.normal((4, 3)), [np.array([1, 1, 0])], r.normal((3, 3)), accumulate=True),
        ],
        dtypes=DTYPES,
        out=False,  # nor has PyTorch's
    ),
    Op(
        "index_reduce",
        index_reduce,
        lambda r: (
            [
                S(r.distinct((4, 2)), 0, np.array([0, 2, 0]), r.uniform((3, 2), 1, 2), kind, **more)
                for kind in ("prod", "mean", "amax", "amin")
                for more in ({}, {"include_self": False})
            ]
            + [S(r.distinct((2, 3)), -1, np.array([1, 1]), r.uniform((2, 2), 1, 2), "prod")]
        ),
        rtol=8,
        errors=[E(S(X, 0, np.array([0]), X[:1], "sum"), RuntimeError, "index_reduce")],
    ),
    Op(
        "unravel_index",
        lambda indices, shape: tuple(np.unravel_index(indices, shape)),
        lambda r: [S(np.array([0, 5, 3]), (2, 3)), S(np.array([[7]]), (2, 2, 2))],
        grad=False,
    ),
]
