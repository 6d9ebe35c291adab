"""Factorizations of matrices of low rank, and a few eigenpairs of large ones."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base.dtypes import strided
from clew._base.overriding import asks_classes
from clew._C import Tensor

from ._cholesky import cholesky
from ._common import check_matrix, check_same, check_tensor, conj_transpose, eps_of, every, show
from ._eigen import eigh
from ._qr import qr
from ._svd import svd
from ._toplevel import SVDOfOld
from ._triangular import triangular

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def _range(a: Tensor, q: int, niter: int) -> Tensor:
    """An orthonormal basis near the span of the first q left singular vectors: a random sample of
    the range, improved by ``niter`` rounds of subspace iteration.
    """
    from clew import randn

    sample = randn(*a.shape[:-2], a.shape[-1], q, dtype=a.dtype, device=a.device)
    basis = qr(a @ sample).Q
    for _ in range(niter):
        basis = qr(a @ qr(a.mH @ basis).Q).Q
    return basis


@asks_classes
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int = 2, M: Tensor | None = None) -> SVDOfOld:
    """The first singular values and vectors of A - M, by a randomized method (Halko, Martinsson,
    Tropp, 2011).

    Args:
        A: (*, m, n), of a rank not much greater than q.
        q: how many; 6 by default. There are at most min(m, n).
        niter: rounds of subspace iteration.
        M: subtracted from A; broadcast.

    Returns:
        (U, S, V): (*, m, k), (*, k), (*, n, k), where k is the least of m, n and q.

    Example:
        >>> clew.svd_lowrank(clew.ones(3, 4), q=1)[1]
        tensor([3.4641])
    """
    name = "svd_lowrank"
    check_matrix(name, A)
    q = 6 if q is None else q
    if M is not None:
        check_tensor(name, "M", M)
        A = A - M
    m, n = A.shape[-2:]
    if q < 0:
        raise ValueError(f"{name}: q(={q}) must be non-negative integer")
    if niter < 0:
        raise ValueError(f"{name}: niter(={niter}) must be non-negative integer")
    # The short side is sampled.
    wide = m < n
    work = A.mH if wide else A
    basis = _range(work, q, niter)
    u, s, vh = svd(basis.mH @ work, full_matrices=False)
    u = basis @ u
    return SVDOfOld(conj_transpose(vh), s, u) if wide else SVDOfOld(u, s, conj_transpose(vh))


@asks_classes
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVDOfOld:
    """The principal components of the rows of A, by svd_lowrank.

    Args:
        A: (*, m, n), m observations.
        q: how many components; min(6, m, n) by default.
        center: subtract each column's mean first.
        niter: rounds of subspace iteration.

    Returns:
        (U, S, V); the columns of V are the directions.

    Example:
        >>> clew.pca_lowrank(clew.tensor([[1.0, 2.0], [3.0, 2.0]]), q=1)[2].abs()
        tensor([[1.],
                [0.]])
    """
    name = "pca_lowrank"
    check_matrix(name, A)
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"{name}: q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"{name}: niter(={niter}) must be non-negative integer")
    if center and A.layout is not strided:
        return _pca_of_sparse(A, q, niter)
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)


def _pca_of_sparse(a: Tensor, q: int, niter: int) -> SVDOfOld:
    """The components of the rows of a sparse matrix: the means are taken off its products, so that
    it never becomes dense.
    """
    from clew import randn

    m, n = a.shape
    mean = (a.sum(0).to_dense() / m).unsqueeze(0)
    turned = a.mH

    def times(x: Tensor) -> Tensor:
        return a @ x - mean @ x

    def back(x: Tensor) -> Tensor:
        return turned @ x - mean.mH @ x.sum(0, keepdim=True)

    if m < n:
        times, back = back, times
    basis = qr(times(randn(min(m, n), q, dtype=a.dtype))).Q
    for _ in range(niter):
        basis = qr(times(qr(back(basis)).Q)).Q
    u, s, vh = svd(conj_transpose(back(basis)), full_matrices=False)
    u = basis @ u
    return SVDOfOld(conj_transpose(vh), s, u) if m < n else SVDOfOld(u, s, conj_transpose(vh))


def _pencil(a: Tensor, b: Tensor | None) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and vectors of A x = l B x; the vectors are B-orthonormal."""
    if b is None:
        return eigh(a)
    low = cholesky(b)
    half = triangular(low, a, upper=False)
    values, vectors = eigh(triangular(low, half.mH, upper=False))
    return values, triangular(low.mH, vectors, upper=True)


def _independent(s: Tensor, b: Tensor | None) -> Tensor:
    """An orthonormal basis (in the metric B) of the columns' span."""
    q = qr(s).Q
    if b is None:
        return q
    low = cholesky(q.mH @ b @ q)
    return conj_transpose(triangular(low, q.mH, upper=False))


def _refuse(name: str, **given: Any) -> None:
    for key, value in given.items():
        if value is not None:
            raise NotImplementedError(f"{name}: {key} is not implemented; leave it None")


@asks_classes
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of A x = l B x and their vectors, by the locally
    optimal block preconditioned conjugate gradient method (Knyazev, 2001).

    Args:
        A: (*, m, m), symmetric; with derivatives all eigenpairs are computed.
        k: how many pairs; the columns of X, or 1.
        B: (*, m, m), symmetric positive definite; the identity by default.
        X: (*, m, n), where to start; random by default.
        n: the columns of a random start; k by default.
        iK: (*, m, m), a preconditioner.
        niter: the most iterations; 1000 by default, -1 for no limit.
        tol: the residual's size, relative to those of A and B, that is good enough.
        largest: the largest eigenvalues (the default), else the smallest.
        method: "ortho" or "basic"; both work on orthonormal bases.
        tracker, ortho_iparams, ortho_fparams, ortho_bparams: not implemented; None.

    Returns:
        (E, X): (*, k) and (*, m, k), the best first.

    Example:
        >>> clew.lobpcg(clew.diag(clew.arange(1.0, 7.0)), k=2)[0].round()
        tensor([6., 5.])
    """
    name = "lobpcg"
    check_matrix(name, A, square=True)
    _refuse(
        name,
        tracker=tracker,
        ortho_iparams=ortho_iparams,
        ortho_fparams=ortho_fparams,
        ortho_bparams=ortho_bparams,
    )
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"{name}: method must be 'ortho' or 'basic'; got {method!r}")
    for word, t in (("B", B), ("iK", iK)):
        if t is not None:
            check_matrix(name, t, word, square=True)
            check_same(name, A, t)
            if t.shape[-1] != A.shape[-1]:
                raise RuntimeError(f"{name}: {word} must fit A; got {show(A)} and {show(t)}")
    m = A.shape[-1]
    if X is not None:
        check_matrix(name, X, "X")
        if X.shape[-2] != m:
            raise RuntimeError(f"{name}: X must have {m} rows; got {show(X)}")
        n = X.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = k if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    if not 1 <= k <= n:
        raise ValueError(f"{name}: k must lie between 1 and n; got k={k} and n={n}")
    top = largest is None or largest
    recording = _C.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad))
    if recording or A.device.type == "meta":
        values, vectors = _pencil((A + A.mH) / 2, B)
        if top:
            values, vectors = values.flip(-1), vectors.flip(-1)
        return values[..., :k], vectors[..., :k]
    if X is None:
        from clew import randn

        X = randn(*A.shape[:-2], m, n, dtype=A.dtype, device=A.device)
    if tol is None:
        tol = eps_of(A.dtype) ** 0.5
    return _iterate(A, B, X, iK, k, 1000 if niter is None else niter, tol, top)


def _largest_row(a: Tensor) -> Tensor:
    """The largest sum of a row's absolute values; a may be sparse."""
    sums = a.abs().sum(-1)
    return (sums.to_dense() if sums.is_sparse else sums).amax()


def _iterate(
    a: Tensor,
    b: Tensor | None,
    x: Tensor,
    ik: Tensor | None,
    k: int,
    niter: int,
    tol: float,
    top: bool,
) -> tuple[Tensor, Tensor]:
    n = x.shape[-1]
    cat = _C.functions["cat"]
    size_a = _largest_row(a)
    size_b = 1.0 if b is None else _largest_row(b)
    basis = _independent(x, b)
    p: Tensor | None = None
    step = 0
    while True:
        # Rayleigh and Ritz in the span of the vectors, the residuals, the last directions.
        values, inner = eigh(basis.mH @ a @ basis)
        if top:
            values, inner = values.flip(-1), inner.flip(-1)
        values, inner = values[..., :n], inner[..., :n]
        new = basis @ inner
        if step:
            p = new - x @ (x.mH @ (new if b is None else b @ new))
        x = new
        residual = a @ x - (x if b is None else b @ x) * values.unsqueeze(-2)
        scale = (size_a + values.abs() * size_b) * x.abs().square().sum(-2).sqrt()
        small = residual.abs().square().sum(-2).sqrt() <= tol * scale
        if step == niter or every(small[..., :k]):
            return values[..., :k], x[..., :k]
        w = residual if ik is None else ik @ residual
        parts = [x, w] if p is None else [x, w, p]
        basis = _independent(cat(parts, -1), b)
        step += 1
