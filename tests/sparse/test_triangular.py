"""Triangular systems with a sparse matrix: solutions, gradients, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def matrix(n, complex_=False):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, n)) * (rng.random((n, n)) > 0.4) + 3 * np.eye(n)
    return a + 1j * rng.normal(size=(n, n)) * (a != 0) if complex_ else a


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_solutions_and_gradients(upper, turned, unit, complex_):
    a, n = matrix(4, complex_), 4
    b = np.random.default_rng(1).normal(size=(n, 2)).astype(a.dtype)
    sparse = clew.tensor(a).to_sparse_csr()
    values = sparse.values().detach().requires_grad_()

    def solve(v, right):
        m = clew.sparse_csr_tensor(sparse.crow_indices(), sparse.col_indices(), v, (n, n))
        options = {"upper": upper, "transpose": turned, "unitriangular": unit}
        return clew.triangular_solve(right, m, **options).solution

    triangle = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    triangle = triangle + np.eye(n) * unit
    want = np.linalg.solve(triangle.T if turned else triangle, b)
    right = clew.tensor(b, requires_grad=True)
    np.testing.assert_allclose(solve(values, right).detach(), want, rtol=1e-12)
    assert clew.autograd.gradcheck(solve, (values, right))
    assert clew.autograd.gradgradcheck(solve, (values, right))


def test_a_diagonal_without_elements_is_zero():
    a = clew.tensor([[0.0, 1.0], [1.0, 2.0]]).to_sparse_csr()
    solution, coefficient = clew.ones(2, 1).triangular_solve(a, upper=False)
    assert solution.tolist() == [[np.inf], [-np.inf]] and coefficient.numel() == 0
    assert clew.ones(0, 2).triangular_solve(clew.zeros(0, 0).to_sparse_csr())[0].shape == (0, 2)


@pytest.mark.parametrize(
    ("b", "a", "message"),
    [
        (clew.ones(2), clew.eye(2).to_sparse_csr(), "input must be a matrix with the 2 rows"),
        (clew.ones(3, 1), clew.eye(2).to_sparse_csr(), "input must be a matrix with the 2 rows"),
        (clew.ones(2, 1), clew.ones(2, 3).to_sparse_csr(), "A must be a square matrix"),
        (clew.ones(2, 1).double(), clew.eye(2).to_sparse_csr(), "one floating or complex dtype"),
        (clew.ones(2, 1).half(), clew.eye(2).half().to_sparse_csr(), r"convert with \.float"),
        (clew.ones(2, 1), clew.eye(2).to_sparse(), "no rule"),
        (clew.ones(2, 1), clew.eye(2).to_sparse_csc(), "no rule"),
    ],
)
def test_refused(b, a, message):
    with pytest.raises(RuntimeError, match=message):
        clew.triangular_solve(b, a)
