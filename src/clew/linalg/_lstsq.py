"""Least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.results import shown_as
from clew._C import Tensor
from clew._ops.primitive import broadcast_batch, write_out

from ._common import check_matrix, check_same, check_tensor, eps_of, every, real_dtype, show
from ._lapack import check, loaded
from ._svd import matrix_rank, pinv, svdvals

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
_FAILED = (
    "The least squares solution could not be computed because the input matrix does not have full "
    "rank (error code: {}).",
    "The algorithm failed to converge because the input matrix contained non-finite values.",
)


@shown_as("linalg_lstsq")
class Lstsq(NamedTuple):
    """The solution, and what the driver tells about it; what it does not is empty."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@asks_classes
@in_float32
def lstsq(
    input: Tensor,
    b: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Any = None,
) -> Lstsq:
    """The X of least norm among those with the least norm of A X - b.

    Args:
        input: A, (*, m, n).
        b: (*, m, k), or (*, m).
        rcond: singular values up to rcond times the largest count as zero; by default eps times
            max(m, n).
        driver: "gelsy" (the default), "gelsd", "gelss", or "gels" for full rank. All are computed
            from singular values; the driver decides what is told.
        out: four tensors that receive the result.

    Returns:
        (solution, residuals, rank, singular_values): (*, n, k), (*, k), (*) and (*, min(m, n)). The
        residuals' squares are told when m > n and the rank is n, and not by gelsy; the rank not by
        gels; the singular values by gelsd and gelss. What is not told is empty.

    Example:
        >>> A = clew.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        >>> clew.linalg.lstsq(A, clew.tensor([[1.0], [2.0], [3.0]])).solution
        tensor([[1.],
                [2.]])
    """
    name = "linalg.lstsq"
    check_matrix(name, input, "input")
    check_tensor(name, "other", b)
    check_same(name, input, b)
    if driver is None:
        driver = "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss); got "
            f"{driver!r}"
        )
    vector = input.ndim - b.ndim == 1
    if not vector and input.ndim != b.ndim:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            f"other.dim()) <= 1; got {show(input)} and {show(b)}"
        )
    right = b.unsqueeze(-1) if vector else b
    m, n = input.shape[-2:]
    if right.shape[-2] != m:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size({-1 if vector else -2}); got "
            f"{show(input)} and {show(b)}"
        )
    rtol = eps_of(input.dtype) * max(m, n) if rcond is None else rcond
    input, right = broadcast_batch(name, input, right, core=(2, 2))
    if m and n and loaded and _C._plain(input, right):
        made = _native(name, input, right, vector, driver, rtol)
        return write_out(name, made, out, converts=True)
    if m == 0 or n == 0:
        solution = right.new_zeros((*right.shape[:-2], n, right.shape[-1])) + 0 * (
            input.sum() + right.sum()
        )
    else:
        solution = pinv(input, rtol=rtol) @ right
    plain = input.detach()
    ranks = matrix_rank(plain, rtol=rtol)
    rank = input.new_empty((0,), dtype=_dtypes.int64)
    values = input.new_empty((0,), dtype=real_dtype(input.dtype))
    full = driver == "gels" or input.device.type == "meta" or every(ranks == n)
    residuals = (input @ solution - right).abs().square().sum(-2)
    if m <= n or driver == "gelsy" or not full:
        residuals = residuals.flatten()[:0]
    if driver != "gels":
        rank = ranks
    if driver in ("gelsd", "gelss"):
        values = svdvals(plain)
    solution = solution.squeeze(-1) if vector else solution
    return write_out(name, Lstsq(solution, residuals, rank, values), out, converts=True)


def _native(name: str, a: Tensor, b: Tensor, vector: bool, driver: str, rcond: float) -> Lstsq:
    """The same by LAPACK's drivers."""
    m, n = a.shape[-2:]
    made, rank, values, info = _C.ops._lstsq(a, b, _DRIVERS.index(driver), float(rcond))
    check(name, info, lambda k: _FAILED[k < 0].format(k))
    solution = made.narrow(-2, 0, n)
    residuals = a.new_empty((0,), dtype=real_dtype(a.dtype))
    if m > n and driver != "gelsy" and (driver == "gels" or a.is_meta or every(rank == n)):
        residuals = made.narrow(-2, n, m - n).abs().square().sum(-2)
    if driver == "gels":
        rank = rank.new_empty((0,))
    if driver in ("gels", "gelsy"):
        values = values.new_empty((0,))
    return Lstsq(solution.squeeze(-1) if vector else solution, residuals, rank, values)
