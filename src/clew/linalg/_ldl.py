"""The LDL factorization of symmetric and hermitian matrices (Bunch and Kaufman)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools
from clew._base.overriding import asks_classes
from clew._base.results import shown_as
from clew._C import Tensor
from clew._ops.primitive import broadcast_batch, primitive, write_out

from ._common import check_matrix, check_same, check_tensor, per_matrix, report, show
from ._lapack import check as check_info
from ._lapack import native

_ALPHA = (1 + math.sqrt(17)) / 8


@shown_as("linalg_ldl_factor")
class LDLFactor(NamedTuple):
    """Both factors in one matrix, and the exchanges."""

    LD: Tensor
    pivots: Tensor


@shown_as("linalg_ldl_factor_ex")
class LDLFactorEx(NamedTuple):
    """Both factors in one matrix, the exchanges, and the number of the first zero pivot."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _size(x: np.ndarray) -> np.ndarray:
    return np.abs(x.real) + np.abs(x.imag)


def _choose(a: np.ndarray, k: int, hermitian: bool) -> tuple[int, int]:
    """The row that is exchanged next and the size, 1 or 2, of the diagonal block; size 0 when the
    column is zero.
    """

    def diagonal(i: int) -> float:
        return float(abs(a[i, i].real) if hermitian else _size(a[i, i]))

    n = len(a)
    below = _size(a[k + 1 :, k])
    greatest = float(below.max(initial=0))
    if max(diagonal(k), greatest) == 0 or math.isnan(diagonal(k)):
        return k, 0
    if diagonal(k) >= _ALPHA * greatest:
        return k, 1
    row = k + 1 + int(below.argmax())
    others = max(
        float(_size(a[row, k:row]).max()), float(_size(a[row + 1 : n, row]).max(initial=0))
    )
    if diagonal(k) >= _ALPHA * greatest * (greatest / others):
        return k, 1
    return row, 1 if diagonal(row) >= _ALPHA * others else 2


def _exchange(a: np.ndarray, i: int, j: int, hermitian: bool) -> None:
    """Exchanges rows and columns i < j of a matrix of which the lower triangle from column i on
    counts.
    """
    below = a[j + 1 :, i].copy()
    a[j + 1 :, i] = a[j + 1 :, j]
    a[j + 1 :, j] = below
    between = a[i + 1 : j, i].copy()
    a[i + 1 : j, i] = a[j, i + 1 : j].conj() if hermitian else a[j, i + 1 : j]
    a[j, i + 1 : j] = between.conj() if hermitian else between
    if hermitian:
        a[j, i] = a[j, i].conj()
    a[i, i], a[j, j] = a[j, j], a[i, i]


def _factor(matrix: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, int]:
    a = np.tril(matrix)
    n = len(a)
    pivots = np.zeros(n, np.int32)
    info = 0

    def turned(x: np.ndarray) -> np.ndarray:
        return x.conj().T if hermitian else x.T

    k = 0
    while k < n:
        row, step = _choose(a, k, hermitian)
        if step == 0:
            info = info or k + 1
            pivots[k] = k + 1
            if hermitian:
                a[k, k] = a[k, k].real
            k += 1
            continue
        last = k + step - 1
        if row != last:
            _exchange(a, last, row, hermitian)
            if step == 2:
                a[last, k], a[row, k] = a[row, k], a[last, k]
        if hermitian:
            for i in range(k, n):
                a[i, i] = a[i, i].real
        rest = a[last + 1 :, k : last + 1]
        if step == 1:
            factors = rest / a[k, k]
        else:
            block = np.array([[a[k, k], 0], [a[last, k], a[last, last]]], a.dtype)
            block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
            factors = np.linalg.solve(block.T, rest.T).T if len(rest) else rest
        a[last + 1 :, last + 1 :] -= np.tril(factors @ turned(rest))
        a[last + 1 :, k : last + 1] = factors
        pivots[k : last + 1] = row + 1 if step == 1 else -(row + 1)
        k += step
    return a, pivots, info


def _kernel(a: np.ndarray, *, hermitian: bool, name: str, check: bool) -> Any:
    made = per_matrix(a.shape[:-2], lambda x: _factor(x, hermitian), a)
    batch = a.shape[:-2]
    info = np.array([m[2] for m in made], np.int32).reshape(batch)
    if check:
        report(name, info, _singular)
    if not made:
        return a, np.zeros(a.shape[:-1], np.int32), info
    factors = np.stack([m[0] for m in made]).reshape(a.shape)
    return factors, np.stack([m[1] for m in made]).reshape(a.shape[:-1]), info


def _singular(k: int) -> str:
    return f"D[{k},{k}] is zero: the input matrix is singular."


def _native(a: Tensor, *, hermitian: bool, name: str, check: bool) -> Any:
    made = _C.ops._ldl_factor(a, hermitian)
    if check:
        check_info(name, made[2], _singular)
    return made


_ldl = primitive(
    "LdlFactor",
    shapes=lambda a, **_: [
        (a.shape, a.dtype),
        (a.shape[:-1], _dtypes.int32),
        (a.shape[:-2], _dtypes.int32),
    ],
    kernel=_kernel,
    gradient=None,
    native=native(_native),
)


@asks_classes
def ldl_factor(input: Tensor, *, hermitian: bool = False, out: Any = None) -> LDLFactor:
    """The factors of A = P L D L^T P^T in LAPACK's compact form.

    Args:
        input: A, (*, n, n), symmetric or hermitian; the lower triangle is read.
        hermitian: complex matrices are hermitian, else symmetric.
        out: a pair of tensors that receive the result.

    Returns:
        (LD, pivots), (*, n, n) and int32 (*, n); a negative pivot, twice, marks a 2 by 2 block of
        D. There is no derivative.

    Example:
        >>> clew.linalg.ldl_factor(clew.tensor([[2.0, 1.0], [1.0, 2.0]])).LD
        tensor([[2.0000, 0.0000],
                [0.5000, 1.5000]])
    """
    check_matrix("linalg.ldl_factor", input, square=True)
    need_bools("linalg.ldl_factor", hermitian=hermitian)
    made = _ldl(
        input, hermitian=_is_hermitian(input, hermitian), name="linalg.ldl_factor", check=True
    )
    return write_out("linalg.ldl_factor", LDLFactor(*made[:2]), out, records=True)


@asks_classes
def ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> LDLFactorEx:
    """The factors of ldl_factor, with a number that tells about zero pivots.

    Args:
        input: (*, n, n), symmetric or hermitian; the lower triangle is read.
        hermitian: complex matrices are hermitian, else symmetric.
        check_errors: raise as ldl_factor does.
        out: three tensors that receive the result.

    Returns:
        (LD, pivots, info), (*, n, n), int32 (*, n) and int32 (*); info is 0, or the number of the
        first zero in D.

    Example:
        >>> clew.linalg.ldl_factor_ex(clew.zeros(1, 1)).info
        tensor(1, dtype=clew.int32)
    """
    name = "linalg.ldl_factor_ex"
    check_matrix(name, input, square=True)
    need_bools(name, hermitian=hermitian, check_errors=check_errors)
    made = _ldl(input, hermitian=_is_hermitian(input, hermitian), name=name, check=check_errors)
    return write_out(name, LDLFactorEx(*made), out, records=True)


def _is_hermitian(a: Tensor, hermitian: bool) -> bool:
    return bool(hermitian) and a.is_complex()


def _solve_one(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    x = np.array(b)
    n = len(ld)
    steps = []
    k = 0
    while k < n:
        step = 1 if pivots[k] > 0 or k + 1 == n else 2
        steps.append((k, step))
        k += step
    for k, step in steps:
        last, row = k + step - 1, abs(int(pivots[k])) - 1
        x[[last, row]] = x[[row, last]]
        x[last + 1 :] -= ld[last + 1 :, k : last + 1] @ x[k : last + 1]
        block = np.tril(ld[k : last + 1, k : last + 1])
        if step == 2:
            block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
            x[k : last + 1] = np.linalg.solve(block, x[k : last + 1])
        else:
            x[k] /= block[0, 0]
    for k, step in reversed(steps):
        last, row = k + step - 1, abs(int(pivots[k])) - 1
        below = ld[last + 1 :, k : last + 1].T
        x[k : last + 1] -= (below.conj() if hermitian else below) @ x[last + 1 :]
        x[[last, row]] = x[[row, last]]
    return x


def _solve_kernel(
    ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, hermitian: bool
) -> np.ndarray:
    n = ld.shape[-1]
    if ((np.abs(pivots) < 1) | (np.abs(pivots) > n) | ((pivots < 0) & (n < 2))).any():
        raise RuntimeError(
            f"linalg.ldl_solve: pivots must be those that ldl_factor gives; got {pivots.tolist()}"
        )
    with np.errstate(all="ignore"):
        made = per_matrix(
            ld.shape[:-2], lambda f, p, x: _solve_one(f, p, x, hermitian), ld, pivots, b
        )
    return np.stack(made).reshape(b.shape) if made else b


def _solve_native(ld: Tensor, pivots: Tensor, b: Tensor, *, hermitian: bool) -> Any:
    return _C.ops._ldl_solve(ld, pivots.to(_dtypes.int32), b, hermitian)[:1]


_ldl_solve = primitive(
    "LdlSolve",
    shapes=lambda ld, pivots, b, **_: [(b.shape, b.dtype)],
    kernel=_solve_kernel,
    gradient=None,
    native=native(_solve_native),
)


@asks_classes
def ldl_solve(
    LD: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The solution X of A X = B from the LDL factorization of A.

    Args:
        LD: (*, n, n), as ldl_factor gives it.
        pivots: (*, n), int32.
        B: (*, n, k).
        hermitian: as it was given to ldl_factor.
        out: a tensor that receives the result.

    Returns:
        (*, n, k); there is no derivative.

    Example:
        >>> A = clew.tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> clew.linalg.ldl_solve(*clew.linalg.ldl_factor(A), clew.ones(2, 1))
        tensor([[0.5000],
                [0.2500]])
    """
    name = "linalg.ldl_solve"
    check_matrix(name, LD, "LD", square=True)
    check_matrix(name, B, "B")
    check_tensor(name, "pivots", pivots)
    check_same(name, LD, B)
    need_bools(name, hermitian=hermitian)
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of LD and B for the equation AX = B; got {show(LD)} and "
            f"{show(B)}"
        )
    if pivots.dtype not in (_dtypes.int32, _dtypes.int64) or pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected pivots to be integers of shape {list(LD.shape[:-1])}; got "
            f"{show(pivots)}"
        )
    LD, pivots, B = broadcast_batch(name, LD, pivots, B, core=(2, 1, 2))
    made = _ldl_solve(LD, pivots, B, hermitian=_is_hermitian(LD, hermitian))
    return write_out(name, made, out, records=True)
