"""Triangular systems with a sparse matrix in compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import _C
from clew._C import Tensor
from clew.autograd.function import Function
from clew.sparse._rules import RULES
from clew.sparse._tensor import Compressed, Pattern, _Sparse

__all__ = ["triangular_solve"]


def _substituted(
    p: Pattern, values: Tensor, b: Tensor, upper: bool, unitriangular: bool
) -> np.ndarray:
    """Row after row, from the one that has an element on the diagonal only."""
    starts, columns, v = p.crow.numpy(), p.col.numpy(), values.numpy()
    n = len(starts) - 1
    x = np.array(b.numpy())
    with np.errstate(all="ignore"):  # a zero on the diagonal gives infinities
        for r in range(n - 1, -1, -1) if upper else range(n):
            begin, end = starts[r], starts[r + 1]
            at = columns[begin:end]
            known = at > r if upper else at < r
            x[r] -= v[begin:end][known] @ x[at[known]]
            if not unitriangular:
                x[r] /= v[begin:end][at == r].sum()
    return x


class _Solve(Function):
    """The solution of A x = b for the values of A and b."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, b: Tensor, p: Pattern, upper: bool, turned: bool, unit: bool
    ) -> Tensor:
        if turned:
            q, order = p.turned()
            found = _substituted(q, values[order], b, not upper, unit)
        else:
            found = _substituted(p, values, b, upper, unit)
        x = clew.from_numpy(found)
        ctx.save_for_backward(values, x)
        ctx.rest = p, upper, turned, unit
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        values, x = ctx.saved_tensors
        p, upper, turned, unit = ctx.rest
        of_b = _Solve.apply(values.conj().resolve_conj(), grads[0], p, upper, not turned, unit)
        left, right = (x.conj(), of_b) if turned else (of_b, x.conj())
        dots = _C.ops._sparse_csr_dots(p.crow, p.col, left.resolve_conj(), right.resolve_conj())
        row, column = p.rows(), p.col.long()
        read = (
            (column > row if upper else column < row)
            if unit
            else (column >= row if upper else column <= row)
        )
        return clew.where(read, -dots, 0), of_b, None, None, None, None


def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """As clew.triangular_solve, of a sparse matrix A in compressed rows and a dense input.

    Elements of the other triangle are not read; one that is missing on the diagonal is zero.
    """
    name = "triangular_solve"
    if isinstance(input, _Sparse) or not isinstance(A, Compressed) or not A._by_rows:
        return NotImplemented
    if A.dense_dim() or A.shape[0] != A.shape[1]:
        raise RuntimeError(f"{name}: A must be a square matrix of numbers; got {list(A.shape)}")
    if input.dim() != 2 or input.shape[0] != A.shape[0]:
        raise RuntimeError(
            f"{name}: input must be a matrix with the {A.shape[0]} rows of A; got "
            f"{list(input.shape)}"
        )
    values = A.values()
    if input.dtype is not values.dtype or not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(
            f"{name}: input and A must have one floating or complex dtype; got {input.dtype} and "
            f"{A.dtype}"
        )
    if values.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(f"{name}: {values.dtype} is not offered; convert with .float()")
    from clew.linalg._triangular import TriangularSolve

    flags = bool(upper), bool(transpose), bool(unitriangular)
    solution = _Solve.apply(values, input, A._pattern, *flags)
    return TriangularSolve(solution, values.new_empty(0))


RULES["triangular_solve"] = triangular_solve
_Sparse._whole = frozenset(("triangular_solve",))
