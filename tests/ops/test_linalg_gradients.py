"""Gradients of linear algebra: of functions that do not depend on phases or on the triangle that
is not read.
"""

from __future__ import annotations

import pytest
from matrices import DTYPES, EYE, close, hermitian, skewed
from numeric import check_gradients, normal

import clew
from clew import linalg as la


def test_lobpcg_gradient():
    a = normal(34, 6, 6)
    check_gradients(lambda a: clew.lobpcg(a + a.mT, 2)[0], a, order=1)
    with pytest.raises(RuntimeError, match="rows"):
        clew.lobpcg(clew.eye(6), X=clew.ones(5, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_gradient(dtype, upper):
    check_gradients(
        lambda a: la.cholesky(hermitian(a), upper=upper), normal(11, 2, 3, 3, dtype=dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh_gradient(dtype):
    a = normal(12, 3, 3, dtype=dtype)
    check_gradients(lambda a: la.eigvalsh(skewed(a)), a)
    check_gradients(lambda a: la.eigh(skewed(a), UPLO="U").eigenvalues, a)

    def invariant(a):
        values, v = la.eigh(skewed(a))
        return (v * values.exp().unsqueeze(-2)) @ v.mH + v.abs()[..., :1]

    check_gradients(invariant, a * 0.3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig_gradient(dtype):
    a = normal(13, 3, 3, dtype=dtype)
    check_gradients(lambda a: la.eig(a).eigenvectors.abs(), a)

    def invariant(a):
        values, v = la.eig(a)
        return (v * values.exp().unsqueeze(-2)) @ la.inv(v)

    check_gradients(invariant, a * 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("full", [False, True])
def test_svd_gradient(dtype, shape, full):
    k = min(shape)

    def invariant(a):
        u, s, vh = la.svd(a, full_matrices=full)
        u, vh = u[..., :k], vh[..., :k, :]
        return (u * s.square().unsqueeze(-2)) @ vh

    def vectors(a):
        u, _, vh = la.svd(a, full_matrices=full)
        return u.abs()[..., 0].sum() + vh.abs()[..., 1, :].prod()

    a = normal(14, *shape, dtype=dtype)
    check_gradients(invariant, a)
    check_gradients(vectors, a)


@pytest.mark.parametrize(
    "loss, name",
    [
        (lambda a: la.svd(a).U.real.sum(), "svd_backward"),
        (lambda a: la.eigh(a + a.mH).eigenvectors.real.sum(), "linalg_eigh_backward"),
        (lambda a: la.eig(a).eigenvectors.imag.sum(), "linalg_eig_backward"),
    ],
)
def test_losses_that_depend_on_phases_are_refused(loss, name):
    a = clew.tensor(normal(15, 3, 3, dtype="complex128"), requires_grad=True)
    with pytest.raises(RuntimeError, match=f"{name}.*ill-defined"):
        loss(a).backward()


def test_repeated_values_have_no_vectors_derivative():
    a = clew.eye(3, dtype=clew.float64).requires_grad_()
    (g,) = clew.autograd.grad(la.eigh(a).eigenvectors.sum(), a)
    assert not g.isfinite().all()
    (g,) = clew.autograd.grad(la.eigh(a).eigenvalues.sum(), a)
    close(g, EYE)
    (g,) = clew.autograd.grad(la.svdvals(a).sum(), a)
    close(g, EYE)


def test_qr_refusals():
    a = clew.ones(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="complete"):
        la.qr(a, "complete").Q.sum().backward()
    with pytest.raises(RuntimeError, match="mode='r'"):
        la.qr(a, "r").R.sum().backward()


@pytest.mark.parametrize("dtype", DTYPES)
def test_slogdet_gradient(dtype):
    a = normal(19, 2, 3, 3, dtype=dtype)
    check_gradients(lambda a: la.slogdet(a).logabsdet, a)
    check_gradients(lambda a: la.slogdet(a).sign * (a**2).sum(), a)
    sign, log = la.slogdet(clew.zeros(2, 2))
    assert sign == 0 and log == -float("inf")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_pinv_of_constant_rank(dtype, shape):
    m, n = shape
    left, right = normal(20, m, 1, dtype=dtype), normal(21, 1, n, dtype=dtype)
    check_gradients(lambda a, b: la.pinv(a @ b), left, right)
    a = clew.tensor(left @ right)
    p = la.pinv(a)
    close(a @ p @ a, a)
    close(p @ a @ p, p)
    close((a @ p).mH, a @ p)


def test_second_slopes_of_matrix_exp():
    a = clew.tensor(normal(23, 2, 3, 3)).requires_grad_()
    assert clew.autograd.gradcheck(la.matrix_exp, (a,))
    assert clew.autograd.gradgradcheck(la.matrix_exp, (a * 0.5,))
