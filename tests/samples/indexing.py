"""Samples of indexing by tensors: gather, scatter, index_*, take, put, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, Rng, S, ids

DTYPES = FLOATS + COMPLEX
INTS = ("int64", "int32")
X = np.zeros((2, 3))
V = np.zeros(3)


def along(index: Any, dim: int) -> Any:
    """The full coordinates of an index along dim."""
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


def gather(x: Any, dim: int, index: Any) -> Any:
    if x.ndim == 0:
        return np.full(index.shape, x)
    if index.size == 0:
        return np.zeros(index.shape)
    return x[along(index, dim)]


def scatter(
    x: Any, dim: int, index: Any, src: Any, reduce: str = "", include_self: bool = True
) -> Any:
    out = np.array(x, copy=True).reshape(x.shape or (1,))
    index = index.reshape(index.shape or (1,))
    src = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src
    cells: dict[Any, list[Any]] = {}
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = int(index[at])
        cells.setdefault(tuple(to), []).append(src[at])
    for to, values in cells.items():
        if include_self and reduce:
            values = [out[to], *values]
        f = {
            "": lambda v: v[-1],
            "add": sum,
            "sum": sum,
            "multiply": np.prod,
            "prod": np.prod,
            "amax": max,
            "amin": min,
        }
        if reduce == "mean":
            out[to] = (
                sum(values) // len(values) if out.dtype.kind in "iu" else sum(values) / len(values)
            )
        else:
            out[to] = f[reduce](values)
    return out.reshape(x.shape)


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    return scatter(x, dim, index, src, "add")


def key(x: Any, dim: int, index: Any) -> Any:
    return (slice(None),) * (dim % max(x.ndim, 1)) + (index,)


def index_add(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    out = np.array(x, copy=True)
    np.add.at(out, key(x, dim, index), source * alpha)
    return out


def index_write(x: Any, dim: int, index: Any, source: Any) -> Any:
    out = np.array(x, copy=True)
    out[key(x, dim, index)] = source
    return out


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    out = np.array(x, copy=True).ravel()
    if accumulate:
        np.add.at(out, index.ravel(), source.ravel())
    else:
        out[index.ravel()] = source.ravel()
    return out.reshape(x.shape)


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out = np.broadcast_to(x, shape).copy()
    mask = np.broadcast_to(mask, shape)
    out[mask] = source.ravel()[: mask.sum()]
    return out


def take_along_dim(x: Any, index: Any, dim: Any = None) -> Any:
    return x.ravel()[index.ravel()] if dim is None else np.take_along_axis(x, index, dim)


def index_at(x: Any, places: Any, dims: Any) -> Any:
    coordinates = np.unravel_index(places, [x.shape[d] for d in dims])
    full: list[Any] = [slice(None)] * x.ndim
    for d, c in zip(dims, coordinates):
        full[d] = c
    return x[tuple(full)]


def index_put(x: Any, values: Any, places: Any, dims: Any, accumulate: bool = False) -> Any:
    flat = index_at(np.arange(x.size).reshape(x.shape), places, dims)
    return put(x, flat, np.broadcast_to(values, flat.shape), accumulate)


def index_put_at(x: Any, values: Any, indices: Any, accumulate: bool = False) -> Any:
    key = tuple(slice(None) if i is None else i for i in indices)
    places = np.arange(x.size).reshape(x.shape)[key]
    return put(x, places, np.broadcast_to(values, places.shape), accumulate)


def places(indices: Any, sizes: Any, dims: Any, shape: Any, negative: bool, name: str) -> Any:
    index = np.broadcast_arrays(*indices, np.zeros(shape, np.int64))[:-1]
    counted = [np.where(i < 0, i + n, i) for i, n in zip(index, sizes, strict=True)]
    return np.ravel_multi_index(counted, sizes)


def scatter_samples(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4)), 0, ids([0, 2, 1, 2], [1, 0, 0, 1]), r.normal((2, 4))),
        S(r.normal((2, 3)), 1, ids([0, 2], [1, 0]), r.normal((2, 3))),
        S(r.normal((3,)), -1, ids(2, 0), r.normal((2,))),
        S(r.normal(()), 0, np.array(0), r.normal(())),
        S(r.normal((2, 3)), 1, np.zeros((0, 3), dtype=np.int64), r.normal((0, 3))),
        S(r.complex((3,)), 0, ids(1), r.complex((1,))),
    ]


def reduce_samples(r: Rng) -> list[S]:
    out = []
    for name in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            # A wide spread, so that no finite difference meets a tie.
            out.append(
                S(
                    r.distinct((3,)) * 2,
                    0,
                    ids(0, 0, 2, 0),
                    r.distinct((4,)) * 2 + 0.05,
                    name,
                    include_self=include,
                )
            )
        out.append(
            S(
                r.distinct((2, 3)) * 2,
                1,
                ids([0, 0, 2], [1, 1, 1]),
                r.distinct((2, 4)) * 2 + 0.05,
                name,
            )
        )
    out.append(S(r.complex((2,)), 0, ids(0, 0, 1), r.complex((3,)), "prod"))
    out.append(S(r.complex((2,)), 0, ids(0, 0, 1), r.complex((3,)), "mean", include_self=False))
    return out


BAD = ids(0, 3)


def index_errors(bad, sizes):
    """Of index_add and index_copy: PyTorch raises one kind for an index that is out of bounds, and
    one for a source of other rows.
    """
    return [
        E(
            S(X, 1, BAD, np.zeros((2, 2))),
            bad,
            "index 3 is out of bounds for dimension 1 with size 3",
        ),
        E(S(X, 1, ids(-1), np.zeros((2, 1))), bad, "index -1"),
        E(S(X, 1, ids(0), np.zeros((2, 2))), sizes, "source must have the sizes"),
        E(S(X, 2, ids(0), X), IndexError, "out of range"),
        E(S(X, 1, V, X), RuntimeError, "int64 or int32"),
        E(S(X, 1, ids(0), np.zeros((2, 1), dtype=np.int64)), RuntimeError, "dtype"),
    ]


OPS = [
    Op(
        "gather",
        gather,
        lambda r: [
            S(r.normal((3, 4)), 0, ids([0, 2, 1, 2], [1, 0, 0, 1])),
            S(r.normal((2, 3)), 1, ids([0, 2, 0, 1])),
            S(r.normal((3,)), -1, ids(2, 0, 0, 2)),
            S(r.normal(()), 0, np.array(0)),
            S(r.normal((2, 3)), 1, np.zeros((2, 0), dtype=np.int64)),
            S(r.complex((3,)), 0, ids(1, 1)),
            S(r.normal((2, 2, 3)), 1, ids([[0, 1, 1]], [[1, 0, 0]])),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(
                S(X, 0, ids([2, 0, 0])),
                RuntimeError,
                "index 2 is out of bounds for dimension 0 with size 2",
            ),
            E(S(X, 0, ids([-1, 0, 0])), RuntimeError, "index -1"),
            E(S(X, 0, ids(0)), RuntimeError, "as many dimensions"),
            E(S(X, 0, ids([0, 0, 0, 0])), RuntimeError, "larger"),
            E(S(X, 0, X), RuntimeError, "int64"),
            E(S(X, 0, ids([0, 0, 0]), sparse_grad=True), RuntimeError, "sparse_grad"),
        ],
    ),
    Op(
        "take_along_dim",
        take_along_dim,
        lambda r: [
            S(r.normal((2, 3)), ids([0], [2]), 1),
            S(r.normal((2, 3)), ids([1, 0, 1]), 0),
            S(r.normal((2, 3)), ids(5, 0)),
            S(r.complex((2, 1)), ids([1, 0], [0, 0]), 0),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, ids(0), 1), RuntimeError, "equally many"),
            E(S(X, X, 1), RuntimeError, "int64"),
        ],
    ),
    Op(
        "scatter",
        scatter,
        lambda r: [
            *scatter_samples(r),
            S(r.normal((2, 3)), 1, ids([0, 2]), 5.0),
            S(r.normal((3,)), 0, ids(1, 1), r.normal((2,)), reduce="add"),
            S(r.normal((3,)), 0, ids(1, 1), r.uniform((2,), 1, 2), reduce="multiply"),
            S(r.normal((3,)), 0, ids(0), 2.0, reduce="multiply"),
        ],
        dtypes=DTYPES,
        errors=[
            E(
                S(X, 0, ids([2, 0, 0]), X),
                RuntimeError,
                "index 2 is out of bounds for dimension 0 with size 2",
            ),
            E(S(X, 0, ids([0, 0, 0], [0, 0, 0], [0, 0, 0]), X), RuntimeError, "larger than src"),
            E(S(X, 0, ids([0, 0, 0]), X.astype(np.int64)), RuntimeError, "dtype"),
            E(S(X, 0, ids([0, 0, 0]), X, reduce="sum"), RuntimeError, "'add' or 'multiply'"),
        ],
    ),
    Op(
        "scatter_add",
        scatter_add,
        lambda r: [*scatter_samples(r), S(r.normal((2,)), 0, ids(0, 0, 0, 1), r.normal((5,)))],
        dtypes=DTYPES,
        integers=INTS,
        rtol=4,
        errors=[
            E(S(X, 0, ids([2, 0, 0]), X), RuntimeError, "index 2"),
            E(S(X, 0, ids(0), V), RuntimeError, "as many dimensions"),
        ],
    ),
    Op(
        "scatter_reduce",
        lambda x, d, i, s, f, include_self=True: scatter(x, d, i, s, f, include_self),
        reduce_samples,
        dtypes=DTYPES,
        integers=("int64",),
        rtol=8,
        errors=[
            E(S(X, 0, ids([0, 0, 0]), X, "most"), RuntimeError, "reduce must be"),
            E(S(X, 0, ids([5, 0, 0]), X, "sum"), RuntimeError, "index 5"),
            E(S(np.zeros(2) + 0j, 0, ids(0), np.zeros(2) + 0j, "amax"), RuntimeError, "real"),
        ],
    ),
    Op(
        "index_select",
        lambda x, dim, i: np.take(x, i, axis=dim) if x.ndim else x,
        lambda r: [
            S(r.normal((2, 3)), 1, ids(2, 0, 2)),
            S(r.normal((2, 3)), -2, np.array([1], dtype=np.int32)),
            S(r.normal((3,)), 0, ids()),
            S(r.normal(()), 0, ids(0)),
            S(r.complex((3,)), 0, ids(1, 1)),
            S(r.normal((2, 3, 2)), 1, ids(1, 0)),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, 1, BAD), IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
            E(S(X, 1, ids(-1)), IndexError, "index -1"),
            E(S(X, 1, V), RuntimeError, "int64 or int32"),
            E(S(X, 1, ids([0])), IndexError, "at most one"),
            E(S(X, 2, ids(0)), IndexError, "out of range"),
        ],
    ),
    Op(
        "index_add",
        index_add,
        lambda r: [
            S(r.normal((2, 3)), 1, ids(2, 0, 2), r.normal((2, 3))),
            S(r.normal((3,)), 0, ids(1), r.normal((1,)), alpha=2.5),
            S(r.complex((3,)), 0, ids(1, 1), r.complex((2,))),
            S(r.normal((3, 2)), -2, ids(0, 0, 0, 0), r.normal((4, 2)), alpha=-1),
        ],
        dtypes=DTYPES,
        rtol=4,
        errors=index_errors(RuntimeError, RuntimeError),
    ),
    Op(
        "index_copy",
        index_write,
        lambda r: [
            S(r.normal((2, 3)), 1, ids(2, 0), r.normal((2, 2))),
            S(r.normal((3,)), 0, ids(1), r.normal((1,))),
            S(r.complex((3,)), 0, ids(1, 0), r.complex((2,))),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=index_errors(IndexError, IndexError),
    ),
    Op(
        "index_fill",
        index_write,
        lambda r: [
            S(r.normal((2, 3)), 1, ids(2, 0), 1.5),
            S(r.normal((3,)), 0, ids(1), r.normal(())),
            S(r.complex((3,)), 0, ids(1, 0), r.complex(())),
        ],
        dtypes=DTYPES,
        errors=[
            E(S(X, 1, BAD, 1.0), IndexError, "index 3"),
            E(S(X, 1, ids(0), V), RuntimeError, "0-d"),
        ],
    ),
    Op(
        "take",
        lambda x, i: x.ravel()[i],
        lambda r: [
            S(r.normal((2, 3)), ids([5, 0], [-1, -6])),
            S(r.normal(()), ids(0)),
            S(r.complex((3,)), ids(1, 1)),
            S(r.normal((2,)), ids()),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, ids(6)), IndexError, "index 6 is out of bounds"),
            E(S(X, X), RuntimeError, "int64"),
        ],
    ),
    Op(
        "put",
        put,
        lambda r: [
            S(r.normal((2, 3)), ids(5, 0, -2), r.normal((3,))),
            S(r.normal((2, 3)), ids([5, 5]), r.normal((2,)), True),
            S(r.complex((3,)), ids(1), r.complex((1,))),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, ids(6), np.zeros(1)), IndexError, "index 6"),
            E(S(X, ids(0, 1), np.zeros(1)), IndexError, "equally many"),
        ],
    ),
    Op(
        "masked_select",
        lambda x, m: np.broadcast_to(x, np.broadcast_shapes(x.shape, m.shape))[
            np.broadcast_to(m, np.broadcast_shapes(x.shape, m.shape))
        ],
        lambda r: [
            S(r.normal((2, 3)), np.array([[True, False, True], [False, False, True]])),
            S(r.normal((2, 1)), np.array([True, False])),
            S(r.normal((2, 2)), np.array([[False], [True]])),
            S(r.complex((3,)), np.array([True, True, False])),
            S(r.normal((0,)), np.zeros(0, bool)),
            S(r.normal(()), np.array([True, True])),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, ids(1)), RuntimeError, "bool"),
            E(S(X, np.zeros(2, bool)), RuntimeError, "broadcast|match"),
        ],
        why="data",
    ),
    Op(
        "masked_scatter",
        masked_scatter,
        lambda r: [
            S(
                r.normal((2, 3)),
                np.array([[True, False, True], [False, False, True]]),
                r.normal((4,)),
            ),
            S(r.normal((2, 2)), np.array([True, False]), r.normal((2, 2))),
            S(r.complex((3,)), np.array([True, True, False]), r.complex((2,))),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, np.ones(3, bool), V), RuntimeError, "fewer"),
            E(S(X, ids(1), V), RuntimeError, "bool"),
        ],
        why="data",
    ),
    Op(
        "_index",
        index_at,
        lambda r: [
            S(r.normal((2, 3, 4)), ids(0, 5, 5), (0, 1)),
            S(r.normal((2, 3, 4)), ids([0, 7], [3, 3]), (0, 2)),
            S(r.normal((2, 3)), ids(2), (1,)),
            S(r.complex((3,)), ids([2, 2]), (0,)),
            S(r.normal((3, 2)), ids(), (0,)),
            S(r.normal((2, 3, 4)), np.array(3), (1, 2)),
        ],
        dtypes=DTYPES,
        integers=INTS,
        errors=[
            E(S(X, ids(3), (1,)), IndexError, "index 3"),
            E(S(X, ids(-1), (1,)), IndexError, "index -1"),
            E(S(X, ids(0), (1, 0)), RuntimeError, "increase"),
            E(S(X, ids(0), ()), RuntimeError, "at least one"),
            E(S(X, X, (0,)), IndexError, "int64"),
        ],
    ),
    Op(
        "_index_put",
        index_put,
        lambda r: [
            S(r.normal((2, 3, 4)), r.normal((3, 4)), ids(0, 5, 2), (0, 1)),
            S(r.normal((2, 3, 4)), r.normal((2, 2, 3)), ids([0, 7], [3, 3]), (0, 2), True),
            S(r.normal((2, 3)), r.normal(()), ids(2, 2), (1,), True),
            S(r.complex((3,)), r.complex((1, 2)), ids([2, 2]), (0,), True),
            S(r.normal((2, 3)), r.normal((2, 1)), ids(1, 0), (1,)),
        ],
        dtypes=DTYPES,
        integers=INTS,
        rtol=4,
        errors=[
            E(S(X, V, ids(3), (1,)), RuntimeError, "shape mismatch"),
            E(S(X, np.array(1.0), ids(3), (1,)), IndexError, "index 3"),
            E(S(X, np.array(1), ids(0), (1,)), RuntimeError, "dtypes must match"),
        ],
    ),
    Op(
        "_index_put_at",
        lambda x, v, i, accumulate=False: index_put_at(x, v, i, accumulate),
        lambda r: [
            S(r.normal((2, 3)), r.normal((2,)), [ids(0, 1), ids(2, -3)]),
            S(r.normal((2, 3)), r.normal((2, 2)), [None, ids(0, 0)], True),
            S(r.complex((3,)), r.complex(()), [ids(1, 1)], True),
        ],
        dtypes=DTYPES,
        inplace=False,
        rtol=4,
        errors=[
            E(S(X, np.array(1.0), [ids(2)]), IndexError, "index 2"),
            E(S(X, np.array(1.0), [None]), RuntimeError, "at least one"),
        ],
    ),
    Op(
        "_index_put_into",
        None,
        lambda r: [],
        grad=False,
        why="writes into its input; test_index_functions checks it as index_put_",
    ),
    Op(
        "_places",
        places,
        lambda r: [
            S([ids(0, 2, 1)], [3], [0], [3], False, "f"),
            S([ids(0, -1, 1)], [3], [0], [3], True, "f"),
            S([ids(-1, 0), ids([1], [-3])], [3, 4], [0, 1], [2, 2], True, "f"),
            S([ids()], [3], [0], [0], False, "f"),
        ],
        grad=False,
        why="data",
        errors=[
            E(S([ids(-1)], [3], [2], [1], False, "f"), IndexError, "f: index -1 .* dimension 2"),
            E(S([ids(3)], [3], [2], [1], True, "f"), IndexError, "f: index 3 .* size 3"),
            E(S([ids(0, 1)], [3], [0], [3], True, "f"), RuntimeError, "broadcast"),
            E(S([ids(0)], [], [0], [1], True, "f"), RuntimeError, "for each index"),
            E(S([V], [3], [0], [2], True, "f"), RuntimeError, "int64"),
        ],
    ),
]
