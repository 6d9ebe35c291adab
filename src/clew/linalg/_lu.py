"""The LU factorization, its parts, and what is solved with it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.results import shown_as
from clew._C import Tensor, arange, eye
from clew._ops.primitive import Context, broadcast_batch, primitive, write_out

from ._common import check_matrix, check_same, check_tensor, conj_transpose, eye_like, report, show
from ._lapack import check as check_info
from ._lapack import loaded, native
from ._triangular import triangular

_PANEL = 32


@shown_as("linalg_lu_factor")
class LUFactor(NamedTuple):
    """Both factors in one matrix, and the row exchanges."""

    LU: Tensor
    pivots: Tensor


@shown_as("linalg_lu_factor_ex")
class LUFactorEx(NamedTuple):
    """Both factors in one matrix, the row exchanges, and the number of the first zero pivot."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@shown_as("linalg_lu")
class LU(NamedTuple):
    """Permutation, lower and upper factor."""

    P: Tensor
    L: Tensor
    U: Tensor


def _factor_panel(
    lu: np.ndarray, start: int, stop: int, pivots: np.ndarray, info: np.ndarray
) -> None:
    """Eliminates the columns start ... stop - 1 below the diagonal, in place; rows are exchanged
    as a whole, other columns keep their values.
    """
    rows = np.arange(len(lu))
    for j in range(start, stop):
        column = lu[:, j:, j]
        # LAPACK compares complex numbers by the sum of their parts.
        size = np.abs(column.real) + np.abs(column.imag) if np.iscomplexobj(lu) else np.abs(column)
        top = j + size.argmax(1)
        pivots[:, j] = top + 1
        exchanged = lu[rows, top]
        lu[rows, top] = lu[rows, j]
        lu[rows, j] = exchanged
        pivot = exchanged[:, j]
        zero = pivot == 0
        info[zero & (info == 0)] = j + 1
        lu[:, j + 1 :, j] /= np.where(zero, 1, pivot)[:, None]
        lu[:, j + 1 :, j + 1 : stop] -= lu[:, j + 1 :, j, None] * lu[:, None, j, j + 1 : stop]


def _factors(a: np.ndarray) -> Any:
    """The compact factors of matrices, the row exchanges, the numbers of the first zero pivots."""
    *batch, m, n = a.shape
    k = min(m, n)
    count = int(np.prod(batch, dtype=np.int64))
    lu = np.array(a).reshape(count, m, n)
    pivots = np.zeros((count, k), np.int32)
    info = np.zeros(count, np.int32)
    with np.errstate(all="ignore"):
        for start in range(0, k if count else 0, _PANEL):
            stop = min(start + _PANEL, k)
            _factor_panel(lu, start, stop, pivots, info)
            if stop < n:
                low = np.tril(lu[:, start:stop, start:stop], -1)
                low += np.eye(stop - start, dtype=a.dtype)
                lu[:, start:stop, stop:] = np.linalg.solve(low, lu[:, start:stop, stop:])
                lu[:, stop:, stop:] -= lu[:, stop:, start:stop] @ lu[:, start:stop, stop:]
    return lu.reshape(a.shape), pivots.reshape(*batch, k), info.reshape(batch)


def _kernel(a: np.ndarray, *, name: str, check: bool) -> Any:
    lu, pivots, infos = _factors(a)
    infos = np.asarray(infos)
    if check:
        report(name, infos, _zero_pivot)
    return lu, pivots, infos


def _zero_pivot(j: int) -> str:
    return (
        f"U[{j},{j}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling "
        "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


def _native(a: Tensor, *, name: str, check: bool) -> Any:
    made = _C.ops._lu_factor(a)
    if check:
        check_info(name, made[2], _zero_pivot)
    return made


def _gradient(c: Context, g: Any, _pivots: Any, _info: Any) -> Any:
    if g is None:
        return None
    lu, pivots, _ = c.outputs
    m, n = lu.shape[-2:]
    k = min(m, n)
    cat = _C.functions["cat"]
    square = lu[..., :k, :k]
    low = square.tril(-1) + eye_like(square, k)
    up = square.triu()
    gl, gu = g[..., :k, :k].tril(-1), g[..., :k, :k].triu()
    rest = None
    # Of P^T A = [A1 A2] the part A2 gives U2 = L^-1 A2; of [A1; A2] it gives L2 = A2 U^-1.
    if m < n:
        rest = triangular(low.mH, g[..., k:], upper=True, unitriangular=True)
        gl = gl - (rest @ lu[..., k:].mH).tril(-1)
    elif m > n:
        rest = triangular(up, g[..., k:, :].mH, upper=True).mH
        gu = gu - (lu[..., k:, :].mH @ rest).triu()
    # With X = L^-1 dA1 U^-1: dL = L tril(X, -1), dU = triu(X) U.
    inner = (low.mH @ gl).tril(-1) + (gu @ up.mH).triu()
    inner = triangular(low.mH, inner, upper=True, unitriangular=True)
    ga = triangular(up, inner.mH, upper=True).mH
    if rest is not None:
        ga = cat([ga, rest], -1 if m < n else -2)
    return permute_rows(ga, permutation(pivots, m), inverse=True)


_lu = primitive(
    "LuFactor",
    shapes=lambda a, **_: [
        (a.shape, a.dtype),
        ((*a.shape[:-2], min(a.shape[-2:])), _dtypes.int32),
        (a.shape[:-2], _dtypes.int32),
    ],
    kernel=_kernel,
    gradient=_gradient,
    native=native(_native),
)


_permutation = primitive(
    "Permutation",
    shapes=lambda pivots, rows: [((*pivots.shape[:-1], rows), _dtypes.int64)],
    kernel=None,
    gradient=None,
    native=lambda pivots, rows: (_C.ops._lu_permutation(pivots, rows),),
)


def permutation(pivots: Tensor, rows: int) -> Tensor:
    """The row of A that stands in each row of P^T A = L U."""
    return _permutation(pivots, rows=rows)


def permute_rows(x: Tensor, order: Tensor, *, inverse: bool = False) -> Tensor:
    """P^T x, or P x when ``inverse``."""
    if inverse:
        order = order.argsort(-1)
    return x.gather(-2, order.unsqueeze(-1).expand(x.shape))


def _factored(name: str, a: Any, pivot: bool, check: bool) -> Any:
    check_matrix(name, a)
    if pivot is not True or check is not True:
        need_bools(name, pivot=pivot, check_errors=check)
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    return _lu(a, name=name, check=check)


@asks_classes
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> LUFactor:
    """The factors of A = P L U in compact form.

    Args:
        A: (*, m, n).
        pivot: True; without row exchanges nothing is offered.
        out: a pair of tensors that receive the result.

    Returns:
        (LU, pivots), (*, m, n) and int32 (*, min(m, n)): L below the diagonal (its diagonal is 1),
        U in and above it; row i was exchanged with row pivots[i] - 1.

    Raises:
        LinAlgError: a pivot is zero.

    Example:
        >>> clew.linalg.lu_factor(clew.tensor([[1.0, 2.0], [2.0, 3.0]])).LU
        tensor([[2.0000, 3.0000],
                [0.5000, 0.5000]])
    """
    lu, pivots, _ = _factored("linalg.lu_factor", A, pivot, True)
    return write_out("linalg.lu_factor", LUFactor(lu, pivots), out)


@asks_classes
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None
) -> LUFactorEx:
    """The factors of A = P L U in compact form, with a number that tells about zero pivots.

    Args:
        A: (*, m, n).
        pivot: True; without row exchanges nothing is offered.
        check_errors: raise as lu_factor does.
        out: three tensors that receive the result.

    Returns:
        (LU, pivots, info), (*, m, n), int32 (*, min(m, n)) and int32 (*); info is 0, or the number
        of the first zero pivot.

    Example:
        >>> clew.linalg.lu_factor_ex(clew.zeros(2, 2)).info
        tensor(1, dtype=clew.int32)
    """
    made = _factored("linalg.lu_factor_ex", A, pivot, check_errors)
    return write_out("linalg.lu_factor_ex", LUFactorEx(*made), out)


@asks_classes
def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> LU:
    """The factors of A = P L U.

    Args:
        A: (*, m, n).
        pivot: True; without row exchanges nothing is offered.
        out: three tensors that receive the result.

    Returns:
        (P, L, U): (*, m, m), (*, m, k), (*, k, n) with k = min(m, n).

    Example:
        >>> clew.linalg.lu(clew.tensor([[1.0, 2.0], [2.0, 3.0]])).U
        tensor([[2.0000, 3.0000],
                [0.0000, 0.5000]])
    """
    compact, pivots, _ = _factored("linalg.lu", A, pivot, False)
    if _C._plain(compact) and not compact.is_meta:
        return write_out("linalg.lu", LU(*_C.ops._lu_unpack(compact, pivots)), out)
    return write_out("linalg.lu", _unpacked(compact, _matrix(pivots, A.shape[-2], A.dtype)), out)


def _unpacked(compact: Tensor, p: Tensor) -> LU:
    m, n = compact.shape[-2:]
    k = min(m, n)
    one = eye(m, k, dtype=compact.dtype, device=compact.device)
    return LU(p, compact[..., :k].tril(-1) + one, compact[..., :k, :].triu())


def _matrix(pivots: Tensor, m: int, dtype: Any) -> Tensor:
    rows = arange(m, device=pivots.device).unsqueeze(-1)
    return (permutation(pivots, m).unsqueeze(-2) == rows).to(dtype)


def _check_pivots(name: str, compact: Tensor, pivots: Any) -> None:
    check_tensor(name, "pivots", pivots)
    if pivots.dtype is not _dtypes.int32:
        raise RuntimeError(f"{name}: pivots must be of dtype int32; got {show(pivots)}")
    k = min(compact.shape[-2:])
    if pivots.shape != (*compact.shape[:-2], k):
        raise RuntimeError(
            f"{name}: pivots must have the batch dimensions of LU and size {k} in the last; got "
            f"{show(compact)} and {show(pivots)}"
        )


@asks_classes
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> LU:
    """The three factors from their compact form.

    Args:
        LU_data: (*, m, n), as lu_factor gives it.
        LU_pivots: (*, k), int32.
        unpack_data: give L and U, else empty tensors.
        unpack_pivots: give P, else an empty tensor.
        out: three tensors that receive the result.

    Returns:
        (P, L, U).

    Example:
        >>> clew.lu_unpack(*clew.linalg.lu_factor(clew.eye(2))).P
        tensor([[1., 0.],
                [0., 1.]])
    """
    check_matrix("lu_unpack", LU_data, "LU_data")
    need_bools("lu_unpack", unpack_data=unpack_data, unpack_pivots=unpack_pivots)
    if unpack_pivots:
        _check_pivots("lu_unpack", LU_data, LU_pivots)
        if unpack_data and _C._plain(LU_data, LU_pivots):
            return write_out("lu_unpack", LU(*_C.ops._lu_unpack(LU_data, LU_pivots)), out)
    empty = LU_data.new_empty((0,))
    p = _matrix(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty
    result = _unpacked(LU_data, p) if unpack_data else LU(p, empty, empty)
    return write_out("lu_unpack", result, out)


@asks_classes
@in_float32
def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The solution X of A X = B (or X A = B) from the LU factorization of A.

    Args:
        LU: (*, n, n), as lu_factor gives it.
        pivots: (*, n), int32.
        B: (*, n, k), or (*, k, n) when left is False.
        left: A stands on the left.
        adjoint: solve with the conjugate transpose of A.
        out: a tensor that receives the result.

    Returns:
        X, of the shape of B with the batch dims of both.

    Example:
        >>> A = clew.tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> clew.linalg.lu_solve(*clew.linalg.lu_factor(A), clew.ones(2, 1))
        tensor([[0.5000],
                [0.2500]])
    """
    return _solved("linalg.lu_solve", LU, pivots, B, left, adjoint, out)


def _solved(
    name: str, compact: Any, pivots: Any, b: Any, left: bool, adjoint: bool, out: Any
) -> Any:
    check_matrix(name, compact, "LU", square=True)
    check_matrix(name, b, "B")
    check_same(name, compact, b)
    _check_pivots(name, compact, pivots)
    need_bools(name, left=left, adjoint=adjoint)
    if compact.shape[-1] != b.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'}; got {show(compact)} and {show(b)}"
        )
    if not left:
        # The conjugate transpose of the equation.
        b, adjoint = b.mH, not adjoint
    if loaded and _C._plain(compact, pivots, b) and not compact.is_meta:
        compact, pivots, b = broadcast_batch(name, compact, pivots, b, core=(2, 1, 2))
        x = _C.ops._lu_solve(compact, pivots, b, bool(adjoint))
        return write_out(name, x if left else conj_transpose(x), out)
    order = permutation(pivots, compact.shape[-1])
    compact, order, b = broadcast_batch(name, compact, order, b, core=(2, 1, 2))
    if adjoint:
        x = triangular(compact.mH, b, upper=False)
        x = triangular(compact.mH, x, upper=True, unitriangular=True)
        x = permute_rows(x, order, inverse=True)
    else:
        x = permute_rows(b, order)
        x = triangular(compact, x, upper=False, unitriangular=True)
        x = triangular(compact, x, upper=True)
    return write_out(name, x if left else conj_transpose(x), out)
