"""Decompositions of small real matrices, which loops of our own compute: factors multiply back and
are orthogonal, whatever rank, grading, layout and size a matrix has.
"""

import numpy as np
import pytest

import clew

la = clew.linalg
SIZES = (1, 2, 3, 4, 5, 8, 13, 16, 17, 32, 48, 64, 65)


def matrices(m, n, dtype):
    """Kinds of matrices: ordinary, of half the rank, graded, of integers, nearly zero, zero."""
    draw = np.random.default_rng(m * 100 + n).standard_normal
    least = max(min(m, n) // 2, 1)
    scale = 10.0 ** np.linspace(-6, 6, m)[:, None]
    small = 1e-30 if dtype == np.float32 else 1e-250
    kinds = (
        draw((m, n)),
        draw((m, least)) @ draw((least, n)),
        draw((m, n)) * scale,
        np.round(draw((m, n))),
        draw((m, n)) * small,
        draw((m, n)) / small,
        np.zeros((m, n)),
        np.eye(m, n),
    )
    return np.stack([k.astype(dtype) for k in kinds])


def check(product, a, *orthogonal):
    """That a product of factors is a, and that columns are orthonormal."""
    eps = np.finfo(a.dtype).eps * 40 * max(a.shape)
    size = np.abs(a).max((-1, -2), keepdims=True).astype(float)
    assert (np.abs(product - a) <= eps * size + np.finfo(a.dtype).tiny).all()
    for q in orthogonal:
        q = np.asarray(q, float)
        one = np.swapaxes(q, -1, -2) @ q
        assert np.abs(one - np.eye(q.shape[-1])).max(initial=0) <= eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_eigh(n, dtype):
    a = matrices(n, n, dtype)
    a = np.tril(a) + np.swapaxes(np.tril(a, -1), -1, -2)
    for uplo, other in (("L", np.tril), ("U", np.triu)):
        half = np.ascontiguousarray(other(a) + 7 * (a - other(a)))  # the rest is not read
        for given in (clew.tensor(half), clew.tensor(np.swapaxes(half, -1, -2).copy()).mT):
            values, v = (np.asarray(x, float) for x in la.eigh(given, uplo))
            assert (np.diff(values) >= 0).all()
            check((v * values[:, None]) @ np.swapaxes(v, -1, -2), a, v)
            size = np.abs(values).max(-1, keepdims=True)
            alone = np.asarray(la.eigvalsh(given, uplo), float)
            assert (np.abs(alone - values) <= np.finfo(dtype).eps * 40 * n * size).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [*((n, n) for n in SIZES), (9, 4), (4, 9), (64, 16), (3, 60)])
def test_svd(shape, dtype):
    a = matrices(*shape, dtype)
    for full in (False, True):
        for given in (clew.tensor(a), clew.tensor(np.swapaxes(a, -1, -2).copy()).mT):
            u, s, vh = (np.asarray(x, float) for x in la.svd(given, full_matrices=full))
            k = s.shape[-1]
            assert (np.diff(s) <= 0).all() and (s >= 0).all()
            check((u[..., :k] * s[:, None]) @ vh[:, :k], a, u, np.swapaxes(vh, -1, -2))
            alone = np.asarray(la.svdvals(given), float)
            assert (np.abs(alone - s) <= np.finfo(dtype).eps * 40 * max(shape) * s[:, :1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [*((n, n) for n in SIZES), (9, 4), (4, 9), (48, 16), (3, 50)])
def test_reflections(shape, dtype):
    a = matrices(*shape, dtype)
    given = clew.tensor(a)
    for mode in ("reduced", "complete"):
        q, r = (np.asarray(x, float) for x in la.qr(given, mode))
        assert not np.tril(r, -1).any()
        check(q @ r, a, q)
        assert np.array_equal(np.asarray(la.qr(given, "r").R), np.asarray(la.qr(given).R))
    h, tau = clew.geqrf(given)
    whole = np.asarray(la.qr(given, "complete").Q, float)
    draw = np.random.default_rng(5).standard_normal
    left = draw((len(a), shape[0], 3)).astype(dtype)
    right = np.swapaxes(left, -1, -2).copy()
    turned = np.swapaxes(whole, -1, -2)
    for transpose, q in ((False, whole), (True, turned)):
        check(
            clew.ormqr(h, tau, clew.tensor(left), True, transpose).numpy(), (q @ left).astype(dtype)
        )
        check(
            clew.ormqr(h, tau, clew.tensor(right), False, transpose).numpy(),
            (right @ q).astype(dtype),
        )
    if shape[0] >= shape[1]:
        made = np.asarray(la.householder_product(h, tau), float)
        check(made, whole[..., : shape[1]].astype(dtype), made)


def test_what_is_not_finite():
    a = np.ones((3, 4, 4))
    a[1, 2, 1] = np.inf
    assert la.svdvals(clew.tensor(a))[1].isnan().all()
    assert la.eigh(clew.tensor(a)).eigenvalues[1].isnan().all()
    a[2, 3, 0] = np.nan
    for call in (la.svd, la.eigh, la.svdvals, la.eigvalsh):
        with pytest.raises(la.LinAlgError, match="Batch element 2"):
            call(clew.tensor(a))
