"""Linear algebra by its older names at the package's top level and on Tensor."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew._base.arguments import need_bools
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.results import shown_as
from clew._C import Tensor
from clew._ops.primitive import write_out

from . import _products
from ._cholesky import _cholesky, cholesky_inverse, cholesky_solve
from ._common import QR, SlogDet, check_matrix, check_tensor, conj_transpose
from ._det import det as _det
from ._det import logdet
from ._det import slogdet as _slogdet
from ._lu import _factored, lu_unpack
from ._lu import _solved as _lu_solved
from ._qr import _factors, geqrf, ormqr
from ._qr import householder_product as _householder_product
from ._solve import inv
from ._svd import _pseudo_inverse, _svd
from ._svd import svdvals as _svdvals
from ._triangular import triangular_solve

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "geqrf",
    "inverse",
    "logdet",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "matrix_power",
    "orgqr",
    "ormqr",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
    "triangular_solve",
]


@shown_as("svd")
class SVDOfOld(NamedTuple):
    """The factors of clew.svd: V instead of Vh."""

    U: Tensor
    S: Tensor
    V: Tensor


@asks_classes
@in_float32
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor; the older form of linalg.cholesky.

    Args:
        input: (*, n, n), hermitian and positive definite.
        upper: give the upper factor.
        out: a tensor that receives the result.

    Returns:
        (*, n, n).

    Example:
        >>> clew.cholesky(4 * clew.eye(1))
        tensor([[2.]])
    """
    return _cholesky("cholesky", input, upper, out)


@asks_classes
def det(input: Tensor) -> Tensor:
    """The determinant of matrices; another name for linalg.det.

    Example:
        >>> clew.det(2 * clew.eye(3))
        tensor(8.)
    """
    return _det(input)


@asks_classes
def slogdet(input: Tensor, *, out: Any = None) -> SlogDet:
    """Sign and logarithm of the determinant; another name for linalg.slogdet.

    Example:
        >>> clew.slogdet(clew.eye(2)).logabsdet
        tensor(0.)
    """
    return _slogdet(input, out=out)


@asks_classes
@in_float32
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of matrices; another name for linalg.inv.

    Example:
        >>> clew.inverse(2 * clew.eye(1))
        tensor([[0.5000]])
    """
    return inv(input, out=out)


@asks_classes
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, *, out: Any = None) -> Any:
    """The LU factorization in compact form; the older form of linalg.lu_factor.

    Args:
        A: (*, m, n).
        pivot: True; without row exchanges nothing is offered.
        get_infos: also give the numbers of the first zero pivots, instead of raising.
        out: a tuple of tensors that receive the result.

    Returns:
        (LU, pivots), or (LU, pivots, info).

    Example:
        >>> clew.lu(clew.eye(2))[1]
        tensor([1, 2], dtype=clew.int32)
    """
    made = _factored("lu", A, pivot, not get_infos)
    result = tuple(made) if get_infos else tuple(made[:2])
    if out is None:
        return result
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"lu(): argument 'out' must be a tuple of {len(result)} Tensors")
    for given, t in zip(out, result):
        check_tensor("lu", "out", given)
        # PyTorch's lu converts to whatever dtype out has.
        given.resize_(t.shape).copy_(t)
    return out


@asks_classes
@in_float32
def lu_solve(
    input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """The solution of A X = b from the LU factorization of A; the older form of linalg.lu_solve.

    Args:
        input: (*, n, k).
        LU_data: (*, n, n), as lu_factor gives it.
        LU_pivots: (*, n), int32.
        out: a tensor that receives the result.

    Returns:
        (*, n, k).

    Example:
        >>> clew.lu_solve(clew.ones(2, 1), *clew.linalg.lu_factor(2 * clew.eye(2)))
        tensor([[0.5000],
                [0.5000]])
    """
    return _lu_solved("lu_solve", LU_data, LU_pivots, input, True, False, out)


@asks_classes
@in_float32
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse; linalg.pinv with rtol=rcond.

    Args:
        input: (*, m, n).
        rcond: singular values up to rcond times the largest count as zero.

    Returns:
        (*, n, m).

    Example:
        >>> clew.pinverse(clew.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    return _pseudo_inverse("pinverse", input, None, rcond, False, None)


@asks_classes
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of square matrices; another name for linalg.matrix_power.

    Example:
        >>> clew.matrix_power(2 * clew.eye(1), 3)
        tensor([[8.]])
    """
    return _products.matrix_power(input, n, out=out)


@asks_classes
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices; another name for linalg.matrix_exp.

    Example:
        >>> clew.matrix_exp(clew.zeros(1, 1))
        tensor([[1.]])
    """
    return _products.matrix_exp(input)


@asks_classes
@in_float32
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> QR:
    """The factors Q and R; the older form of linalg.qr.

    Args:
        input: (*, m, n).
        some: "reduced", else "complete".
        out: a pair of tensors that receive the result.

    Returns:
        (Q, R).

    Example:
        >>> clew.qr(clew.eye(2)).R.shape
        clew.Size([2, 2])
    """
    need_bools("qr", some=some)
    return _factors("qr", input, "reduced" if some else "complete", out)


@asks_classes
@in_float32
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The columns of a product of reflections; another name for linalg.householder_product.

    Example:
        >>> clew.orgqr(*clew.geqrf(clew.eye(2))).abs()
        tensor([[1., 0.],
                [0., 1.]])
    """
    return _householder_product(input, input2, out=out)


@asks_classes
@in_float32
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> SVDOfOld:
    """The singular value decomposition U diag(S) V^H; the older form of linalg.svd.

    Args:
        input: (*, m, n).
        some: U and V have min(m, n) columns, else they are square.
        compute_uv: False leaves U and V zero.
        out: three tensors that receive the result.

    Returns:
        (U, S, V): V, not its conjugate transpose.

    Example:
        >>> clew.svd(clew.tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    check_matrix("svd", input, "input")
    need_bools("svd", some=some, compute_uv=compute_uv)
    if not compute_uv:
        m, n = input.shape[-2:]
        batch = input.shape[:-2]
        result = SVDOfOld(
            input.new_zeros((*batch, m, m)), _svdvals(input), input.new_zeros((*batch, n, n))
        )
    else:
        u, s, vh = _svd(input, full=not some, name="linalg.svd")
        result = SVDOfOld(u, s, conj_transpose(vh))
    return write_out("svd", result, out)
