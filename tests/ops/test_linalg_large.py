"""Linear algebra of matrices that are too large for the loops of small ones: the results
are those of NumPy in every dtype and layout, errors and batches those of small matrices.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import clew
from clew import linalg as la

N = 140
DTYPES = ["float32", "float64", "complex64", "complex128"]
KINDS = [
    ("float32", "rows"),
    ("float64", "strided"),
    ("complex64", "columns"),
    ("complex128", "rows"),
    ("float64", "columns"),
]


def test_without_lapack():
    """The core finds no routines: NumPy's functions give the same."""
    script = """
import numpy as np
from clew import _C
_C._load_lapack, load = lambda path: False, _C._load_lapack
import clew
from clew import linalg as la
assert not la._lapack.loaded
a = np.random.default_rng(0).standard_normal((2, 9, 9))
h = a @ a.swapaxes(-1, -2) + np.eye(9)
t, p = clew.tensor(a), clew.tensor(h)
close = lambda x, y: np.testing.assert_allclose(x.numpy(), np.asarray(y), atol=1e-9)
one = np.broadcast_to(np.eye(9), a.shape)
close(la.inv(t) @ t, one)
close(la.solve(t, t), one)
close(la.det(t), np.linalg.det(a))
q, r = la.qr(t)
close(q @ r, a)
close((u := la.svd(t)).U @ u.S.diag_embed() @ u.Vh, a)
low = la.cholesky(p)
close(low @ low.mT, h)
bad = clew.cat([t[:1], t[1:].clone().index_fill_(1, clew.tensor([3]), float('inf'))])
for values in (la.svdvals(bad), la.eigvalsh(bad + bad.mT)):
    assert values[0].isfinite().all() and values[1].isnan().all()
up = la.cholesky(p, upper=True)
close(up.mT @ up, h)
w, v = la.eigh(p)
close(v @ w.diag_embed() @ v.mT, h)
w, v = la.eig(t)
close(t.to(v.dtype) @ v, (v * w.unsqueeze(-2)).numpy())
l, x, y = la.lu(t)
close(l @ x @ y, a)
close(la.lu_solve(*la.lu_factor(t), t), one)
close(la.ldl_solve(*la.ldl_factor(p), p), one)
close(la.pinv(t), np.linalg.inv(a))
close(la.lstsq(t, t).solution, one)
bad = t.clone()
bad[1, 3, 3] = clew.inf
assert la.svdvals(bad)[1].isnan().all() and la.svdvals(bad)[0].isfinite().all()
bad[1, 3, 3] = clew.nan
for f in (la.svd, la.svdvals, la.eigh, la.pinv):
    try:
        f(bad)
        raise AssertionError(f)
    except la.LinAlgError as e:
        assert "Batch element 1" in str(e)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def random(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    generator = np.random.default_rng(seed)
    a = generator.standard_normal(shape)
    if dtype.startswith("complex"):
        a = a + 1j * generator.standard_normal(shape)
    return a.astype(dtype)


def tensor(a: np.ndarray, layout: str = "rows") -> clew.Tensor:
    t = clew.tensor(a)
    if layout == "columns":
        t = t.mT.contiguous().mT
    elif layout == "strided":
        t = clew.stack([t, t + 1], -1)[..., 0]
    return t


def close(got, want, scale: float = 1.0) -> None:
    got, want = (x.detach().numpy() if isinstance(x, clew.Tensor) else x for x in (got, want))
    assert got.shape == want.shape
    eps = np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=1e4 * eps * scale)


def positive(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    a = random(seed, *shape, dtype=dtype) / 12
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1], dtype=dtype)


def regular(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    return random(seed, *shape, dtype=dtype) / 12 + 3 * np.eye(shape[-1], dtype=dtype)


def unchanged(t: clew.Tensor, a: np.ndarray) -> None:
    np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize(("dtype", "layout"), KINDS)
@pytest.mark.parametrize("batch", [(), (2, 1)])
def test_square_matrices(dtype, layout, batch):
    a = regular(1, *batch, N, N, dtype=dtype)
    b = random(2, *batch, N, 3, dtype=dtype)
    t = tensor(a, layout)
    inverse = np.linalg.inv(a.astype("complex128")).astype("complex128")
    inverse = inverse if dtype.startswith("complex") else inverse.real
    close(la.inv(t), inverse)
    close(la.solve(t, tensor(b, layout)), inverse @ b, 10)
    close(la.solve(t, tensor(b).mT, left=False), np.swapaxes(b, -1, -2) @ inverse, 10)
    sign, log = np.linalg.slogdet(a)
    got = la.slogdet(t)
    close(got[0], sign)
    close(got[1], log, 10)
    np.testing.assert_allclose(la.det(t / 3).numpy(), np.linalg.det(a / 3), rtol=1e-3)
    lu, pivots, info = la.lu_factor_ex(t)
    p, low, up = clew.lu_unpack(lu, pivots)
    close(p @ low @ up, a, 10)
    assert pivots.dtype is clew.int32 and not info.any() and info.shape == batch
    assert low.abs().max() <= 1 + 1e-6 or dtype.startswith("complex")
    unchanged(t, a)


@pytest.mark.parametrize(("dtype", "layout"), KINDS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_hermitian_matrices(dtype, layout, batch):
    a = positive(3, *batch, N, N, dtype=dtype)
    b = random(4, *batch, N, 3, dtype=dtype)
    # What stands in the triangle that is not read does not matter.
    for lower, junk in ((True, np.triu), (False, np.tril)):
        given = a + 7 * junk(np.ones((N, N)), 1 if lower else -1).astype(dtype)
        t = tensor(given, layout)
        factor = la.cholesky(t, upper=not lower)
        close(factor, factor.tril() if lower else factor.triu())
        close(factor @ factor.mH if lower else factor.mH @ factor, a, 10)
        assert not la.cholesky_ex(t, upper=not lower)[1].any()
        close(clew.cholesky_solve(clew.tensor(b), factor, not lower), np.linalg.solve(a, b), 10)
        close(clew.cholesky_inverse(factor, not lower), np.linalg.inv(a))
        uplo = "L" if lower else "U"
        values, vectors = la.eigh(t, uplo)
        close(values, np.linalg.eigvalsh(a), 10)
        close(la.eigvalsh(t, uplo), np.linalg.eigvalsh(a), 10)
        close((vectors * values.unsqueeze(-2)) @ vectors.mH, a, 10)
        close(vectors.mH @ vectors, np.broadcast_to(np.eye(N), a.shape))
        unchanged(t, given)
    close(la.pinv(clew.tensor(a), hermitian=True), np.linalg.inv(a))


@pytest.mark.parametrize(("dtype", "layout"), KINDS)
@pytest.mark.parametrize("shape", [(160, 120), (2, 120, 160), (20000, 1)])
def test_factors_of_rectangles(dtype, layout, shape):
    a = random(5, *shape, dtype=dtype)
    t = tensor(a, layout)
    *batch, m, n = shape
    k = min(m, n)
    full = m < 1000  # a square factor of 20000 rows is too much
    for mode in ("reduced", "complete") if full else ("reduced",):
        q, r = la.qr(t, mode=mode)
        size = m if mode == "complete" else k
        assert q.shape == (*batch, m, size) and r.shape == (*batch, size, n)
        close(q @ r, a, 10)
        close(q.mH @ q, np.broadcast_to(np.eye(size), (*batch, size, size)))
        close(r, r.triu())
    q, r = la.qr(t, mode="r")
    assert q.shape == (0,)
    close(r.abs(), np.abs(np.linalg.qr(a, mode="r")), 100)
    for square in (False, True) if full else (False,):
        u, s, vh = la.svd(t, full_matrices=square)
        close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, 100)
        close(u.mH @ u, np.broadcast_to(np.eye(u.shape[-1]), (*batch, u.shape[-1], u.shape[-1])))
        close(vh @ vh.mH, np.broadcast_to(np.eye(vh.shape[-2]), (*batch, *[vh.shape[-2]] * 2)))
    close(la.svdvals(t), np.linalg.svd(a, compute_uv=False), 100)
    h, tau = clew.geqrf(t)
    close(h.triu().abs()[..., :k, :], np.abs(np.linalg.qr(a, mode="r")), 100)
    assert h.shape == shape and tau.shape == (*batch, k)
    if full:
        p, low, up = la.lu(t)
        close(p @ low @ up, a, 10)
    unchanged(t, a)


@pytest.mark.parametrize(("dtype", "layout"), KINDS)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(dtype, layout, upper, unit):
    a = regular(6, 2, N, N, dtype=dtype)
    b = random(7, 2, N, 5, dtype=dtype)
    whole = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    whole = whole + unit * np.eye(N, dtype=dtype)
    x = la.solve_triangular(tensor(a, layout), tensor(b, layout), upper=upper, unitriangular=unit)
    close(clew.tensor(whole) @ x, b, 10 * float(x.abs().max()))
    t = clew.tensor(a)[0].mT
    x = la.solve_triangular(t, clew.tensor(b)[0], upper=not upper, unitriangular=unit)
    close(clew.tensor(whole)[0].mT @ x, b[0], 10 * float(x.abs().max()))
    none = la.solve_triangular(tensor(a, layout), clew.tensor(b[..., :0]), upper=upper)
    assert none.shape == (2, N, 0)


def test_zeros_on_the_diagonal():
    a = np.triu(random(8, N, N)) + 3 * np.eye(N)
    a[3, 3] = 0
    x = la.solve_triangular(clew.tensor(a), clew.ones(N, 1, dtype=clew.float64), upper=True)
    assert x[3].isinf().all() and x[4:].isfinite().all()
    assert la.det(clew.tensor(a)) == 0
    sign, log = la.slogdet(clew.tensor(a))
    assert sign == 0 and log == -np.inf
    # Elimination leaves a triangular matrix as it is, so it is known to be singular.
    assert la.inv_ex(clew.tensor(a))[1] == 4
    assert la.solve_ex(clew.tensor(a), clew.tensor(a))[1] == 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_matrices(dtype):
    a = regular(9, 2, N, N, dtype=dtype)
    a[1, :, 4] = a[1, 4, :] = 0
    t = clew.tensor(a)
    with pytest.raises(la.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal el"):
        la.inv(t)
    with pytest.raises(la.LinAlgError, match=r"linalg.solve: \(Batch element 1\): The solver fai"):
        la.solve(t, t)
    with pytest.raises(la.LinAlgError, match=r"\(Batch element 1\): U\[5,5\] is zero and using"):
        la.lu_factor(t)
    inverse, info = la.inv_ex(t)
    assert info.tolist() == [0, 5] and inverse[1].isnan().all()
    close(inverse[0] @ t[0], np.eye(N, dtype=dtype))
    x, info = la.solve_ex(t, t)
    assert info.tolist() == [0, 5] and x[1].isnan().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_that_are_not_positive(dtype):
    a = np.stack([positive(10, N, N, dtype=dtype)] * 2)
    a[1, 6, 6] = -1
    for upper in (False, True):
        with pytest.raises(la.LinAlgError, match=r"\(Batch element 1\).*order 7 is not positive"):
            la.cholesky(clew.tensor(a), upper=upper)
        factor, info = la.cholesky_ex(clew.tensor(a), upper=upper)
        assert info.tolist() == [0, 7]
        close(factor[0], la.cholesky(clew.tensor(a[0]), upper=upper))
    a[1, 6, 6] = np.nan
    assert la.cholesky_ex(clew.tensor(a))[1].tolist() == [0, 7]


def test_what_is_not_finite():
    a = random(11, N, N)
    a[0, 0] = np.nan
    for function in (la.svd, la.svdvals):
        with pytest.raises(la.LinAlgError, match="contained non-finite values"):
            function(clew.tensor(a))


@pytest.mark.parametrize("function", [la.inv, la.qr, la.svd, la.cholesky, la.det, la.eigh])
def test_batches_without_matrices(function):
    made = function(clew.zeros(0, N, N))
    for t in made if isinstance(made, tuple) else (made,):
        assert t.shape[0] == 0


def test_gradients():
    # The derivative in one direction against a difference quotient.
    a, step = regular(12, N, N), random(13, N, N) / N
    symmetric = a + a.T
    for function, at in (
        (lambda x: la.inv(x).sum(), a),
        (lambda x: la.solve(x, x.mT[:, :2] * 2).square().sum(), a),
        (lambda x: la.qr(x).R.square().tril(1).sum(), a),
        (lambda x: la.svdvals(x).log().sum(), a),
        (lambda x: la.cholesky(x @ x.mT).log1p().sum(), a),
        (lambda x: la.slogdet(x)[1], a),
        (lambda x: la.eigvalsh(x + x.mT).square().sum(), symmetric),
        (lambda x: la.solve_triangular(x, x, upper=True).square().sum(), a),
    ):
        x = clew.tensor(at, requires_grad=True)
        function(x).backward()
        h = 1e-5
        ahead, behind = (float(function(clew.tensor(at + s * h * step))) for s in (1, -1))
        assert float((x.grad * clew.tensor(step)).sum()) == pytest.approx(
            (ahead - behind) / (2 * h), rel=1e-5
        )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_counts(threads):
    before = clew.get_num_threads()
    a = random(14, 600, 600, dtype="float32")  # columns are made of rows on all threads
    try:
        clew.set_num_threads(threads)
        q, r = la.qr(clew.tensor(a))
        p, low, up = la.lu(clew.tensor(a))
    finally:
        clew.set_num_threads(before)
    close(q @ r, a, 10)
    close(p @ low @ up, a, 10)


def test_results_share_nothing():
    a = clew.tensor(random(15, N, N))
    made = [la.inv(a), *la.qr(a), *la.svd(a), *la.lu_factor(a), la.cholesky(a @ a.mT + 1)]
    assert all(t.is_contiguous() or t.mT.is_contiguous() for t in made)
    kept = [t.clone() for t in made]
    for i, t in enumerate(made):
        t.zero_()
        for other, want in zip(made[i + 1 :], kept[i + 1 :]):
            assert other.equal(want)


def test_scipy_is_not_loaded_with_clew():
    script = (
        "import sys, clew; clew.linalg.inv(clew.eye(8)); assert 'scipy.linalg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.complex128])
@pytest.mark.parametrize("n", [95, 96, 131, 300])
def test_large_triangles_with_few_right_hand_sides(n, dtype):
    r = np.random.default_rng(n)
    square = r.standard_normal((2, n, n)) / n + 2 * np.eye(n)
    low = clew.tensor(np.tril(square)).to(dtype)
    far = clew.finfo(dtype).eps * 40
    for k in (1, 2, 3, 5, 8, 9):
        x = clew.tensor(r.standard_normal((2, n, k))).to(dtype)
        for a, upper in ((low, False), (low.mT.contiguous(), True)):
            for given in (a, a.mT.contiguous().mT):
                full = given + (given.mT.triu(1) if not upper else given.mT.tril(-1)) * 5
                got = clew.linalg.solve_triangular(full, given @ x, upper=upper)
                assert (got - x).abs().max() < far * x.abs().max()
                unit = given - given.diagonal(dim1=-2, dim2=-1).diag_embed() + clew.eye(n).to(dtype)
                got = clew.linalg.solve_triangular(given, unit @ x, upper=upper, unitriangular=True)
                assert (got - x).abs().max() < far * x.abs().max()
        mixed = clew.tensor(square[:, r.permutation(n)]).to(dtype)
        for given in (mixed, mixed.mT.contiguous().mT):
            factors = clew.linalg.lu_factor(given)
            got = clew.linalg.lu_solve(*factors, given @ x)
            assert (got - x).abs().max() < far * x.abs().max()
            got = clew.linalg.lu_solve(*factors, given.mH @ x, adjoint=True)
            assert (got - x).abs().max() < far * x.abs().max()
        for upper in (False, True):
            factor = low.mH if upper else low
            got = clew.cholesky_solve(low @ (low.mH @ x), factor, upper)
            assert (got - x).abs().max() < far * x.abs().max()
    zero = low.clone()
    zero[:, n // 2, n // 2] = 0
    assert not clew.linalg.solve_triangular(zero, low[..., :2], upper=False).isfinite().all()
