"""Linear algebra: factors multiply back, systems, singular input, forms of the results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from matrices import DTYPES, EYE, close, positive
from numeric import check_gradients, normal

import clew
from clew import linalg as la

# Factors multiply back.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (0, 0)])
def test_cholesky_multiplies_back(dtype, shape):
    a = clew.tensor(positive(1, *shape, dtype=dtype))
    low = la.cholesky(a)
    close(low @ low.mH, a)
    close(low.triu(1), np.zeros(shape))
    up = la.cholesky(a, upper=True)
    close(up, low.mH)
    factor, info = la.cholesky_ex(a)
    close(factor, low)
    assert info.dtype is clew.int32 and not info.any()


def test_cholesky_reads_one_triangle():
    a = positive(2, 3, 3)
    close(la.cholesky(clew.tensor(np.tril(a))), np.linalg.cholesky(a))
    close(la.cholesky(clew.tensor(np.triu(a)), upper=True), np.linalg.cholesky(a).T)


def test_cholesky_failure():
    bad = np.stack([EYE, np.diag([1.0, -1.0, 1.0]), EYE])
    factor, info = la.cholesky_ex(clew.tensor(bad))
    assert info.tolist() == [0, 2, 0]
    close(factor[0], EYE)
    with pytest.raises(la.LinAlgError, match=r"linalg.cholesky: \(Batch element 1\).*order 2"):
        la.cholesky(clew.tensor(bad))
    with pytest.raises(la.LinAlgError, match="linalg.cholesky_ex"):
        la.cholesky_ex(clew.tensor(bad), check_errors=True)
    nan = clew.full((2, 2), float("nan"))
    with pytest.raises(la.LinAlgError):
        la.cholesky(nan)
    assert issubclass(la.LinAlgError, RuntimeError)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 2, 4), (0, 3), (3, 0), (0, 2, 3)])
def test_qr(dtype, mode, shape):
    a = normal(3, *shape, dtype=dtype)
    q, r = la.qr(clew.tensor(a), mode)
    m, n = shape[-2:]
    k = m if mode == "complete" else min(m, n)
    assert tuple(r.shape) == (*shape[:-2], k, n)
    close(r.tril(-1), np.zeros(r.shape))
    if mode == "r":
        assert q.shape == (0,)
        close(r.mH @ r, np.swapaxes(a, -1, -2).conj() @ a)
        return
    assert tuple(q.shape) == (*shape[:-2], m, k)
    close(q @ r, a)
    close(q.mH @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh_multiplies_back(dtype, uplo):
    a = normal(4, 2, 4, 4, dtype=dtype)
    a = a + np.swapaxes(a, -1, -2).conj()
    half = np.tril(a) if uplo == "L" else np.triu(a)
    values, vectors = la.eigh(clew.tensor(half), UPLO=uplo)
    assert not values.is_complex()
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, a)
    close(vectors.mH @ vectors, np.broadcast_to(np.eye(4), (2, 4, 4)))
    close(la.eigvalsh(clew.tensor(half), uplo), values)
    assert bool((values.diff() >= 0).all())


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig_multiplies_back(dtype):
    a = clew.tensor(normal(5, 2, 4, 4, dtype=dtype))
    values, vectors = la.eig(a)
    assert values.dtype is vectors.dtype is clew.complex128
    close(a.to(clew.complex128) @ vectors, vectors * values.unsqueeze(-2))
    close(vectors.abs().square().sum(-2), np.ones((2, 4)))
    close(la.eigvals(a), values)
    assert la.eig(clew.eye(2)).eigenvalues.dtype is clew.complex64
    with pytest.raises(RuntimeError, match="infs or NaNs"):
        la.eig(clew.full((2, 2), float("nan")))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 2, 4), (0, 3), (2, 3, 0), (0, 2, 3)])
def test_svd_multiplies_back(dtype, full, shape):
    a = normal(6, *shape, dtype=dtype)
    u, s, vh = la.svd(clew.tensor(a), full_matrices=full)
    m, n = shape[-2:]
    k = min(m, n)
    assert u.shape[-2:] == (m, m if full else k) and vh.shape[-2:] == (n if full else k, n)
    close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
    close(u.mH @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])))
    close(la.svdvals(clew.tensor(a)), s)
    assert not s.is_complex()


# Systems and inverses.


@pytest.mark.parametrize("size", [1, 5, 64, 65, 150])
def test_triangular_systems_of_all_sizes(size):
    a = normal(7, 2, size, size) / size + 2 * np.eye(size)
    b = normal(8, 2, size, 3)
    for upper in (False, True):
        x = la.solve_triangular(clew.tensor(a), clew.tensor(b), upper=upper)
        half = np.triu(a) if upper else np.tril(a)
        close(half @ x.numpy(), b)


def test_triangular_small_pivots_are_not_exchanged():
    a = np.array([[1e-12, 0.0], [1.0, 1.0]])
    x = la.solve_triangular(clew.tensor(a), clew.tensor([[1e-12], [3.0]]).double(), upper=False)
    close(x, [[1.0], [2.0]], 1e-4)


def test_triangular_zero_on_the_diagonal():
    x = la.solve_triangular(clew.zeros(2, 2), clew.tensor([[1.0], [2.0]]), upper=True)
    assert not x.isfinite().any()
    x = la.solve_triangular(clew.zeros(2, 2), clew.ones(2, 1), upper=True, unitriangular=True)
    assert x.tolist() == [[1.0], [1.0]]


def test_singular_systems():
    a = clew.tensor(np.stack([EYE, np.diag([1.0, 1.0, 0.0]), EYE]))
    b = clew.ones(3, 3, dtype=clew.float64)
    x, info = la.solve_ex(a, b)
    assert info.tolist() == [0, 3, 0]
    assert x[1].isnan().all() and x[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(la.LinAlgError, match=r"linalg.solve: \(Batch element 1\).*singular"):
        la.solve(a, b)
    inverse, info = la.inv_ex(a)
    assert info.tolist() == [0, 3, 0] and inverse[2].tolist() == EYE.tolist()
    with pytest.raises(la.LinAlgError, match=r"linalg.inv: \(Batch element 1\).*element 3 is zero"):
        la.inv(a)
    with pytest.raises(la.LinAlgError, match="linalg.inv_ex"):
        la.inv_ex(a, check_errors=True)


def test_batches_are_loops():
    a = normal(9, 3, 2, 4, 4)
    b = normal(10, 2, 4, 2)
    x = la.solve(clew.tensor(a), clew.tensor(b))
    for i in range(3):
        for j in range(2):
            close(x[i, j], np.linalg.solve(a[i, j], b[j]))
            close(la.det(clew.tensor(a))[i, j], np.linalg.det(a[i, j]))


def ldl_product(ld, pivots, hermitian):
    """P L D L^H P^T from LAPACK's compact form, one elementary factor after the other."""
    n = len(ld)
    d, total = np.zeros_like(ld), np.eye(n, dtype=ld.dtype)
    k = 0
    while k < n:
        step = 1 if pivots[k] > 0 else 2
        last, row = k + step - 1, abs(int(pivots[k])) - 1
        exchange = np.eye(n, dtype=ld.dtype)
        exchange[[last, row]] = exchange[[row, last]]
        low = np.eye(n, dtype=ld.dtype)
        low[last + 1 :, k : last + 1] = ld[last + 1 :, k : last + 1]
        total = total @ exchange @ low
        block = np.tril(ld[k : last + 1, k : last + 1])
        upper = np.tril(block, -1).T
        d[k : last + 1, k : last + 1] = block + (upper.conj() if hermitian else upper)
        k += step
    return total @ d @ (total.conj().T if hermitian else total.T)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("zero", [False, True])
def test_ldl(dtype, hermitian, zero):
    a = normal(25, 6, 7, 7, dtype=dtype)
    a = a + np.swapaxes(a.conj() if hermitian else a, -1, -2)
    if zero:  # blocks of two
        a = a * (1 - np.eye(7))
    ld, pivots = la.ldl_factor(clew.tensor(a), hermitian=hermitian)
    assert ld.triu(1).abs().max() == 0 and (not zero or pivots.min() < 0)
    for k in range(6):
        close(ldl_product(ld[k].numpy(), pivots[k].numpy(), hermitian), a[k])
    b = normal(26, 7, 2, dtype=dtype)
    x = la.ldl_solve(ld, pivots, clew.tensor(b), hermitian=hermitian)
    close(a @ x.numpy(), np.broadcast_to(b, (6, 7, 2)), 1e-8)
    with pytest.raises(NotImplementedError, match="derivative"):
        ld, _ = la.ldl_factor(clew.tensor(a, requires_grad=True))
        ld.abs().sum().backward()


def test_ldl_info():
    _, _, info = la.ldl_factor_ex(clew.tensor(np.stack([EYE, np.diag([1.0, 0.0, 1.0])])))
    assert info.tolist() == [0, 2]
    with pytest.raises(la.LinAlgError, match="element 1"):
        la.ldl_factor(clew.tensor(np.stack([EYE, np.diag([1.0, 0.0, 1.0])])))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 40), (70, 50), (2, 50, 70)])
def test_lu_multiplies_back(dtype, shape):
    a = normal(27, *shape, dtype=dtype)
    p, low, up = la.lu(clew.tensor(a))
    close(p.to(low.dtype) @ low @ up, a)
    assert low.abs().max() <= (1 if dtype == "float64" else 2**0.5) + 1e-12
    compact, pivots = la.lu_factor(clew.tensor(a))
    for got, want in zip(clew.lu_unpack(compact, pivots), (p, low, up)):
        close(got, want)


def test_lu_of_singular_matrices():
    a = clew.tensor([[0.0, 1.0], [0.0, 2.0]])
    p, low, up = la.lu(a)
    close(p @ low @ up, a)
    assert la.lu_factor_ex(a).info == 1
    with pytest.raises(la.LinAlgError, match=r"U\[1,1\] is zero"):
        la.lu_factor(a)
    with pytest.raises(la.LinAlgError, match="U"):
        clew.lu(a)
    assert clew.lu(a, get_infos=True)[2] == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_gradients_with_a_known_factor(dtype, upper):
    a = normal(28, 3, 3, dtype=dtype) + 2 * EYE
    b = normal(29, 2, 3, 1, dtype=dtype)

    def half(a):
        return a.triu() if upper else a.tril()

    check_gradients(lambda a: clew.cholesky_inverse(half(a), upper), a)
    check_gradients(lambda b, a: clew.cholesky_solve(b, half(a), upper), b, a)


def test_residuals_by_driver():
    a, b = clew.tensor(normal(40, 5, 2)), clew.tensor(normal(41, 5, 1))
    for driver in ("gels", "gelsd", "gelss"):
        found = la.lstsq(a, b, driver=driver)
        close(found.residuals, (a @ found.solution - b).square().sum(0))
    assert la.lstsq(a, b, driver="gelsy").residuals.shape == (0,)


def test_least_squares_of_lower_rank():
    a = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    b = np.array([1.0, 1.0, 1.0])
    found = la.lstsq(clew.tensor(a), clew.tensor(b), driver="gelsd")
    close(found.solution, np.linalg.lstsq(a, b, rcond=None)[0])
    assert found.rank == 1 and found.residuals.numel() == 0
    close(found.singular_values, np.linalg.svd(a, compute_uv=False))
    whole = la.lstsq(clew.tensor(EYE), clew.tensor(b), rcond=1.5, driver="gelss")
    assert whole.rank == 0 and whole.solution.abs().max() == 0
    check_gradients(
        lambda c, b: la.lstsq(c.unsqueeze(-1) * clew.ones(2), b).solution, a[:, 0].copy(), b
    )
    empty = la.lstsq(clew.zeros(0, 2), clew.zeros(0, 3))
    assert empty.solution.tolist() == [[0.0] * 3] * 2 and empty.rank == 0


# Few eigenpairs, few singular values.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20, 9), (9, 20), (2, 8, 8)])
def test_randomized_svd(dtype, shape):
    clew.manual_seed(1)
    m, n = shape[-2:]
    a = normal(30, *shape[:-1], 3, dtype=dtype) @ normal(31, *shape[:-2], 3, n, dtype=dtype)
    u, s, v = clew.svd_lowrank(clew.tensor(a), q=4)
    assert u.shape[-2:] == (m, 4) and v.shape[-2:] == (n, 4)
    close((u * s.unsqueeze(-2)) @ v.mH, a, 1e-8)
    close(s[..., :3], np.linalg.svd(a, compute_uv=False)[..., :3])
    centered = a - a.mean(-2, keepdims=True)
    _, s, v = clew.pca_lowrank(clew.tensor(a), q=4)
    close(s[..., :3], np.linalg.svd(centered, compute_uv=False)[..., :3], 1e-8)
    _, raw, _ = clew.svd_lowrank(clew.tensor(a), 4, M=clew.tensor(a - centered))
    close(raw, s, 1e-8)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 2, 5), (0, 3)])
def test_randomized_svd_of_fewer_values_than_asked_for(shape):
    a = normal(34, *shape)
    u, s, v = clew.svd_lowrank(clew.tensor(a))
    k = min(shape[-2:])
    assert u.shape[-1] == s.shape[-1] == v.shape[-1] == k
    close((u * s.unsqueeze(-2)) @ v.mH, a, 1e-8)


@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("generalized", [False, True])
def test_lobpcg(largest, generalized):
    clew.manual_seed(2)
    a = normal(32, 2, 30, 30)
    a = clew.tensor(a @ np.swapaxes(a, -1, -2))
    b = clew.tensor(positive(33, 30, 30)) if generalized else None
    metric = clew.eye(30, dtype=clew.float64) if b is None else b
    near = la.inv(a) if largest is False else None
    values, x = clew.lobpcg(a, 3, b, largest=largest, tol=1e-10, iK=near)
    assert values.shape == (2, 3) and x.shape == (2, 30, 3)
    close(a @ x, (metric @ x) * values.unsqueeze(-2), 1e-5)
    want = np.sort(np.linalg.eigvals(np.linalg.solve(metric.numpy(), a.numpy())).real)
    want = want[..., :3] if largest is False else want[..., ::-1][..., :3]
    close(values, want, 1e-6)


# Determinants, pseudo-inverses, exponentials.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_det_of_singular_matrices(dtype, rank):
    a = normal(16, 3, rank, dtype=dtype) @ normal(17, rank, 3, dtype=dtype)
    a[..., 2] = 0  # exactly singular
    check_gradients(la.det, a)
    stacked = np.stack([a, a + EYE])
    check_gradients(la.det, stacked)


def test_det_of_large_singular_matrices():
    a = normal(18, 10, 10)
    a[:, 4] = 0
    check_gradients(la.det, a, order=1)
    ones = clew.ones(4, 4, dtype=clew.float64).requires_grad_()
    (g,) = clew.autograd.grad(la.det(ones), ones)
    assert g.abs().max() < 1e-12


def test_pinv_tolerances():
    a = clew.diag(clew.tensor([4.0, 1.0, 0.1]))
    close(la.pinv(a, rtol=0.1).diagonal(), [0.25, 1.0, 0.0], 1e-6)
    close(la.pinv(a, atol=2.0).diagonal(), [0.25, 0.0, 0.0], 1e-6)
    close(la.pinv(a, atol=clew.tensor(2.0), hermitian=True).diagonal(), [0.25, 0.0, 0.0], 1e-6)
    assert la.matrix_rank(a, rtol=0.1) == 2 and la.matrix_rank(a, atol=2.0) == 1
    assert la.matrix_rank(clew.stack([a, a]), atol=clew.tensor([2.0, 0.5])).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_exp(dtype):
    a = normal(22, 2, 3, 3, dtype=dtype)
    check_gradients(la.matrix_exp, a)
    x = clew.tensor(a)
    close(la.matrix_exp(x) @ la.matrix_exp(-x), np.broadcast_to(EYE, (2, 3, 3)))
    big = a[0] * 30
    values, v = np.linalg.eig(big)
    want = (v * np.exp(values)) @ np.linalg.inv(v)
    tiny = a[0] * 1e-9
    both = la.matrix_exp(clew.tensor(np.stack([big, tiny]))).numpy()
    np.testing.assert_allclose(both[0], want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
    np.testing.assert_allclose(both[1] - EYE, tiny, atol=1e-15)
    third = clew.tensor(0.7, dtype=clew.float64, requires_grad=True)
    y = la.matrix_exp(third.reshape(1, 1)).sum()
    for _ in range(3):
        (y,) = clew.autograd.grad(y, third, create_graph=True)
    close(y, np.exp(0.7))
    assert la.matrix_exp(clew.full((2, 2), float("inf"))).isnan().all()


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.complex64, clew.complex128])
def test_matrix_exp_of_every_size(dtype):
    """Every polynomial and number of squarings, alone and in batches, in rows and in columns."""
    sizes = 10.0 ** np.arange(-17, 1.75, 0.25)
    for n in (1, 2, 5, 40):
        turns = np.random.default_rng(n).standard_normal((len(sizes), n, n)) / n
        turns = (turns - turns.swapaxes(-1, -2)) * sizes[:, None, None]  # whose exp is orthogonal
        a = clew.tensor(turns * (1j if dtype.is_complex else 1)).to(dtype)
        # i times a real one, and the complex ones themselves, are hermitian.
        factor = 1 if dtype.is_complex else 1j
        values, vectors = np.linalg.eigh(factor * a.to(clew.complex128).numpy())
        want = (vectors * np.exp(values / factor)[:, None]) @ vectors.conj().swapaxes(-1, -2)
        got = la.matrix_exp(a)
        close = 60 * clew.finfo(dtype).eps * np.maximum(1, sizes)[:, None, None]
        off = (
            np.abs(got.to(clew.complex128).numpy() - want)
            / np.abs(want).max((-2, -1))[:, None, None]
        )
        assert (off <= close).all(), (n, sizes[(off > close).any((-2, -1))])
        assert clew.equal(la.matrix_exp(a[3]), got[3])
        np.testing.assert_allclose(la.matrix_exp(a.mT.contiguous().mT).numpy(), got.numpy())
    assert la.matrix_exp(clew.empty(2, 0, 0, dtype=dtype)).shape == (2, 0, 0)
    mixed = clew.zeros(2, 3, 3, dtype=dtype)
    mixed[0, 1, 2] = clew.inf
    assert la.matrix_exp(mixed)[0].isnan().all()
    assert clew.equal(la.matrix_exp(mixed)[1], clew.eye(3, dtype=dtype))


def test_condition_of_singular_matrices():
    a = clew.zeros(2, 2)
    for p in ("fro", 1, -1, float("inf")):
        assert la.cond(a + clew.diag(clew.tensor([1.0, 0.0])), p).item() == float("inf")
    assert la.cond(clew.eye(2), "nuc").item() == 4.0


def test_condition_where_a_norm_overflows():
    for scale in (1e30, 1e-30):
        a = clew.tensor([[scale, 0.0], [0.0, scale]])
        for p in ("fro", 1):
            assert not la.cond(a, p).isnan(), (scale, p)
        assert la.cond(a, "fro").item() == float("inf")
    a[0, 1] = float("nan")
    stack = clew.stack([a, clew.eye(2)])
    assert la.cond(stack, 1).tolist() == [float("inf"), 1.0]


def test_no_power_of_what_is_not_finite():
    a = clew.tensor([[float("inf"), float("nan")], [1.0, 2.0]], requires_grad=True)
    power = la.matrix_power(a, 0)
    assert clew.equal(power, clew.eye(2))
    power.sum().backward()
    assert clew.equal(a.grad, clew.zeros(2, 2))
    product = la.householder_product(a, clew.zeros(0, requires_grad=True))
    assert clew.equal(product, clew.eye(2))


# Everything else.


def test_results_are_named():
    a = clew.tensor(positive(23, 2, 2))
    assert la.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert la.svd(a)._fields == ("U", "S", "Vh")
    assert la.qr(a)._fields == ("Q", "R")
    assert la.slogdet(a)._fields == ("sign", "logabsdet")
    assert la.cholesky_ex(a)._fields == ("L", "info")
    assert la.inv_ex(a)._fields == ("inverse", "info")
    assert la.solve_ex(a, a)._fields == ("result", "info")


def test_result_types_have_pytorchs_names():
    a = clew.tensor(positive(23, 2, 2))
    b = clew.ones(2, 1, dtype=clew.float64)
    types = clew.return_types
    assert isinstance(la.eigh(a), types.linalg_eigh) and isinstance(la.eig(a), types.linalg_eig)
    assert isinstance(la.svd(a), types.linalg_svd) and isinstance(clew.svd(a), types.svd)
    assert isinstance(la.lstsq(a, b), types.linalg_lstsq)
    assert isinstance(b.triangular_solve(a), types.triangular_solve)
    made = [la.qr(a), la.slogdet(a), la.cholesky_ex(a), la.inv_ex(a), la.solve_ex(a, a)]
    made += [la.lu(a), la.lu_factor(a), la.lu_factor_ex(a), la.ldl_factor(a), la.ldl_factor_ex(a)]
    names = "qr slogdet cholesky_ex inv_ex solve_ex lu lu_factor lu_factor_ex ldl_factor"
    for result, name in zip(made, [*names.split(), "ldl_factor_ex"]):
        assert isinstance(result, getattr(types, f"linalg_{name}"))
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) and clew.equal(again[0], result[0])


def test_out_of_several_results():
    a = clew.tensor(positive(24, 3, 3))
    out = (clew.empty(0, dtype=clew.float64), clew.empty(0, dtype=clew.float64))
    values, vectors = la.eigh(a, out=out)
    assert values is out[0] and vectors is out[1]
    close(values, np.linalg.eigvalsh(a.numpy()))
    with pytest.raises(TypeError, match="tuple of 2"):
        la.eigh(a, out=out[0])
    with pytest.raises(RuntimeError, match="to have dtype float64"):
        la.inv(a, out=clew.empty(3, 3, dtype=clew.int64))


@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16])
def test_low_precision_is_refused(dtype):
    a = clew.eye(2, dtype=dtype)
    for f in (la.inv, la.det, la.cholesky, la.svd, la.eigh, la.eig, la.qr, la.pinv, la.slogdet):
        with pytest.raises(RuntimeError, match="Low precision"):
            f(a)
    assert la.matrix_exp(a * 0).dtype is dtype


def test_meta_tensors_are_not_examined():
    a = clew.zeros(2, 3, 3, device="meta")
    assert la.cholesky(a).shape == (2, 3, 3)
    assert la.inv(a).is_meta and la.det(a).shape == (2,)
    u, s, vh = la.svd(a[..., :2])
    assert (u.shape, s.shape, vh.shape) == ((2, 3, 3), (2, 2), (2, 2, 2))


def test_kernels_do_not_warn(recwarn):
    la.det(clew.full((200, 200), 1e30) * clew.eye(200))
    la.slogdet(clew.zeros(2, 2))
    la.solve_ex(clew.zeros(2, 2), clew.ones(2))
    la.matrix_exp(clew.full((2, 2), 1e30))
    assert not recwarn.list


def test_methods_are_the_functions():
    a = clew.tensor(positive(35, 3, 3))
    b = clew.tensor(normal(36, 3, 1))
    for name in ("cholesky", "det", "inverse", "logdet", "pinverse", "matrix_exp", "geqrf"):
        got, want = getattr(a, name)(), getattr(clew, name)(a)
        pairs = zip(got, want) if isinstance(got, tuple) else [(got, want)]
        for g, w in pairs:
            close(g, w)
    close(a.matrix_power(2), a @ a)
    close(a.qr().R, la.qr(a).R)
    close(a.svd().S, a.svd(compute_uv=False).S)
    assert not a.svd(compute_uv=False).U.any()
    close(a.slogdet().logabsdet, a.logdet())
    close(b.cholesky_solve(a.cholesky()), la.solve(a, b))
    close(a.cholesky().cholesky_inverse(), a.inverse())
    close(b.lu_solve(*a.lu()), la.solve(a, b))
    close(b.triangular_solve(a).solution, la.solve_triangular(a, b, upper=True))
    reflections, tau = a.geqrf()
    close(reflections.orgqr(tau), a.qr().Q)
    close(reflections.ormqr(tau, a, transpose=True), a.qr().R)
    assert type(a.svd())._fields == ("U", "S", "V")


@pytest.mark.parametrize("dims", [(), (0, 1, 2)])
@pytest.mark.parametrize("order", [None, 2, 3])
def test_norm_takes_one_dim_or_two(dims, order):
    with pytest.raises(RuntimeError, match="length 1 or 2"):
        la.norm(clew.ones(2, 2, 2), order, dim=dims)


def test_vecdot_of_a_number():
    assert la.vecdot(clew.tensor(2.0), clew.tensor(3.0)).tolist() == 6
    assert la.vecdot(clew.tensor(2.0), clew.ones(3)).tolist() == 6
    assert la.vecdot(clew.ones(3), clew.tensor(2.0), dim=0).tolist() == 6
    with pytest.raises(IndexError, match="out of range"):
        la.vecdot(clew.tensor(1.0), clew.tensor(1.0), dim=1)


def test_nuclear_norm_of_a_batch():
    a = clew.tensor([[[3.0, 0.0], [0.0, 4.0]], [[0.0, 2.0], [1.0, 0.0]]])
    close(clew.nuclear_norm(a), np.array([7.0, 3.0]), 1e-6)
    assert clew.nuclear_norm(a, keepdim=True).shape == (2, 1, 1)
    with pytest.raises(RuntimeError, match="2 dimensions"):
        clew.nuclear_norm(a[0, 0])
