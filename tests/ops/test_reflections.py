"""Decompositions by reflections in blocks: sizes around those of blocks and of their parts, both
sides, elements whose squares leave the range of their dtype.
"""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import linalg as la

SIZES = [(49, 1), (50, 5), (64, 63), (65, 66), (97, 49), (100, 130), (3, 64), (129, 100)]
TOLERANCE = {"float32": 3e-6, "float64": 1e-14}


def random(m: int, n: int, dtype: str) -> clew.Tensor:
    return clew.from_numpy(
        np.random.default_rng(m * 1000 + n).standard_normal((m, n)).astype(dtype)
    )


def distance(a: clew.Tensor, b: clew.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def from_unit(q: clew.Tensor) -> float:
    return (q.mT @ q - clew.eye(q.shape[-1], dtype=q.dtype)).abs().max().item()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(m, n, mode, dtype):
    a, tolerance = random(m, n, dtype), TOLERANCE[dtype]
    q, r = la.qr(a, mode=mode)
    assert from_unit(q) < tolerance
    assert distance(q @ r, a) < tolerance
    assert (r.tril(-1) == 0).all()
    # LAPACK's signs: NumPy's are those.
    want = np.linalg.qr(a.numpy(), mode="r")
    np.testing.assert_allclose(
        r.numpy()[: min(m, n)], want, atol=20 * tolerance * np.abs(want).max()
    )
    assert (la.qr(a, mode="r").R == r[: min(m, n)]).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("width", [1, 3, 8, 9, 70])
@pytest.mark.parametrize("transpose", [False, True])
def test_ormqr(m, n, width, transpose, dtype):
    h, tau = clew.geqrf(random(m, n, dtype))
    q = la.qr(random(m, n, dtype), mode="complete").Q
    x, q = random(m, width, dtype), q.mT if transpose else q
    near = 3 * TOLERANCE[dtype]
    assert distance(clew.ormqr(h, tau, x, transpose=transpose), q @ x) < near
    assert distance(clew.ormqr(h, tau, x.mT, left=False, transpose=transpose), x.mT @ q) < near


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("m", "n"), [(64, 63), (97, 49), (129, 100), (80, 80)])
def test_householder_product_of_fewer_reflections(m, n, dtype):
    h, tau = clew.geqrf(random(m, n, dtype))
    for k in (0, 1, 31, 32, 33, n):
        got = la.householder_product(h, tau[:k])
        want = clew.eye(m, n, dtype=got.dtype)
        if k:
            want = clew.ormqr(h[:, :k], tau[:k], want)
        assert (got - want).abs().max() < 3 * TOLERANCE[dtype]


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", s) for s in (1e-38, 1e-30, 1e36)]
    + [("float64", s) for s in (1e-307, 1e-200, 1e300)],
)
def test_qr_of_extreme_sizes(dtype, size):
    a = random(100, 80, dtype)
    # The last columns are of this size alone: a block's parts meet both.
    factors = clew.ones(80, dtype=a.dtype).index_fill(0, clew.arange(40, 80), size)
    for scaled in (a * size, a * factors):
        q, r = la.qr(scaled)
        assert from_unit(q) < 1e3 * TOLERANCE[dtype]
        columns = scaled.abs().amax(0)
        assert ((q @ (r / columns)) - scaled / columns).abs().max() < 1e3 * TOLERANCE[dtype]


def test_qr_of_zeros_and_of_what_is_not_finite():
    q, r = la.qr(clew.zeros(100, 80))
    assert (q == clew.eye(100, 80)).all() and (r == 0).all()
    for bad in (clew.nan, clew.inf):
        a = clew.ones(100, 80)
        a[3, 4] = bad
        assert la.qr(a).R[:, 4:].isnan().any()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("m", "n"), [(48, 48), (50, 64), (64, 50), (90, 65), (65, 100), (128, 128)]
)
def test_svd(m, n, full, dtype):
    k, near = min(m, n), 30 * TOLERANCE[dtype]
    for a in (random(m, n, dtype), random(n, m, dtype).mT):
        u, s, vh = la.svd(a, full_matrices=full)
        assert u.shape == (m, m if full else k) and vh.shape == (n if full else k, n)
        assert max(from_unit(u), from_unit(vh.mT)) < near
        assert distance((u[:, :k] * s) @ vh[:k], a) < near
        assert distance(la.svdvals(a), s) < near


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("part", ["L", "U"])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_eigh_reads_one_triangle(part, size, dtype):
    n, near = 97, 30 * TOLERANCE[dtype]
    a = random(n, n, dtype)
    a = a + a.mT
    other = 1000 * clew.ones(n, n, dtype=a.dtype)
    seen = a.tril() + other.triu(1) if part == "L" else a.triu() + other.tril(-1)
    for read in (seen * size, (seen.mT.contiguous() * size).mT):
        w, v = la.eigh(read, UPLO=part)
        assert from_unit(v) < near
        assert distance((v * (w / size)) @ v.mT, a) < near
        assert distance(la.eigvalsh(read, UPLO=part) / size, w / size) < near
