"""Samples of linear algebra.

What reads one triangle of its matrix (cholesky, eigh) or has vectors of arbitrary phase (eig) is
differentiated in tests/ops/test_linalg_gradients.py, of symmetric matrices and of functions that
do not depend on phases.
"""

from __future__ import annotations

import numpy as np

from samples import COMPLEX, FLOATS_32_64, INTS, E, Op, S

MIXED = (*FLOATS_32_64, *COMPLEX)
ONE_TRIANGLE = "reads one triangle: derivatives are in test_linalg_gradients.py"
FULL_FACTOR = "the unread triangle has a gradient: derivatives are in test_linalg.py"
ANY_PHASE = "the vectors' phases are arbitrary: values are checked in test_linalg.py"


def _regular(r, shape, kind="normal"):
    """Well-conditioned matrices."""
    a = getattr(r, kind)(shape)
    return a * 0.5 + np.eye(shape[-1]) * (1.5 + np.arange(shape[-1]))


def _positive(r, shape, kind="normal"):
    """Hermitian positive definite matrices."""
    a = getattr(r, kind)(shape)
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1])


def _hermitian(r, shape, kind="normal"):
    a = getattr(r, kind)(shape)
    return a + np.swapaxes(a, -1, -2).conj()


def _squares(make):
    """The usual square matrices: single, batched, without rows, without matrices, complex."""

    def samples(r):
        return [
            S(make(r, (3, 3))),
            S(make(r, (2, 1, 2, 2))),
            S(np.zeros((0, 0))),
            S(np.zeros((0, 2, 2))),
            S(make(r, (2, 3, 3), "complex")),
        ]

    return samples


def _bad_matrix(square=True):
    bad = [
        E(S(np.ones(3)), RuntimeError, "at least 2 dimensions"),
        E(S(np.ones((2, 2), np.int64)), RuntimeError, "floating point or complex"),
        E(S("x"), TypeError, "must be Tensor"),
    ]
    return [*bad, E(S(np.ones((2, 3))), RuntimeError, "square")] if square else bad


def _tri(a, b, upper, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = np.triu(a, 1) + np.tril(a, -1) + np.eye(a.shape[-1])
    if left:
        return np.linalg.inv(a) @ b
    return b @ np.linalg.inv(a)


def _solve(a, b, left=True):
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    b = b[..., None] if vector else b
    x = np.linalg.inv(a) @ b if left else b @ np.linalg.inv(a)
    return x[..., 0] if vector else x


def _systems(r):
    return [
        S(_regular(r, (3, 3)), r.normal((3, 2))),
        S(_regular(r, (3, 3)), r.normal(3)),
        S(_regular(r, (2, 3, 3)), r.normal((2, 3))),
        S(_regular(r, (2, 1, 2, 2)), r.normal((3, 2, 2))),
        S(_regular(r, (2, 2)), r.normal((3, 2)), left=False),
        S(np.zeros((0, 0)), np.zeros((0, 2))),
        S(np.zeros((0, 2, 2)), np.zeros((0, 2, 1))),
        S(_regular(r, (2, 2), "complex"), r.complex((2, 2))),
    ]


def _slogdet(a):
    value = np.linalg.det(a)
    return value / np.abs(value), np.log(np.abs(value))


def _matrix_norm(a, ord="fro", dim=(-2, -1), keepdim=False):
    return np.linalg.norm(a, ord, tuple(dim), keepdim)


def _norm(a, ord=None, dim=None, keepdim=False):
    if ord is None and dim is not None:
        return np.sqrt((np.abs(a) ** 2).sum(dim, keepdims=keepdim))
    return np.linalg.norm(a, ord, dim, keepdim)


def _exp(a):
    total = term = np.zeros_like(a) + np.eye(a.shape[-1])
    for k in range(1, 60):
        term = term @ a / k
        total = total + term
    return total


def _power(a, n):
    return np.linalg.matrix_power(a, n)


def _tensorsolve(a, b, dims=None):
    return np.linalg.tensorsolve(a, b, dims)


def _householder(a, tau):
    m, n = a.shape[-2:]
    q = np.zeros(a.shape[:-2] + (m, m), a.dtype) + np.eye(m)
    for k in range(tau.shape[-1]):
        v = np.tril(a, -1)[..., :, k].copy()
        v[..., k] = 1
        v[..., :k] = 0
        outer = v[..., :, None] * v[..., None, :].conj()
        q = q @ (np.eye(m) - tau[..., k, None, None] * outer)
    return q[..., :n]


def _qr(a, mode="reduced"):
    if mode == "r":
        return np.zeros(0), np.linalg.qr(a, "r")
    return tuple(np.linalg.qr(a, mode))


def _rectangles(r):
    return [
        S(r.normal((4, 3))),
        S(r.normal((2, 2, 3))),
        S(r.normal((2, 3, 3))),
        S(r.complex((3, 2))),
        S(r.complex((2, 3))),
        S(np.zeros((0, 3))),
        S(np.zeros((2, 3, 0))),
    ]


OPS = [
    Op(
        "linalg.cholesky",
        lambda a, upper=False: (
            np.swapaxes(np.linalg.cholesky(a), -1, -2).conj() if upper else np.linalg.cholesky(a)
        ),
        lambda r: [
            *_squares(_positive)(r),
            S(_positive(r, (3, 3)), upper=True),
            S(_positive(r, (2, 2), "complex"), upper=True),
        ],
        dtypes=MIXED,
        grad=False,
        rtol=8,
        errors=[
            *_bad_matrix(),
            E(S(-np.eye(2)), RuntimeError, r"cholesky: The fact.*minor of order 1"),
            E(
                S(np.stack([np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])])),
                RuntimeError,
                r"Batch element 1.*minor of order 2",
            ),
        ],
        why=ONE_TRIANGLE,
    ),
    Op(
        "linalg.cholesky_ex",
        lambda a: (np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)),
        _squares(_positive),
        dtypes=MIXED,
        grad=False,
        rtol=8,
        errors=_bad_matrix(),
        why=ONE_TRIANGLE,
    ),
    Op(
        "linalg.solve_triangular",
        _tri,
        lambda r: [
            S(_regular(r, (3, 3)), r.normal((3, 2)), upper=True),
            S(_regular(r, (3, 3)), r.normal((3, 2)), upper=False),
            S(_regular(r, (3, 3)), r.normal((2, 3)), upper=False, left=False),
            S(_regular(r, (3, 3)), r.normal((2, 3)), upper=True, left=False),
            S(r.normal((3, 3)), r.normal((3, 2)), upper=True, unitriangular=True),
            S(r.normal((3, 3)), r.normal((3, 2)), upper=False, unitriangular=True),
            S(_regular(r, (2, 1, 2, 2)), r.normal((3, 2, 1)), upper=True),
            S(np.zeros((0, 0)), np.zeros((0, 2)), upper=True),
            S(_regular(r, (2, 2), "complex"), r.complex((2, 2)), upper=False),
        ],
        dtypes=MIXED,
        rtol=8,
        errors=[
            E(S(np.ones((2, 2)), np.ones((3, 2)), upper=True), RuntimeError, "AX = B"),
            E(S(np.ones((2, 3)), np.ones((2, 2)), upper=True), RuntimeError, "square"),
            E(S(np.ones((2, 2)), np.ones(2), upper=True), RuntimeError, "at least 2"),
        ],
    ),
    Op(
        "linalg.solve",
        _solve,
        _systems,
        dtypes=MIXED,
        rtol=8,
        errors=[
            E(S(np.ones((2, 2)), np.ones(3)), RuntimeError, "AX = B"),
            E(S(np.ones((2, 2)), np.ones(2)), RuntimeError, "singular"),
            E(S(np.ones((3, 2, 2)), np.ones((2, 2, 2))), RuntimeError, "broadcast"),
            E(S(np.eye(2), np.ones(2), left=False), RuntimeError, "left=False"),
            E(S(np.ones((2, 2), np.int64), np.ones(2)), RuntimeError, "floating point"),
        ],
    ),
    Op(
        "linalg.solve_ex",
        lambda a, b, left=True: (
            _solve(a, b, left),
            np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2] if b.ndim > 2 else ()), int),
        ),
        _systems,
        dtypes=MIXED,
        rtol=8,
        errors=[E(S(np.ones((2, 2)), np.ones(3)), RuntimeError, "AX = B")],
    ),
    Op(
        "linalg.inv",
        np.linalg.inv,
        _squares(_regular),
        dtypes=MIXED,
        rtol=8,
        errors=[
            *_bad_matrix(),
            E(S(np.ones((2, 2))), RuntimeError, "diagonal element 2 is zero"),
            E(
                S(np.stack([np.eye(2), np.zeros((2, 2))])),
                RuntimeError,
                "Batch element 1.*1 is zero",
            ),
        ],
    ),
    Op(
        "linalg.inv_ex",
        lambda a: (np.linalg.inv(a), np.zeros(a.shape[:-2], np.int32)),
        _squares(_regular),
        dtypes=MIXED,
        rtol=8,
        errors=_bad_matrix(),
    ),
    Op(
        "linalg.tensorinv",
        lambda a, ind=2: np.linalg.tensorinv(a, ind),
        lambda r: [
            S(_regular(r, (4, 4)).reshape(2, 2, 4)),
            S(_regular(r, (4, 4)).reshape(4, 2, 2), ind=1),
            S(_regular(r, (2, 2), "complex"), ind=1),
        ],
        dtypes=MIXED,
        rtol=8,
        errors=[
            E(S(np.ones((2, 3)), 1), RuntimeError, "prod"),
            E(S(np.ones((2, 2)), 0), RuntimeError, "strictly positive"),
        ],
    ),
    Op(
        "linalg.tensorsolve",
        _tensorsolve,
        lambda r: [
            S(_regular(r, (4, 4)).reshape(2, 2, 4), r.normal((2, 2))),
            S(np.moveaxis(_regular(r, (4, 4)).reshape(4, 2, 2), 1, 0), r.normal(4), dims=(0, 2)),
            S(_regular(r, (2, 2), "complex"), r.complex(2)),
        ],
        dtypes=MIXED,
        rtol=8,
        errors=[E(S(np.ones((2, 3)), np.ones(2)), RuntimeError, "prod")],
    ),
    Op(
        "linalg.det",
        np.linalg.det,
        _squares(_regular),
        dtypes=MIXED,
        rtol=16,
        errors=_bad_matrix(),
    ),
    Op(
        "linalg.slogdet",
        _slogdet,
        lambda r: [*_squares(_regular)(r), S(-_regular(r, (3, 3)))],
        dtypes=MIXED,
        rtol=16,
        errors=_bad_matrix(),
    ),
    Op(
        "linalg.qr",
        _qr,
        lambda r: [*_rectangles(r), S(r.normal((2, 3)), "complete")],
        dtypes=MIXED,
        rtol=16,
        errors=[*_bad_matrix(False), E(S(np.eye(2), "x"), RuntimeError, "unrecognized mode")],
    ),
    Op(
        "linalg.householder_product",
        _householder,
        lambda r: [
            S(r.normal((4, 3)), r.normal(3)),
            S(r.normal((2, 3, 3)), r.normal((2, 2))),
            S(r.normal((3, 2)), r.normal(0)),
            S(np.zeros((0, 2, 2)), np.zeros((0, 2))),
            S(r.complex((3, 2)), r.complex(2)),
        ],
        dtypes=MIXED,
        rtol=16,
        errors=[
            E(S(np.ones((2, 3)), np.ones(2)), RuntimeError, "as many rows"),
            E(S(np.ones((3, 2)), np.ones(3)), RuntimeError, "at most as many"),
            E(S(np.ones((3, 2)), np.ones((2, 3))), RuntimeError, "batch dimensions"),
        ],
    ),
    Op(
        "linalg.eigh",
        None,
        lambda r: [*_squares(_hermitian)(r), S(_hermitian(r, (3, 3)), "U")],
        grad=False,
        errors=[*_bad_matrix(), E(S(np.eye(2), "x"), RuntimeError, "UPLO")],
        why=ANY_PHASE,
    ),
    Op(
        "linalg.eigvalsh",
        lambda a, UPLO="L": np.linalg.eigvalsh(a, UPLO),
        lambda r: [*_squares(_hermitian)(r), S(_hermitian(r, (3, 3)), UPLO="u")],
        dtypes=MIXED,
        rtol=8,
        grad=False,
        errors=_bad_matrix(),
        why=ONE_TRIANGLE,
    ),
    Op(
        "linalg.eig",
        None,
        _squares(_regular),
        grad=False,
        errors=_bad_matrix(),
        why=ANY_PHASE,
    ),
    Op(
        "linalg.eigvals",
        np.linalg.eigvals,
        lambda r: [
            S(_regular(r, (3, 3)) + 0j),
            S(_regular(r, (2, 3, 3), "complex")),
            S(np.zeros((0, 0), np.complex128)),
        ],
        dtypes=COMPLEX,
        rtol=16,
        errors=_bad_matrix(),
    ),
    Op(
        "linalg.svd",
        lambda a, full_matrices=True: tuple(np.linalg.svd(a, full_matrices)),
        lambda r: [
            S(r.normal((3, 3))),
            S(r.normal((2, 2, 3)), False),
            S(r.normal((3, 2)), full_matrices=False),
            S(np.zeros((2, 0)), False),
            S(np.zeros((0, 2, 3)), False),
        ],
        rtol=32,
        errors=[
            *_bad_matrix(False),
            E(S(np.full((2, 2), np.nan)), RuntimeError, "non-finite"),
            E(S(np.eye(2), driver="gesvd"), RuntimeError, "CUDA"),
        ],
    ),
    Op(
        "linalg.svdvals",
        lambda a: np.linalg.svd(a, compute_uv=False),
        _rectangles,
        dtypes=MIXED,
        rtol=8,
        errors=_bad_matrix(False),
    ),
    Op(
        "linalg.matrix_rank",
        lambda a, tol=None, hermitian=False, atol=None: (
            np.linalg.matrix_rank(a, tol=tol if atol is None else atol)
            if a.size  # without elements older NumPy raises
            else np.zeros(a.shape[:-2], np.int64)
        ),
        lambda r: [
            S(r.normal((3, 2))),
            S(np.outer([1.0, 2.0], [3.0, 4.0])),
            S(np.diag([4.0, 2.0, 1.0]), atol=1.5),
            S(np.diag([4.0, 2.0, 1.0]), tol=2.5),
            S(np.diag([4.0, -2.0, 1.0]), hermitian=True),
            S(np.diag([4.0, -2.0, 1.0]), 1.5, True),
            S(np.zeros((2, 2, 0))),
            S(r.complex((2, 3))),
        ],
        dtypes=MIXED,
        grad=False,
        errors=[*_bad_matrix(False), E(S(np.eye(2), 1.0, atol=1.0), TypeError, "together")],
    ),
    Op(
        "linalg.pinv",
        lambda a, rcond=1e-15, rtol=None: np.linalg.pinv(a, rcond if rtol is None else rtol),
        lambda r: [
            S(r.normal((3, 2))),
            S(r.normal((2, 2, 3))),
            S(_regular(r, (3, 3))),
            S(np.zeros((0, 3))),
            S(np.zeros((2, 3, 0))),
            S(r.complex((3, 2))),
            S(r.complex((2, 3)), rtol=1e-3),
            S(r.normal((2, 3)), 1e-3),
        ],
        dtypes=MIXED,
        rtol=32,
        errors=[*_bad_matrix(False), E(S(np.eye(2), 1.0, atol=1.0), TypeError, "together")],
    ),
    Op(
        "linalg.cond",
        np.linalg.cond,
        lambda r: [
            S(r.normal((3, 2))),
            S(_regular(r, (2, 3, 3)), 2),
            S(_regular(r, (3, 3)), -2),
            *(
                S(_regular(r, (3, 3)), p)
                for p in ("fro", "nuc", 1, -1, float("inf"), -float("inf"))
            ),
            S(_regular(r, (2, 2), "complex"), "fro"),
            S(_regular(r, (2, 2), "complex")),
        ],
        dtypes=MIXED,
        rtol=32,
        errors=[
            E(S(np.ones((2, 3)), "fro"), RuntimeError, "square"),
            E(S(np.eye(2), "x"), RuntimeError, "norm type"),
        ],
    ),
    Op(
        "linalg.matrix_norm",
        _matrix_norm,
        lambda r: [
            S(r.normal((3, 4))),
            *(
                S(r.normal((2, 3, 2)), p, (-3, 2), keepdim)
                for p in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf"))
                for keepdim in (False, True)
            ),
            S(r.complex((3, 2)), "nuc"),
            S(r.complex((3, 2)), 1),
        ],
        dtypes=MIXED,
        rtol=16,
        errors=[
            E(S(np.ones(3)), RuntimeError, "at least 2 dimensions"),
            E(S(np.eye(2), 7), RuntimeError, "not supported"),
            E(S(np.eye(2), "x"), RuntimeError, "not supported"),
            E(S(np.eye(2), dim=(0, 0)), RuntimeError, "different"),
            E(S(np.eye(2), dim=(0, 2)), IndexError, "range"),
            E(S(np.ones((2, 2), np.int64)), RuntimeError, "floating point or complex"),
            E(S(np.ones((2, 2), np.complex128), dtype=None, ord=5), RuntimeError, "not supported"),
        ],
    ),
    Op(
        "linalg.norm",
        _norm,
        lambda r: [
            S(r.normal((3, 4))),
            S(r.normal(5), 3),
            S(r.normal((2, 3)), "nuc"),
            S(r.normal((2, 3)), 2),
            S(r.normal((2, 3)), 2, 1),
            S(r.normal((2, 3, 2)), None, (0, 2), True),
            S(r.normal(())),
            S(r.complex((2, 3)), "fro"),
        ],
        dtypes=MIXED,
        rtol=16,
        errors=[
            E(S(np.ones((2, 2, 2)), 2), RuntimeError, "1D or 2D"),
            E(S(np.eye(2), "fro", 1), RuntimeError, "two dims"),
        ],
    ),
    Op(
        "linalg.vecdot",
        lambda x, y, dim=-1: (x.conj() * y).sum(dim),
        lambda r: [
            S(r.normal((2, 3)), r.normal(3)),
            S(r.normal((3, 2)), r.normal((3, 2)), dim=0),
            S(r.complex(3), r.complex(3)),
        ],
        dtypes=MIXED,
        rtol=4,
        errors=[
            E(S(np.ones(2), np.ones(3)), RuntimeError, "same size"),
            E(S(np.ones(2, int), np.ones(2, int)), RuntimeError, "floating point or complex"),
            E(S(np.ones(2), np.ones(2), dim=3), IndexError, "range"),
        ],
    ),
    Op(
        "linalg.cross",
        lambda a, b, dim=-1: np.cross(a, b, axis=dim),
        lambda r: [
            S(r.normal((2, 3)), r.normal((2, 3))),
            S(r.normal((2, 3)), r.normal((1, 3))),
            S(r.normal((3, 2)), r.normal((3, 2)), dim=0),
            S(r.complex(3), r.complex(3)),
        ],
        dtypes=MIXED,
        rtol=4,
        integers=("int32", "int64"),
        errors=[
            E(S(np.ones(2), np.ones(2)), RuntimeError, "length 3"),
            E(S(np.ones((2, 3)), np.ones(3)), RuntimeError, "number of dimensions"),
            E(S(np.ones(3), np.ones(3), dim=1), IndexError, "range"),
        ],
    ),
    Op(
        "linalg.diagonal",
        lambda a, offset=0, dim1=-2, dim2=-1: np.diagonal(a, offset, dim1, dim2),
        lambda r: [S(r.normal((2, 3, 4))), S(r.normal((2, 3, 4)), offset=1, dim1=0, dim2=1)],
        integers=INTS,
        out=False,
        errors=[E(S(np.ones(3)), IndexError, "range|dim")],
        why="view",
    ),
    Op(
        "linalg.vander",
        lambda x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N),
        lambda r: [S(r.normal(3)), S(r.normal((2, 2)), 4), S(r.normal(3), N=2), S(r.complex(2))],
        dtypes=MIXED,
        integers=("int32", "int64"),
        rtol=4,
        out=False,
        errors=[
            E(S(np.ones(3), 1), RuntimeError, "greater than 1"),
            E(S(np.ones(3, bool)), RuntimeError, "bool"),
        ],
    ),
    Op(
        "linalg.multi_dot",
        lambda ts: np.linalg.multi_dot(ts),
        lambda r: [
            S([r.normal((2, 3)), r.normal((3, 4)), r.normal((4, 1))]),
            S([r.normal(3), r.normal((3, 2)), r.normal(2)]),
            S([r.complex((2, 3)), r.complex((3, 2))]),
        ],
        dtypes=MIXED,
        rtol=4,
        errors=[E(S([np.ones((2, 2))]), RuntimeError, "at least 2")],
    ),
    Op(
        "linalg.matmul",
        np.matmul,
        lambda r: [S(r.normal((2, 2, 3)), r.normal((3, 2))), S(r.complex((2, 2)), r.complex(2))],
        dtypes=MIXED,
        rtol=4,
    ),
    Op(
        "linalg.matrix_power",
        _power,
        lambda r: [
            S(_regular(r, (2, 2)), 0),
            S(_regular(r, (2, 2)), 1),
            S(_regular(r, (2, 2, 2)), 5),
            S(_regular(r, (3, 3)), -2),
            S(np.zeros((0, 0)), 2),
            S(_regular(r, (2, 2), "complex"), 3),
        ],
        dtypes=MIXED,
        rtol=256,
        errors=[
            E(S(np.ones((2, 3)), 2), RuntimeError, "square"),
            E(S(np.eye(2), 1.5), TypeError, "int"),
            E(S(np.eye(2, dtype=int), -1), RuntimeError, "floating point"),
        ],
    ),
    Op(
        "linalg.matrix_exp",
        _exp,
        lambda r: [
            *_squares(lambda r, s, kind="normal": getattr(r, kind)(s))(r),
            S(r.normal((2, 2), 4.0)),
            S(np.diag(np.ones(2), 1)),
        ],
        dtypes=MIXED,
        rtol=256,
        out=False,
        errors=[
            E(S(np.ones((2, 3))), RuntimeError, "square"),
            E(S(np.ones((2, 2), int)), RuntimeError, "floating point"),
        ],
    ),
]
