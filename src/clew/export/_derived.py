"""Operations of the core whose gradient rules stand in Python: as programs call them.

The public function has the rule (`clew.linalg`, `clew.special`), a program calls the operation that
it was made of. Where a gradient is wanted, the function that has the rule runs instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import clew
from clew import _C, Tensor

__all__ = ["with_rule"]


def _info(a: Tensor) -> Tensor:
    """What the core says of matrices that could be factored; the functions raise for others."""
    return a.new_zeros(a.shape[:-2], dtype=clew.int32)


def _eigh(a: Tensor, upper: bool, vectors: bool) -> Any:
    from clew.linalg import _eigen

    return *_eigen._eigh(a, uplo="U" if upper else "L", name="linalg.eigh"), _info(a)


def _eig(a: Tensor, vectors: bool) -> Any:
    from clew.linalg import _eigen

    return *_eigen._eig(a, name="linalg.eig"), _info(a)


def _svd(a: Tensor, full: bool, vectors: bool) -> Any:
    from clew.linalg import _svd

    return *_svd._svd(a, full=bool(full and vectors), name="linalg.svd"), _info(a)


def _qr(a: Tensor, complete: bool, with_q: bool) -> Any:
    from clew.linalg import _qr

    mode = "r" if not with_q else "complete" if complete else "reduced"
    return *_qr._qr(a, mode=mode), _info(a)


def _cholesky(a: Tensor, upper: bool) -> Any:
    from clew.linalg import _cholesky

    return _cholesky._factor(a, upper=upper, name="linalg.cholesky", check=False)


def _lu_factor(a: Tensor) -> Any:
    from clew.linalg import _lu

    return _lu._lu(a, name="linalg.lu_factor", check=False)


def _solve(a: Tensor, b: Tensor) -> Any:
    from clew.linalg import _solve

    return _solve._solve(a, b, name="linalg.solve", check=False)


def _inverse(a: Tensor) -> Any:
    from clew.linalg import _solve

    return _solve._inv(a, name="linalg.inv", check=False)


def _solve_triangular(a: Tensor, b: Tensor, upper: bool, unitriangular: bool) -> Any:
    from clew.linalg import _triangular

    return _triangular.triangular(a, b, upper=upper, unitriangular=unitriangular)


def _lstsq(a: Tensor, b: Tensor, driver: int, rcond: float) -> Any:
    """The rows behind the solution stand for what is left: only their squares' sum is used."""
    made, rank, values, info = _C.ops._lstsq(a.detach(), b.detach(), driver, rcond)
    rows, columns = a.shape[-2:]
    x = clew.linalg.pinv(a, rtol=rcond) @ b
    if rows > columns:
        left = clew.linalg.vector_norm(a @ x - b, dim=-2, keepdim=True)
        none = left.new_zeros((*left.shape[:-2], rows - columns - 1, left.shape[-1]))
        x = clew.cat([x, left.to(x.dtype), none.to(x.dtype)], -2)
    elif made.shape[-2] > columns:
        x = clew.cat([x, made[..., columns:, :]], -2)
    return x, rank, values, info


def _polynomial(x: Tensor, n: Tensor, family: int, derivative: int) -> Any:
    from clew.special import _polynomials

    names = {number: name for name, number in _polynomials._FAMILIES.items()}
    return _polynomials._polynomial(x, n, family=names[family], derivative=derivative)


def _householder_product(a: Tensor, tau: Tensor) -> Any:
    return clew.linalg.householder_product(a, tau), _info(a)


def _ormqr(a: Tensor, tau: Tensor, other: Tensor, left: bool, adjoint: bool) -> Any:
    return clew.ormqr(a, tau, other, left, adjoint), _info(a)


def _cholesky_solve(b: Tensor, factor: Tensor, upper: bool) -> Any:
    return clew.cholesky_solve(b, factor, upper)


def _lu_solve(compact: Tensor, pivots: Tensor, b: Tensor, adjoint: bool) -> Any:
    return clew.linalg.lu_solve(compact, pivots, b, adjoint=adjoint)


_RULES: dict[str, Callable[..., Any]] = {
    "_eigh": _eigh,
    "_eig": _eig,
    "_svd": _svd,
    "_qr": _qr,
    "_cholesky": _cholesky,
    "_cholesky_solve": _cholesky_solve,
    "_lu_factor": _lu_factor,
    "_lu_solve": _lu_solve,
    "_lu_unpack": lambda compact, pivots: clew.lu_unpack(compact, pivots),
    "_solve": _solve,
    "_inverse": _inverse,
    "_solve_triangular": _solve_triangular,
    "_lstsq": _lstsq,
    "_det": lambda a: clew.linalg.det(a),
    "_slogdet": lambda a: clew.linalg.slogdet(a),
    "_householder_product": _householder_product,
    "_ormqr": _ormqr,
    "_polynomial": _polynomial,
}


def with_rule(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a program calls for an operation; with a rule where the core has none.

    Args:
        op: the operation's name in programs.
        function: what runs it.
    """
    rule = _RULES.get(op.removeprefix("ops.")) if op.startswith("ops._") else None
    if rule is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs or _C._plain(*[a for a in args if isinstance(a, Tensor)]):
            return function(*args, **kwargs)
        return rule(*args)

    return called
