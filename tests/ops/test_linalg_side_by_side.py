"""Batches of tiny matrices, which are factored side by side in the lanes of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew

la = clew.linalg


def batch(count: int, n: int, columns: int, dtype: str) -> tuple[Any, Any]:
    random = np.random.default_rng(100 * n + count)
    a = random.standard_normal((count, n, n)) + 2 * np.eye(n)
    return a.astype(dtype), random.standard_normal((count, n, columns)).astype(dtype)


# As few as one, as many as some groups of lanes and a rest; on both sides of the limits.
SIZES = [1, 2, 3, 5, 8, 9, 16, 17]
COUNTS = [0, 1, 3, 7, 8, 16, 17, 100]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("count", COUNTS)
def test_solutions(count: int, n: int, dtype: str) -> None:
    eps = float(np.finfo(dtype).eps)
    for columns in (1, 8, 11):
        a, b = batch(count, n, columns, dtype)
        wide = a.astype("float64")
        in_columns = clew.tensor(np.ascontiguousarray(a.swapaxes(1, 2))).mT
        for given in (clew.tensor(a), in_columns):
            x = la.solve(given, clew.tensor(b))
            inverse = la.inv(given)
            factors, pivots = la.lu_factor(given)
            sign, log = la.slogdet(given)
            if not count:
                assert x.shape == b.shape and inverse.shape == a.shape
                continue
            # Bounds by the condition of each matrix.
            bound = 50 * n * eps * np.linalg.cond(wide)[:, None, None]
            expected = np.linalg.solve(wide, b)
            assert (
                abs(x.numpy() - expected) <= bound * abs(expected).max((1, 2), keepdims=True)
            ).all()
            expected = np.linalg.inv(wide)
            largest = abs(expected).max((1, 2), keepdims=True)
            assert (abs(inverse.numpy() - expected) <= bound * largest).all()
            p, lower, upper = clew.lu_unpack(factors, pivots)
            assert abs((p @ lower @ upper).numpy() - a).max() <= 50 * n * eps
            assert lower.abs().max() <= 1  # rows were exchanged
            signs, logs = np.linalg.slogdet(wide)
            assert (sign.numpy() == signs).all()
            assert (abs(log.numpy() - logs) <= bound[:, 0, 0]).all()
            assert (
                abs(la.det(given).numpy() - signs * np.exp(logs)) <= bound[:, 0, 0] * np.exp(logs)
            ).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_does_not_depend_on_its_neighbours(dtype: str) -> None:
    a, b = (clew.tensor(x) for x in batch(40, 5, 2, dtype))
    a[3] = 0
    a[7, 1] = float("nan")
    a[9] = float("inf")
    for function in (
        lambda a, b: la.lu_factor_ex(a),
        lambda a, b: la.solve_ex(a, b),
        lambda a, b: la.inv_ex(a),
        lambda a, b: la.slogdet(a),
    ):
        together = function(a, b)
        for i in range(40):
            for whole, alone in zip(together, function(a[i : i + 1], b[i : i + 1]), strict=True):
                assert whole[i].equal(alone[0]) or (
                    whole[i].isnan().equal(alone[0].isnan())
                    and whole[i].nan_to_num().equal(alone[0].nan_to_num())
                )


def test_zero_pivots() -> None:
    a = clew.zeros(9, 3, 3)
    a[:, 0, 0] = 1
    a[4] = clew.eye(3)
    factors, pivots, info = la.lu_factor_ex(a)
    assert info.tolist() == [2, 2, 2, 2, 0, 2, 2, 2, 2]
    assert factors.equal(a) and pivots.tolist() == [[1, 2, 3]] * 9
    assert la.inv_ex(a).inverse[4].equal(clew.eye(3))
    assert la.det(a).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    with pytest.raises(la.LinAlgError, match=r"linalg.solve: \(Batch element 0\)"):
        la.solve(a, clew.ones(9, 3, 1))
    # What is not a number below the diagonal is no pivot, and infinity is one.
    a = clew.tensor([[0.0, 0.0, 1.0], [float("inf"), 0.0, 1.0], [float("nan"), 1.0, 1.0]])
    factors, pivots, info = la.lu_factor_ex(a)
    assert info.item() == 2 and pivots.tolist() == [2, 2, 3]
    assert factors[0].tolist() == [float("inf"), 0, 1] and factors[2].isnan().all()


@pytest.mark.parametrize("count", [1, 9])
def test_singular_matrices_of_small_integers(count: int) -> None:
    # Products are rounded before they are subtracted: a row that is a multiple of another vanishes.
    for a, b in ((1, 2), (2, 5), (7, 4)):
        for c in (1, 2, 4, 5, 8):
            matrix = clew.tensor([[a, b], [a * c, b * c]]).float().expand(count, 2, 2)
            assert (la.inv_ex(matrix).info == 2).all() and (la.det(matrix) == 0).all()
            with pytest.raises(la.LinAlgError, match="singular"):
                la.solve(matrix, clew.ones(count, 2, 1))
