"""Linear systems and inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_int
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context, broadcast_batch, primitive, write_out

from ._common import (
    InvEx,
    SolveEx,
    check_matrix,
    check_same,
    check_tensor,
    per_matrix,
    report,
    show,
)
from ._lapack import check as check_info
from ._lapack import native


def zero_pivot(a: np.ndarray) -> int:
    """The number (from 1) of the first zero pivot of a singular matrix's LU factorization."""
    lu = np.array(a)
    n = len(lu)
    with np.errstate(all="ignore"):
        for k in range(n):
            top = k + int(np.argmax(np.abs(lu[k:, k])))
            lu[[k, top]] = lu[[top, k]]
            if lu[k, k] == 0:
                return k + 1
            factors = lu[k + 1 :, k] / lu[k, k]
            lu[k + 1 :, k + 1 :] -= np.outer(factors, lu[k, k + 1 :])
    return n


def _solved(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    try:
        return np.linalg.solve(a, b), 0
    except np.linalg.LinAlgError:
        return np.full_like(b, np.nan), zero_pivot(a)


def _solve_kernel(a: np.ndarray, b: np.ndarray, *, name: str, check: bool) -> Any:
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        return np.linalg.solve(a, b), info
    except np.linalg.LinAlgError:
        pairs = per_matrix(a.shape[:-2], _solved, a, b)
    info = np.array([p[1] for p in pairs], np.int32).reshape(info.shape)
    if check:
        report(name, info, _singular_system)
    return np.stack([p[0] for p in pairs]).reshape(b.shape), info


def _singular_system(_: int) -> str:
    return "The solver failed because the input matrix is singular."


def _solve_native(a: Tensor, b: Tensor, *, name: str, check: bool) -> Any:
    made = _C.ops._solve(a, b)
    if check:
        check_info(name, made[1], _singular_system)
    return made


def _solve_shapes(a: Tensor, b: Tensor, **attrs: Any) -> Any:
    return [(b.shape, b.dtype), (a.shape[:-2], _dtypes.int32)]


def _solve_gradient(c: Context, g: Any, _: Any) -> Any:
    if g is None:
        return None, None
    a, _b = c.inputs
    gb, _info = _solve(a.mH, g, name="linalg.solve", check=False)
    return -(gb @ c.outputs[0].mH) if c.needs[0] else None, gb


_solve = primitive(
    "Solve",
    shapes=_solve_shapes,
    kernel=_solve_kernel,
    gradient=_solve_gradient,
    native=native(_solve_native),
)


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is (a batch of) vectors rather than matrices."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _solve_any(name: str, A: Any, B: Any, left: bool, check: bool) -> tuple[Tensor, Tensor]:
    check_matrix(name, A, square=True)
    check_tensor(name, "B", B)
    check_same(name, A, B)
    if left is not True or check is not True:
        need_bools(name, left=left, check_errors=check)
    if B.ndim == 0:
        raise RuntimeError(f"{name}: B must have at least 1 dimension; got {show(B)}")
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False; "
            f"got {show(A)} and {show(B)}"
        )
    right = B.unsqueeze(-1) if vector else B
    if A.shape[-1] != right.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'}; got {show(A)} and {show(B)}"
        )
    if not left:
        A, right = A.mT, right.mT
    A, right = broadcast_batch(name, A, right, core=(2, 2))
    x, info = _solve(A, right, name=name, check=check)
    if not left:
        x = x.mT
    return x.squeeze(-1) if vector else x, info


@asks_classes
@in_float32
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The solution X of A X = B (or X A = B).

    Args:
        A: (*, n, n), invertible.
        B: (*, n, k); or vectors: (n,), or (*, n) with the very batch dims of A.
        left: A stands on the left.
        out: a tensor that receives the result.

    Returns:
        X, of the shape of B with the batch dims of both.

    Raises:
        LinAlgError: a matrix is singular.

    Example:
        >>> clew.linalg.solve(clew.tensor([[2.0, 0.0], [0.0, 4.0]]), clew.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    return write_out("linalg.solve", _solve_any("linalg.solve", A, B, left, True)[0], out)


@asks_classes
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> SolveEx:
    """The solution of a linear system, with a number that tells whether it exists, not an error.

    Args:
        A: (*, n, n).
        B: as in solve.
        left: A stands on the left.
        check_errors: raise as solve does.
        out: a pair of tensors that receive the result.

    Returns:
        (result, info), of the shape of B and int32 (*); info is 0, or the index of the first zero
        pivot (the result is nan then).

    Example:
        >>> clew.linalg.solve_ex(clew.zeros(1, 1), clew.ones(1)).info
        tensor(1, dtype=clew.int32)
    """
    x, info = _solve_any("linalg.solve_ex", A, B, left, check_errors)
    return write_out("linalg.solve_ex", SolveEx(x, info), out)


def _inverted(a: np.ndarray) -> tuple[np.ndarray, int]:
    try:
        return np.linalg.inv(a), 0
    except np.linalg.LinAlgError:
        return np.full_like(a, np.nan), zero_pivot(a)


def _inv_kernel(a: np.ndarray, *, name: str, check: bool) -> Any:
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        return np.linalg.inv(a), info
    except np.linalg.LinAlgError:
        pairs = per_matrix(a.shape[:-2], _inverted, a)
    info = np.array([p[1] for p in pairs], np.int32).reshape(info.shape)
    if check:
        report(name, info, _singular)
    return np.stack([p[0] for p in pairs]).reshape(a.shape), info


def _singular(k: int) -> str:
    return (
        f"The diagonal element {k} is zero, the inversion could not be completed because "
        "the input matrix is singular."
    )


def _inv_native(a: Tensor, *, name: str, check: bool) -> Any:
    made = _C.ops._inverse(a)
    if check:
        check_info(name, made[1], _singular)
    return made


def _inv_shapes(a: Tensor, **attrs: Any) -> Any:
    return [(a.shape, a.dtype), (a.shape[:-2], _dtypes.int32)]


def _inv_gradient(c: Context, g: Any, _: Any) -> Any:
    if g is None:
        return None
    back = c.outputs[0].mH
    return -(back @ g @ back)


_inv = primitive(
    "Inverse",
    shapes=_inv_shapes,
    kernel=_inv_kernel,
    gradient=_inv_gradient,
    native=native(_inv_native),
)


def inverse_or_nan(a: Tensor) -> Tensor:
    """The inverses of matrices; nan where there is none."""
    return _inv(a, name="linalg.inv", check=False)[0]


@asks_classes
@in_float32
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of matrices.

    Args:
        A: (*, n, n), invertible.
        out: a tensor that receives the result.

    Returns:
        (*, n, n).

    Raises:
        LinAlgError: a matrix is singular.

    Example:
        >>> clew.linalg.inv(clew.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    check_matrix("linalg.inv", A, square=True)
    return write_out("linalg.inv", _inv(A, name="linalg.inv", check=True)[0], out)


@asks_classes
@in_float32
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> InvEx:
    """The inverse of matrices, with a number that tells whether it exists instead of an error.

    Args:
        A: (*, n, n).
        check_errors: raise as inv does.
        out: a pair of tensors that receive the result.

    Returns:
        (inverse, info), (*, n, n) and int32 (*); info is 0, or the index of the first zero pivot
        (the inverse is nan then).

    Example:
        >>> clew.linalg.inv_ex(clew.zeros(1, 1)).info
        tensor(1, dtype=clew.int32)
    """
    check_matrix("linalg.inv_ex", A, square=True)
    if check_errors is not False:
        need_bools("linalg.inv_ex", check_errors=check_errors)
    made = _inv(A, name="linalg.inv_ex", check=check_errors)
    return write_out("linalg.inv_ex", InvEx(*made), out)


def _product(sizes: Sequence[int]) -> int:
    return int(np.prod(sizes, dtype=np.int64))


@asks_classes
@in_float32
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A with respect to tensordot(A, B, ind).

    Args:
        input: A, a tensor whose first ``ind`` dims have as many elements as the rest.
        ind: how many dims count as rows.
        out: a tensor that receives the result.

    Returns:
        the shape A.shape[ind:] + A.shape[:ind].

    Example:
        >>> clew.linalg.tensorinv(clew.eye(6).reshape(6, 2, 3), ind=1).shape
        clew.Size([2, 3, 6])
    """
    check_tensor("linalg.tensorinv", "A", input)
    ind = need_int("linalg.tensorinv", "ind", ind)
    if ind <= 0:
        raise RuntimeError(
            f"linalg.tensorinv: Expected a strictly positive integer for ind; got {ind}"
        )
    rows, columns = tuple(input.shape[:ind]), tuple(input.shape[ind:])
    if _product(rows) != _product(columns):
        raise RuntimeError(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(A.shape[ind:]) == "
            f"prod(A.shape[:ind]); got {show(input)} and ind={ind}"
        )
    made = inv(input.reshape(_product(columns), _product(rows))).reshape(*columns, *rows)
    return write_out("linalg.tensorinv", made, out, converts=True, records=True)


@asks_classes
@in_float32
def tensorsolve(
    input: Tensor, other: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The solution X of tensordot(A, X, X.ndim) = B.

    Args:
        input: A, of shape B.shape + X.shape (after dims are moved).
        other: B, the right hand side.
        dims: dims of A that are moved to its end first.
        out: a tensor that receives the result.

    Returns:
        X, of the shape of A's last dims.

    Example:
        >>> A = clew.eye(6).reshape(2, 3, 2, 3)
        >>> clew.linalg.tensorsolve(A, clew.ones(2, 3)).shape
        clew.Size([2, 3])
    """
    name = "linalg.tensorsolve"
    check_tensor(name, "A", input)
    check_tensor(name, "B", other)
    if dims is not None:
        moved = [d % input.ndim for d in (dims if isinstance(dims, Sequence) else (dims,))]
        input = input.permute([d for d in range(input.ndim) if d not in moved] + moved)
    shape = tuple(input.shape[other.ndim :])
    size = _product(shape)
    if size != other.numel() or input.numel() != size * size:
        raise RuntimeError(
            f"{name}: Expected self to satisfy the requirement prod(A.shape[B.ndim:]) == "
            f"prod(A.shape[:B.ndim]); got {show(input)} and {show(other)}"
        )
    solved = solve(input.reshape(size, size), other.flatten()).reshape(shape)
    return write_out(name, solved, out, converts=True, records=True)
