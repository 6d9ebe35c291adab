"""Linear algebra at the edges: numbers that are not finite, and matrices without elements."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import clew
from clew import linalg as la

# What is not finite ends at once: nan raises, infinities give nan.
NOT_FINITE = """
import math, sys
import clew
from clew import linalg as la

n = int(sys.argv[1])
clew.manual_seed(0)
plain = clew.randn(n, n) + n * clew.eye(n)
plain = plain + plain.mT
for value in (math.inf, -math.inf, math.nan):
    a = plain.clone()
    a[n // 2, 1] = a[1, n // 2] = value
    pair = clew.stack([plain, a])
    calls = {
        "svd": lambda x: la.svd(x).S,
        "svdvals": la.svdvals,
        "pinv": la.pinv,
        "cond": la.cond,
        "norm": lambda x: la.matrix_norm(x, 2),
        "nuc": lambda x: la.matrix_norm(x, "nuc"),
        "eigh": lambda x: la.eigh(x).eigenvalues,
        "eigvalsh": la.eigvalsh,
    }
    for name, call in calls.items():
        if math.isnan(value):
            try:
                call(pair)
            except la.LinAlgError as e:
                assert "(Batch element 1)" in str(e), e
            else:
                raise AssertionError(name)
        else:
            made = call(pair)
            assert made[0].isfinite().all() and made[1].isnan().all(), name
    for call in (la.eig, la.eigvals):
        try:
            call(pair)
        except RuntimeError as e:
            assert "infs or NaNs" in str(e)
        else:
            raise AssertionError("eig")
    b = clew.ones(2, n, 1)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        try:
            la.lstsq(pair, b, driver=driver)
            assert not math.isnan(value)
        except la.LinAlgError as e:
            assert "(Batch element 1)" in str(e)
            assert math.isnan(value) or driver in ("gels", "gelsd")
    if not math.isnan(value):
        assert la.matrix_rank(pair).tolist() == [n, 0]
    for call in (la.inv, la.det, la.slogdet, la.lu_factor, la.qr, la.ldl_factor_ex, la.cholesky_ex):
        call(pair)
    try:
        clew.lobpcg(a, k=1, niter=3)
    except la.LinAlgError:
        pass
"""


@pytest.mark.parametrize("n", [9, 70])
def test_what_is_not_finite_ends(n):
    subprocess.run([sys.executable, "-c", NOT_FINITE, str(n)], check=True, timeout=60)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 0)])
def test_whole_bases_of_matrices_without_elements(shape: tuple[int, ...]):
    clew.ones(64).fill_(7.0)  # what fresh memory may hold
    u, s, vh = clew.linalg.svd(clew.zeros(shape))
    for basis, n in ((u, shape[-2]), (vh, shape[-1])):
        np.testing.assert_array_equal(
            basis.numpy(), np.broadcast_to(np.eye(n, dtype=np.float32), (*shape[:-2], n, n))
        )
    assert s.shape == (*shape[:-2], 0)


# Matrices without elements.


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_the_norm_of_a_matrix_without_elements_is_zero(shape, order):
    empty = clew.empty(shape)
    assert la.matrix_norm(empty, order).tolist() == 0
    assert la.norm(empty, order).tolist() == 0
    batch = la.matrix_norm(clew.empty(2, *shape), order, keepdim=True)
    assert batch.shape == (2, 1, 1) and batch.sum() == 0


def test_the_least_singular_value_of_none_raises():
    with pytest.raises(IndexError, match="non-zero size"):
        la.matrix_norm(clew.empty(0, 3), -2)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 2, 2)])
def test_empty_matrices_need_not_be_square_to_be_hermitian(shape: tuple[int, ...]) -> None:
    a = clew.empty(shape)
    assert clew.linalg.pinv(a, hermitian=True).shape == a.mT.shape
    assert clew.linalg.matrix_rank(a, hermitian=True).tolist() == a.new_zeros(shape[:-2]).tolist()
