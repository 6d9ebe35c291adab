"""Samples of LU, LDL and least squares, and of the older names of linear algebra."""

from __future__ import annotations

import numpy as np

from samples import E, Op, S
from samples.linalg import (
    FULL_FACTOR,
    MIXED,
    ONE_TRIANGLE,
    _bad_matrix,
    _exp,
    _hermitian,
    _householder,
    _positive,
    _power,
    _rectangles,
    _regular,
    _slogdet,
    _squares,
)


def _pivots(*rows):
    return np.array(rows, np.int32)


def _one_lu(a):
    """Gauss's elimination, the largest (by LAPACK's measure) pivot of each column first."""
    lu, pivots = np.array(a), []
    for j in range(min(a.shape)):
        top = j + int(np.argmax(np.abs(lu[j:, j].real) + np.abs(lu[j:, j].imag)))
        lu[[j, top]] = lu[[top, j]]
        pivots.append(top + 1)
        for i in range(j + 1, len(a)):
            lu[i, j] /= lu[j, j]
            lu[i, j + 1 :] -= lu[i, j] * lu[j, j + 1 :]
    return lu, np.array(pivots, np.int32)


def _lu_reference(a):
    made = [_one_lu(x) for x in a.reshape(-1, *a.shape[-2:])] if a.size else []
    k = min(a.shape[-2:])
    if not made:
        return a, np.zeros((*a.shape[:-2], k), np.int32)
    pivots = np.stack([m[1] for m in made]).reshape(*a.shape[:-2], k)
    return np.stack([m[0] for m in made]).reshape(a.shape), pivots


def _unpack(lu, pivots):
    m, n = lu.shape[-2:]
    k = min(m, n)
    p = np.zeros((*lu.shape[:-2], m, m))
    for index in np.ndindex(*lu.shape[:-2]):
        order = list(range(m))
        for i, j in enumerate(pivots[index]):
            order[i], order[j - 1] = order[j - 1], order[i]
        p[index][order, range(m)] = 1
    return p, np.tril(lu, -1)[..., :k] + np.eye(m, k), np.triu(lu)[..., :k, :]


def _lu_parts(a):
    return _unpack(*_lu_reference(a))


def _lu_solve(lu, pivots, b, left=True, adjoint=False):
    p, low, up = _unpack(lu, pivots)
    a = p @ low @ up
    a = np.swapaxes(a, -1, -2).conj() if adjoint else a
    return np.linalg.inv(a) @ b if left else b @ np.linalg.inv(a)


def _lstsq(a, b, driver="gelsy"):
    vector = b.ndim < a.ndim
    m, n = a.shape[-2:]
    right = b[..., None] if vector else b
    x = np.linalg.pinv(a) @ right
    told = m > n and driver != "gelsy"
    residuals = (np.abs(a @ x - right) ** 2).sum(-2) if told else np.zeros(0)
    rank = np.full(a.shape[:-2], min(m, n)) if driver != "gels" else np.zeros(0)
    values = np.linalg.svd(a, compute_uv=False) if driver in ("gelsd", "gelss") else np.zeros(0)
    return x[..., 0] if vector else x, residuals, rank, values


def _regular_rectangles(r):
    return [
        S(_regular(r, (3, 3))),
        S(r.normal((4, 2))),
        S(r.normal((2, 2, 4))),
        S(_regular(r, (2, 2), "complex")),
        S(r.complex((3, 2))),
        S(r.complex((2, 3))),
        S(np.zeros((0, 2, 2))),
        S(np.zeros((2, 0))),
    ]


def _ormqr(a, tau, c, left=True, transpose=False):
    m, k = a.shape[-2:]
    wide = np.concatenate([a, np.zeros((*a.shape[:-1], max(m - k, 0)))], -1)[..., :m]
    q = _householder(wide, tau)
    q = np.swapaxes(q, -1, -2).conj() if transpose else q
    return q @ c if left else c @ q


def _half(a, upper, unitriangular):
    half = np.triu(a) if upper else np.tril(a)
    return half * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1]) if unitriangular else half


OPS = [
    Op(
        "cholesky",
        lambda a, upper=False: (
            np.swapaxes(np.linalg.cholesky(a), -1, -2).conj() if upper else np.linalg.cholesky(a)
        ),
        lambda r: [*_squares(_positive)(r), S(_positive(r, (2, 2)), True)],
        dtypes=MIXED,
        grad=False,
        rtol=8,
        errors=[*_bad_matrix(), E(S(-np.eye(2)), RuntimeError, "cholesky: The factorization")],
        why=ONE_TRIANGLE,
    ),
    Op(
        "cholesky_inverse",
        lambda a, upper=False: np.linalg.inv(
            np.swapaxes(np.triu(a), -1, -2).conj() @ np.triu(a)
            if upper
            else np.tril(a) @ np.swapaxes(np.tril(a), -1, -2).conj()
        ),
        lambda r: [*_squares(_regular)(r), S(_regular(r, (3, 3)), True)],
        dtypes=MIXED,
        grad=False,
        why=FULL_FACTOR,
        rtol=16,
        errors=_bad_matrix(),
    ),
    Op(
        "cholesky_solve",
        lambda b, a, upper=False: np.linalg.solve(
            np.swapaxes(np.triu(a), -1, -2).conj() @ np.triu(a)
            if upper
            else np.tril(a) @ np.swapaxes(np.tril(a), -1, -2).conj(),
            b,
        ),
        lambda r: [
            S(r.normal((3, 2)), _regular(r, (3, 3))),
            S(r.normal((2, 1, 2, 2)), _regular(r, (3, 2, 2)), True),
            S(np.zeros((0, 2)), np.zeros((0, 0))),
            S(r.complex((2, 1)), _regular(r, (2, 2), "complex")),
        ],
        dtypes=MIXED,
        grad=False,
        why=FULL_FACTOR,
        rtol=16,
        errors=[E(S(np.ones((3, 1)), np.eye(2)), RuntimeError, "Incompatible")],
    ),
    Op("det", np.linalg.det, _squares(_regular), dtypes=MIXED, rtol=16, out=False),
    Op(
        "logdet",
        lambda a: np.log(np.linalg.det(a)),
        lambda r: [*_squares(_regular)(r), S(3 * np.eye(1))],
        dtypes=MIXED,
        rtol=16,
        out=False,
        errors=_bad_matrix(),
    ),
    Op(
        "slogdet",
        _slogdet,
        lambda r: [*_squares(_regular)(r), S(-_regular(r, (3, 3)))],
        dtypes=MIXED,
        rtol=16,
    ),
    Op("inverse", np.linalg.inv, _squares(_regular), dtypes=MIXED, rtol=8),
    Op(
        "pinverse",
        np.linalg.pinv,
        lambda r: [S(r.normal((3, 2))), S(r.normal((2, 2, 3)), 1e-6), S(r.complex((2, 3)))],
        dtypes=MIXED,
        rtol=32,
        out=False,
        errors=[E(S(np.ones(3)), RuntimeError, "pinverse: The input")],
    ),
    Op(
        "matrix_power",
        _power,
        lambda r: [S(_regular(r, (2, 2)), 3), S(_regular(r, (3, 3)), -1)],
        dtypes=MIXED,
        rtol=256,
    ),
    Op(
        "matrix_exp",
        _exp,
        lambda r: [S(r.normal((2, 2))), S(r.complex((2, 2)))],
        dtypes=MIXED,
        rtol=64,
        out=False,
    ),
    Op(
        "qr",
        lambda a, some=True: tuple(np.linalg.qr(a, "reduced" if some else "complete")),
        lambda r: [*_rectangles(r), S(r.normal((2, 3)), False)],
        dtypes=MIXED,
        rtol=16,
        errors=_bad_matrix(False),
    ),
    Op(
        "geqrf",
        lambda a: (lambda h, t: (np.swapaxes(h, -1, -2), t))(*np.linalg.qr(a, "raw")),
        lambda r: _rectangles(r)[:-2],
        dtypes=MIXED,
        grad=False,
        rtol=16,
        errors=_bad_matrix(False),
    ),
    Op(
        "orgqr",
        _householder,
        lambda r: [S(r.normal((4, 3)), r.normal(3)), S(r.complex((3, 2)), r.complex(2))],
        dtypes=MIXED,
        rtol=16,
    ),
    Op(
        "ormqr",
        _ormqr,
        lambda r: [
            S(r.normal((4, 3)), r.normal(3), r.normal((4, 2))),
            S(r.normal((4, 3)), r.normal(3), r.normal((4, 2)), transpose=True),
            S(r.normal((2, 4, 3)), r.normal((2, 2)), r.normal((2, 1, 4)), left=False),
            S(r.normal((3, 3)), r.normal(3), r.normal((2, 3)), False, True),
            S(r.complex((3, 2)), r.complex(2), r.complex((3, 2)), transpose=True),
            S(r.complex((3, 2)), r.complex(2), r.complex((2, 3)), left=False),
            S(r.normal((3, 2)), r.normal(0), r.normal((3, 2))),
        ],
        dtypes=MIXED,
        rtol=64,
        errors=[E(S(np.ones((3, 2)), np.ones(2), np.ones((2, 3))), RuntimeError, "as many rows")],
    ),
    Op(
        "svd",
        lambda a, some=True: (lambda u, s, vh: (u, s, np.swapaxes(vh, -1, -2).conj()))(
            *np.linalg.svd(a, not some)
        ),
        lambda r: [
            S(r.normal((3, 3))),
            S(r.normal((2, 2, 3))),
            S(r.normal((3, 3)), some=False),
            S(np.zeros((0, 2, 3))),
        ],
        rtol=32,
        errors=_bad_matrix(False),
    ),
    Op(
        "triangular_solve",
        lambda b, a, upper=True, transpose=False, unitriangular=False: (
            np.linalg.solve(
                np.swapaxes(_half(a, upper, unitriangular), -1, -2)
                if transpose
                else _half(a, upper, unitriangular),
                b,
            ),
            np.broadcast_to(a, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:])),
        ),
        lambda r: [
            S(r.normal((3, 2)), _regular(r, (3, 3))),
            S(r.normal((3, 2)), _regular(r, (3, 3)), False, True),
            S(r.normal((3, 2)), r.normal((3, 3)), transpose=True, unitriangular=True),
            S(r.normal((2, 1, 2, 2)), _regular(r, (3, 2, 2))),
            S(r.complex((2, 1)), _regular(r, (2, 2), "complex")),
        ],
        dtypes=MIXED,
        rtol=16,
        errors=[E(S(np.ones((3, 1)), np.eye(2)), RuntimeError, "rows of b")],
    ),
    Op(
        "vander",
        lambda x, N=None, increasing=False: np.vander(x, N, increasing),
        lambda r: [S(r.normal(3)), S(r.normal(2), 4), S(r.normal(3), 2, True), S(r.complex(2))],
        dtypes=MIXED,
        integers=("int32", "int64", "uint8"),
        rtol=4,
        out=False,
        errors=[
            E(S(np.ones((2, 2))), RuntimeError, "one-dimensional"),
            E(S(np.ones(2), -1), RuntimeError, "negative"),
        ],
    ),
    Op(
        "linalg.lu_factor",
        _lu_reference,
        _regular_rectangles,
        dtypes=MIXED,
        rtol=16,
        errors=[
            *_bad_matrix(False),
            E(S(np.stack([np.eye(2), np.zeros((2, 2))])), RuntimeError, r"element 1\): U\[1,1\]"),
            E(S(np.eye(2), pivot=False), RuntimeError, "without pivoting"),
        ],
    ),
    Op(
        "linalg.lu_factor_ex",
        lambda a: (*_lu_reference(a), np.zeros(a.shape[:-2], np.int32)),
        _regular_rectangles,
        dtypes=MIXED,
        rtol=16,
        errors=[E(S(np.eye(2), pivot=False), RuntimeError, "without pivoting")],
    ),
    Op(
        "linalg.lu",
        _lu_parts,
        _regular_rectangles,
        dtypes=MIXED,
        rtol=16,
        errors=[E(S(np.eye(2), pivot=False), RuntimeError, "without pivoting")],
    ),
    Op(
        "lu",
        lambda a, pivot=True, get_infos=False: (
            *_lu_reference(a),
            *([np.zeros(a.shape[:-2], np.int32)] if get_infos else []),
        ),
        lambda r: [
            S(_regular(r, (3, 3))),
            S(_regular(r, (2, 2, 2)), get_infos=True),
            S(_regular(r, (2, 2), "complex")),
        ],
        dtypes=MIXED,
        rtol=16,
        errors=[E(S(np.eye(2), pivot=False), RuntimeError, "without pivoting")],
    ),
    Op(
        "lu_unpack",
        lambda lu, pivots, unpack_data=True, unpack_pivots=True: tuple(
            part if wanted else np.zeros(0)
            for part, wanted in zip(_unpack(lu, pivots), (unpack_pivots, unpack_data, unpack_data))
        ),
        lambda r: [
            S(r.normal((3, 3)), _pivots(3, 3, 3)),
            S(r.normal((2, 3, 2)), np.stack([_pivots(2, 3), _pivots(3, 2)])),
            S(r.normal((2, 3)), _pivots(2, 2)),
            S(r.normal((2, 2)), _pivots(1, 2), unpack_pivots=False),
            S(r.complex((2, 2)), _pivots(1, 2)),
        ],
        dtypes=MIXED,
        errors=[
            E(S(np.eye(2), np.array([1, 2])), RuntimeError, "int32"),
            E(S(np.eye(2), _pivots(1, 3)), RuntimeError, "between 1 and"),
            E(S(np.eye(2), _pivots(0, 2)), RuntimeError, "between 1 and"),
            E(S(np.eye(2), _pivots(1)), RuntimeError, "size 2"),
        ],
    ),
    Op(
        "linalg.lu_solve",
        _lu_solve,
        lambda r: [
            S(_regular(r, (3, 3)), _pivots(2, 3, 3), r.normal((3, 2))),
            S(_regular(r, (3, 3)), _pivots(2, 3, 3), r.normal((3, 2)), adjoint=True),
            S(_regular(r, (3, 3)), _pivots(2, 3, 3), r.normal((2, 3)), left=False),
            S(_regular(r, (2, 2)), _pivots(2, 2), r.normal((3, 1, 2)), left=False, adjoint=True),
            S(_regular(r, (2, 2), "complex"), _pivots(2, 2), r.complex((2, 1))),
            S(_regular(r, (2, 2), "complex"), _pivots(2, 2), r.complex((2, 1)), adjoint=True),
            S(_regular(r, (2, 2), "complex"), _pivots(2, 2), r.complex((1, 2)), left=False),
        ],
        dtypes=MIXED,
        rtol=32,
        errors=[
            E(S(np.eye(2), _pivots(1, 2), np.ones((3, 1))), RuntimeError, "AX = B"),
            E(S(np.eye(2), _pivots(1, 2), np.ones(2)), RuntimeError, "at least 2"),
        ],
    ),
    Op(
        "lu_solve",
        lambda b, lu, pivots: _lu_solve(lu, pivots, b),
        lambda r: [
            S(r.normal((3, 2)), _regular(r, (3, 3)), _pivots(2, 3, 3)),
            S(r.complex((2, 1)), _regular(r, (2, 2), "complex"), _pivots(2, 2)),
        ],
        dtypes=MIXED,
        rtol=32,
        errors=[E(S(np.ones((3, 1)), np.eye(2), _pivots(1, 2)), RuntimeError, "AX = B")],
    ),
    Op(
        "linalg.ldl_factor",
        None,
        lambda r: [*_squares(_hermitian)(r), S(_hermitian(r, (3, 3), "complex"), hermitian=True)],
        grad=False,
        errors=[*_bad_matrix(), E(S(np.zeros((2, 2))), RuntimeError, r"D\[1,1\] is zero")],
        why="the choice of exchanges is LAPACK's: products are checked in test_linalg.py",
    ),
    Op(
        "linalg.ldl_factor_ex",
        None,
        _squares(_hermitian),
        grad=False,
        errors=_bad_matrix(),
        why="the choice of exchanges is LAPACK's: products are checked in test_linalg.py",
    ),
    Op(
        "linalg.ldl_solve",
        lambda ld, pivots, b: np.linalg.solve(
            (np.tril(ld, -1) + np.eye(ld.shape[-1]))
            @ (ld * np.eye(ld.shape[-1]))
            @ np.swapaxes(np.tril(ld, -1) + np.eye(ld.shape[-1]), -1, -2),
            b,
        ),
        lambda r: [
            S(_regular(r, (3, 3)), _pivots(1, 2, 3), r.normal((3, 2))),
            S(_regular(r, (2, 2)), _pivots(1, 2), r.normal((3, 2, 1))),
            S(_regular(r, (2, 2), "complex"), _pivots(1, 2), r.complex((2, 1))),
            S(np.zeros((0, 2, 2)), np.zeros((0, 2), np.int32), np.zeros((0, 2, 1))),
        ],
        dtypes=MIXED,
        grad=False,
        rtol=32,
        errors=[
            E(S(np.eye(2), _pivots(1, 2), np.ones((3, 1))), RuntimeError, "AX = B"),
            E(S(np.eye(2), _pivots(1, 3), np.ones((2, 1))), RuntimeError, "ldl_factor"),
            E(S(np.eye(2), np.ones(2), np.ones((2, 1))), RuntimeError, "integers"),
        ],
    ),
    Op(
        "linalg.lstsq",
        _lstsq,
        lambda r: [
            S(r.normal((4, 2)), r.normal((4, 3)), driver="gelsd"),
            S(r.normal((4, 2)), r.normal((4, 3)), driver="gels"),
            S(r.normal((2, 4)), r.normal((2, 1))),
            S(r.normal((2, 3, 2)), r.normal((2, 3)), driver="gelss"),
            S(r.normal((3, 3)), r.normal(3), driver="gelsy"),
            S(r.complex((3, 2)), r.complex((3, 1)), driver="gelsd"),
        ],
        dtypes=MIXED,
        rtol=64,
        errors=[
            E(S(np.ones((2, 2)), np.ones((2, 2)), driver="x"), RuntimeError, "driver"),
            E(S(np.ones((2, 2)), np.ones(3)), RuntimeError, "should match"),
            E(S(np.ones((2, 2)), np.ones((1, 2, 2))), RuntimeError, "greater or equal"),
        ],
    ),
    Op(
        "svd_lowrank",
        None,
        lambda r: [S(r.normal((4, 2)) @ r.normal((2, 5)), 2), S(r.normal((2, 3, 2)), q=2, niter=0)],
        grad=False,
        out=False,
        errors=[E(S(np.eye(2), -1), ValueError, "q"), E(S(np.eye(2), 1, -1), ValueError, "niter")],
        why="random",
    ),
    Op(
        "pca_lowrank",
        None,
        lambda r: [S(r.normal((4, 3))), S(r.normal((2, 3, 2)), 2, False)],
        grad=False,
        out=False,
        errors=[E(S(np.eye(2), 3), ValueError, "min")],
        why="random",
    ),
    Op(
        "lobpcg",
        None,
        lambda r: [S(_positive(r, (7, 7)), 2), S(_positive(r, (2, 6, 6)), largest=False)],
        grad=False,
        out=False,
        errors=[
            E(S(np.eye(5), 2), ValueError, "3 x the number"),
            E(S(np.eye(5), method="x"), ValueError, "method"),
            E(S(np.eye(5), tracker=print), NotImplementedError, "tracker"),
        ],
        why="random",
    ),
]
