"""Samples of views: new shapes, orders and parts of the same elements."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, E, Op, S, of_each_kind

DTYPES = FLOATS + COMPLEX
INTS = ("int64", "uint8", "uint16", "uint64")


def movedim(x: Any, source: Any, destination: Any) -> Any:
    return np.moveaxis(x, source, destination)


def squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return np.squeeze(x)
    dims = [d % max(x.ndim, 1) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    return np.squeeze(x, tuple(d for d in dims if x.ndim and x.shape[d] == 1))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(
        *x.shape[:start],
        -1 if x.size else int(np.prod(x.shape[start : end + 1])),
        *x.shape[end + 1 :],
    )


def unflatten(x: Any, dim: int, sizes: Any) -> Any:
    dim %= x.ndim
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def expand(x: Any, *size: Any) -> Any:
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    lead = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if s == -1 else s for i, s in enumerate(size)])


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    start = start + x.shape[dim] if start < 0 else start
    return np.take(x, range(start, start + length), axis=dim)


def slice_(x: Any, dim: int = 0, start: int = 0, end: int = 2**62, step: int = 1) -> Any:
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, end, step)
    return x[tuple(key)]


def put(size: Any, g: Any, pick: Any) -> Any:
    """Zeros with g where `pick` reads from them."""
    places = pick(np.arange(int(np.prod(size))).reshape(size))
    out = np.zeros(int(np.prod(size)), dtype=g.dtype)
    np.add.at(out, places.ravel(), g.ravel())
    return out.reshape(size)


def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[:size]
    dimension %= x.ndim
    windows = [
        np.take(x, range(i, i + size), axis=dimension)
        for i in range(0, x.shape[dimension] - size + 1, step)
    ]
    return np.moveaxis(np.stack(windows, axis=dimension), dimension + 1, -1)


def split(x: Any, size: Any, dim: int = 0) -> Any:
    if isinstance(size, int):
        cuts = list(range(size, x.shape[dim], size)) if size else []
    else:
        cuts = list(np.cumsum(size)[:-1])
    return tuple(np.split(x, cuts, axis=dim))


def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    n = x.shape[dim]
    return split(x, -(-n // chunks), dim) if n else (x,) * chunks


def as_strided(x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    flat = x.ravel()
    out = np.zeros(size, dtype=x.dtype)
    for at in np.ndindex(*size):
        out[at] = flat[(storage_offset or 0) + sum(i * s for i, s in zip(at, stride))]
    return out


def getitem(x: Any, start: Any, step: Any, length: Any, added: int = 0) -> Any:
    key: list[Any] = []
    kept = 0

    def fill() -> None:
        nonlocal kept
        while added >> kept & 1:
            key.append(None)
            kept += 1

    for s, t, n in zip(start, step, length):
        if t == 0:
            key.append(s)
        else:
            fill()
            key.append(slice(s, s + (n - 1) * t + 1 if n else s, t))
            kept += 1
    fill()
    return x[tuple(key)]


def contiguous(x: Any) -> Any:
    return x


basic = functools.partial(of_each_kind, shape=(2, 3, 4))


def op(name: str, reference: Any, samples: Any, errors: Any = (), **options: Any) -> Op:
    options.setdefault("why", "view")
    return Op(
        name, reference, samples, dtypes=DTYPES, integers=INTS, errors=list(errors), **options
    )


X = np.zeros((2, 3))
X3 = np.zeros((2, 3, 4))

OPS = [
    op(
        "_adopt",
        None,
        lambda r: [],
        [E(S(X, X), RuntimeError, "view of the first")],
        grad=False,
        inplace=False,
        out=False,
        why="needs a tensor and a view of it; test_index_functions checks squeeze_ and the others",
    ),
    op(
        "view",
        lambda x, *s: x.reshape(*s),
        lambda r: [
            *basic(r, S(6, 4), S(-1), S((2, -1, 2)), S(2, 3, 1, 4)),
            S(r.normal(()), 1, 1),
            S(r.normal((0, 3)), 3, 0),
            S(r.normal((1,)), ()),
        ],
        [
            E(S(X, 4, 2), RuntimeError, "invalid"),
            E(S(X, -1, -1), RuntimeError, "only one dimension"),
            E(S(X, -1, 4), RuntimeError, "invalid"),
            E(S(np.zeros((0, 3)), -1, 0), RuntimeError, "ambiguous"),
            E(S(X, -2, 3), RuntimeError, "at least 0"),
        ],
    ),
    op(
        "reshape",
        lambda x, *s: x.reshape(*s),
        lambda r: [
            *basic(r, S((6, 4)), S(-1), S(4, -1)),
            S(r.normal(()), (1,)),
            S(r.normal((0, 3)), (3, 0)),
        ],
        [E(S(X, (4,)), RuntimeError, "invalid")],
    ),
    op(
        "contiguous",
        contiguous,
        lambda r: [S(r.normal((2, 3))), S(r.complex((2, 3))), S(r.normal(()))],
    ),
    op(
        "_contiguous",
        contiguous,
        lambda r: [S(r.normal((2, 3))), S(r.complex((2, 3))), S(r.normal(()))],
        why="",
    ),
    op(
        "view_as",
        lambda x, o: x.reshape(o.shape),
        lambda r: [S(r.normal((2, 3)), r.normal((6,))), S(r.complex((2, 3)), r.complex((6,)))],
    ),
    op(
        "reshape_as",
        lambda x, o: x.reshape(o.shape),
        lambda r: [S(r.normal((2, 3)), r.normal((6,))), S(r.complex((2, 3)), r.complex((6,)))],
    ),
    op("ravel", np.ravel, lambda r: [*basic(r, S()), S(r.normal(())), S(r.normal((0, 2)))]),
    op(
        "flatten",
        flatten,
        lambda r: [
            *basic(r, S(), S(1), S(0, 1), S(1, 1), S(-2, -1)),
            S(r.normal(())),
            S(r.normal((0, 2))),
        ],
        [E(S(X3, 2, 1), RuntimeError, "start_dim"), E(S(X, 5), IndexError, "out of range")],
    ),
    op(
        "unflatten",
        unflatten,
        lambda r: basic(r, S(2, (2, 2)), S(-1, (2, -1)), S(0, (1, 2))),
        [E(S(X, 1, (2, 2)), RuntimeError, "invalid"), E(S(X, 1, ()), RuntimeError, "empty")],
    ),
    op(
        "permute",
        lambda x, *d: x.transpose(*d),
        lambda r: [*basic(r, S(2, 0, 1), S((0, -1, 1))), S(r.normal(()), ())],
        [
            E(S(X, 0), RuntimeError, "once"),
            E(S(X, 0, 0), RuntimeError, "once"),
            E(S(X, 0, 2), IndexError, "out of range"),
        ],
    ),
    op(
        "transpose",
        np.swapaxes,
        lambda r: basic(r, S(0, 1), S(-1, 0), S(1, 1)),
        [E(S(X, 0, 2), IndexError, "out of range")],
    ),
    op("swapaxes", np.swapaxes, lambda r: basic(r, S(0, 1), S(-1, 0))),
    op("swapdims", np.swapaxes, lambda r: basic(r, S(0, 1), S(-1, 0))),
    op(
        "t",
        np.transpose,
        lambda r: [S(r.normal((2, 3))), S(r.complex((2, 3))), S(r.normal((3,))), S(r.normal(()))],
        [E(S(X3), RuntimeError, "at most 2")],
    ),
    op("_T", np.transpose, lambda r: basic(r, S())),
    op(
        "_mT",
        lambda x: np.swapaxes(x, -1, -2),
        lambda r: basic(r, S()),
        [E(S(np.zeros(3)), RuntimeError, "at least 2")],
    ),
    op("adjoint", lambda x: np.swapaxes(x, -1, -2).conj(), lambda r: basic(r, S())),
    op("_mH", lambda x: np.swapaxes(x, -1, -2).conj(), lambda r: basic(r, S())),
    op(
        "_H",
        lambda x: x.T.conj(),
        lambda r: basic(r, S(), shape=(2, 3)),
        [E(S(X3), RuntimeError, "matrix")],
    ),
    op(
        "movedim",
        movedim,
        lambda r: basic(r, S(0, 2), S(-1, 0), S((0, 1), (2, 0)), S((), ())),
        [
            E(S(X, (0, 1), (0,)), RuntimeError, "equally many"),
            E(S(X, (0, 0), (0, 1)), RuntimeError, "repeat"),
        ],
    ),
    op("moveaxis", movedim, lambda r: basic(r, S(0, 2), S((0, 1), (2, 0)))),
    op(
        "expand",
        expand,
        lambda r: [
            S(r.normal((2, 1)), 2, 3),
            S(r.normal((3,)), 2, -1),
            S(r.normal(()), (2, 2)),
            S(r.complex((1,)), (3,)),
            S(r.normal((2, 1)), 0, 2, 4),
            S(r.normal((1, 2)), -1, -1),
        ],
        [
            E(S(X, 2), RuntimeError, "at least as many"),
            E(S(X, 2, 4), RuntimeError, "must be 1"),
            E(S(X, -1, 2, 3), RuntimeError, "-1"),
        ],
    ),
    op(
        "broadcast_to",
        expand,
        lambda r: [S(r.normal((2, 1)), (2, 3)), S(r.normal(()), (2,)), S(r.complex((1,)), (3,))],
        [E(S(X, (3, 3)), RuntimeError, "must be 1")],
    ),
    op(
        "expand_as",
        lambda x, o: np.broadcast_to(x, o.shape),
        lambda r: [S(r.normal((2, 1)), r.normal((2, 3))), S(r.complex((1,)), r.complex((3,)))],
    ),
    op(
        "squeeze",
        squeeze,
        lambda r: [
            *basic(r, S(), S(0), S(-1), S((0, 2)), S(1), shape=(1, 3, 1)),
            S(r.normal(()), 0),
            S(r.normal(())),
        ],
        [E(S(X, 2), IndexError, "out of range"), E(S(X, (0, 0)), RuntimeError, "twice")],
    ),
    op(
        "unsqueeze",
        np.expand_dims,
        lambda r: [*basic(r, S(0), S(-1), S(2)), S(r.normal(()), 0)],
        [E(S(X, 3), IndexError, "out of range")],
    ),
    op(
        "diagonal",
        lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
        lambda r: basic(r, S(), S(1), S(-1), S(0, 1, 2), S(2, -1, 0), S(7)),
        [E(S(np.zeros(3)), IndexError, "at least 2"), E(S(X, 0, 1, 1), RuntimeError, "differ")],
    ),
    op(
        "_diagonal_backward",
        lambda g, size, offset=0, dim1=0, dim2=1: put(
            size, g, lambda p: np.diagonal(p, offset, dim1, dim2)
        ),
        lambda r: [
            S(r.normal((4, 2)), (2, 3, 4)),
            S(r.complex((2,)), (2, 3), 1),
            S(r.normal((1,)), (2, 3), -1, 0, 1),
        ],
        [E(S(X, (2, 3)), RuntimeError, "shape")],
        why="",
    ),
    op(
        "select",
        lambda x, dim, index: np.take(x, index, axis=dim),
        lambda r: basic(r, S(0, 1), S(-1, -2), S(1, 2)),
        [
            E(S(X, 0, 2), IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
            E(S(np.array(1.0), 0, 0), IndexError, "0-d"),
            E(S(X, 0, -3), IndexError, "-3"),
            E(S(X, 2, 0), IndexError, "out of range"),
        ],
    ),
    op(
        "_select_backward",
        lambda g, size, dim, index: put(size, g, lambda p: np.take(p, index, axis=dim)),
        lambda r: [
            S(r.normal((2, 4)), (2, 3, 4), 1, 2),
            S(r.normal(()), (3,), 0, -1),
            S(r.complex((2,)), (2, 3), 1, 0),
        ],
        [
            E(S(X, (2, 3), 0, 0), RuntimeError, "shape"),
            E(S(X, (), 0, 0), IndexError, "empty"),
            E(S(X, (-1, 2, 3), 0, 0), RuntimeError, "at least 0"),
        ],
        why="",
    ),
    op(
        "_slice",
        slice_,
        lambda r: [
            *basic(r, S(), S(1, 1), S(2, -3, -1), S(2, 0, 4, 3), S(0, 5, 7), S(1, 2, 1)),
            S(r.normal((0,))),
        ],
        [
            E(S(X, 0, 0, 1, 0), ValueError, "greater than zero"),
            E(S(X, 0, 0, 1, -1), ValueError, "greater than zero"),
            E(S(np.array(1.0)), IndexError, "0-d"),
        ],
    ),
    op(
        "_slice_backward",
        lambda g, size, dim, start, end, step: put(
            size, g, lambda p: slice_(p, dim, start, end, step)
        ),
        lambda r: [
            S(r.normal((2, 2)), (2, 4), 1, 0, 4, 2),
            S(r.normal((1, 3)), (2, 3), 0, -1, 9, 1),
            S(r.complex((2,)), (4,), 0, 1, 3, 1),
        ],
        [E(S(X, (2, 3), 0, 0, 1, 1), RuntimeError, "shape")],
        why="",
    ),
    op(
        "narrow",
        narrow,
        lambda r: basic(r, S(0, 1, 1), S(2, 1, 3), S(-1, -2, 2), S(1, 3, 0)),
        [
            E(S(X, 1, 2, 2), RuntimeError, "exceeds"),
            E(S(X, 1, 0, -1), RuntimeError, "negative"),
            E(S(X, 1, 4, 0), IndexError, "out of bounds"),
            E(S(np.array(1.0), 0, 0, 1), RuntimeError, "0-d"),
        ],
    ),
    op(
        "unbind",
        lambda x, dim=0: tuple(np.moveaxis(x, dim, 0)),
        lambda r: [*basic(r, S(), S(1), S(-1)), S(r.normal((0, 2)), 1)],
        [E(S(np.array(1.0)), IndexError, "0-d")],
    ),
    op(
        "split",
        split,
        lambda r: basic(r, S(1), S(2, 1), S(3, 2), S([1, 2], 1), S((4,), -1), S(9)),
        [
            E(S(X, 0), RuntimeError, "positive"),
            E(S(X, [1, 2]), RuntimeError, "sum to"),
            E(S(X, [3, -1]), RuntimeError, "sum to|negative"),
            E(S(np.array(1.0), 1), RuntimeError, "at least one"),
        ],
    ),
    op(
        "split_with_sizes",
        split,
        lambda r: basic(r, S([1, 1]), S([1, 0, 2], 1)),
        [E(S(X, [1]), RuntimeError, "sum to")],
    ),
    op(
        "chunk",
        chunk,
        lambda r: [*basic(r, S(2), S(2, 1), S(3, 2), S(9, -1)), S(r.normal((0, 2)), 3)],
        [
            E(S(X, 0), RuntimeError, "greater than 0"),
            E(S(np.array(1.0), 1), RuntimeError, "at least one"),
        ],
    ),
    op(
        "tensor_split",
        lambda x, n, dim=0: tuple(
            np.array_split(x, n if isinstance(n, int) else [int(i) for i in n], axis=dim)
        ),
        lambda r: basic(r, S(2), S(3, 2), S([1, 2], 1), S([], 0), S((0, 9), -1)),
        [
            E(S(X, 0), RuntimeError, "greater than 0"),
            E(S(np.array(1.0), 2), RuntimeError, "at least one"),
        ],
    ),
    op(
        "hsplit",
        lambda x, n: tuple(np.hsplit(x, n)),
        lambda r: [*basic(r, S(3), S([1, 2])), S(r.normal((4,)), 2)],
        [E(S(X, 2), RuntimeError, "divide"), E(S(np.array(1.0), 1), RuntimeError, "at least 1")],
    ),
    op(
        "vsplit",
        lambda x, n: tuple(np.vsplit(x, n)),
        lambda r: basic(r, S(2), S([1])),
        [E(S(np.zeros(4), 2), RuntimeError, "at least 2")],
    ),
    op(
        "dsplit",
        lambda x, n: tuple(np.dsplit(x, n)),
        lambda r: basic(r, S(2), S([1, 3])),
        [E(S(X, 1), RuntimeError, "at least 3")],
    ),
    op(
        "unfold",
        unfold,
        lambda r: [
            *basic(r, S(2, 2, 1), S(-1, 3, 2), S(1, 3, 1), S(2, 2, 7)),
            S(r.normal(()), 0, 1, 1),
        ],
        [
            E(S(X, 1, 4, 1), RuntimeError, "between 0 and 3"),
            E(S(X, 1, 2, 0), RuntimeError, "positive"),
        ],
    ),
    op(
        "_unfold_backward",
        lambda g, size, dim, n, step: put(size, g, lambda p: unfold(p, dim, n, step)),
        lambda r: [S(r.normal((2, 3, 2)), (2, 4), 1, 2, 1), S(r.complex((2, 3)), (5,), 0, 3, 2)],
        [E(S(X, (2, 3), 0, 1, 1), RuntimeError, "shape")],
        why="",
    ),
    op(
        "as_strided",
        as_strided,
        lambda r: [
            S(r.normal((2, 3)), (2, 2), (1, 2)),
            S(r.normal((6,)), (3, 3), (1, 1), 1),
            S(r.complex((4,)), (2,), (2,)),
            S(r.normal((2, 3)), (), ()),
            S(r.normal((3,)), (2, 4), (1, 0)),
        ],
        [
            E(S(X, (3, 3), (3, 1)), RuntimeError, "beyond the storage"),
            E(S(X, (2,), (1, 1)), RuntimeError, "equally long"),
            E(S(X, (2,), (-1,)), RuntimeError, "negative"),
            E(S(X, (2,), (1,), -1), RuntimeError, "negative"),
            E(S(X, (2**40, 2**40), (2**40, 1)), RuntimeError, "beyond what an int64"),
        ],
        why="view; strides matter: left out of the strided test with the random ones",
    ),
    op(
        "_as_strided",
        lambda x, size, stride, offset, in_stride: as_strided(x, size, stride, offset),
        lambda r: [
            S(r.normal((2, 3)), (2, 2), (1, 2), 1, (3, 1)),
            S(r.complex((4,)), (2,), (2,), 0, (1,)),
        ],
        why="view; strides matter: left out of the strided test with the random ones",
    ),
    Op(
        "_restride",
        None,
        lambda r: [
            S(r.normal((2, 3)), (1, 1), 0, (4,), (1,), 0),
            S(r.normal((3,)), (2,), 1, (2, 2), (2, 1), 0),
            S(r.normal((3,)), (1,), 0, (2, 3), (0, 1), 0, 1),
            S(r.normal((2, 3)), (0, 1), 0, (3,), (1,), 0, 2),
        ],
        out=False,
        why="as_strided's gradient; its own derivatives and test_index_functions check it",
    ),
    op(
        "_getitem",
        getitem,
        lambda r: [
            *basic(
                r,
                S((1, 0, 1), (0, 2, 1), (1, 2, 3)),
                S((0, 1, 3), (1, 0, 0), (2, 1, 1), 5),
                S((0, 0, 0), (1, 1, 1), (2, 3, 4)),
            ),
            S(r.normal(()), (), (), (), 1),
        ],
        [
            E(S(X, (0,), (1,), (1,)), RuntimeError, "one entry"),
            E(S(X, (0, 2), (1, 1), (2, 2)), IndexError, "beyond"),
            E(S(X, (0, -1), (1, 1), (2, 2)), IndexError, "beyond"),
        ],
    ),
    op(
        "_getitem_backward",
        lambda g, size, *part: put(size, g, lambda p: getitem(p, *part)),
        lambda r: [
            S(r.normal((2, 3)), (2, 3, 4), (1, 0, 1), (0, 2, 1), (1, 2, 3), 0),
            S(r.complex((2, 1)), (2, 2), (0, 1), (1, 0), (2, 1), 2),
        ],
        [E(S(X, (2, 4), (0, 0), (1, 1), (2, 4), 0), RuntimeError, "shape")],
        why="",
    ),
    Op(
        "view_as_real",
        lambda x: np.stack([x.real, x.imag], -1),
        lambda r: [S(r.complex((2, 3))), S(r.complex(()))],
        dtypes=COMPLEX,
        errors=[E(S(X), RuntimeError, "complex")],
        why="view",
    ),
    Op(
        "view_as_complex",
        lambda x: x[..., 0] + 1j * x[..., 1],
        lambda r: [S(r.normal((2, 3, 2))), S(r.normal((2,)))],
        dtypes=("float32", "float64"),
        errors=[E(S(X), RuntimeError, "size 2")],
        why="view; strides matter: left out of the strided test with the random ones",
    ),
]
