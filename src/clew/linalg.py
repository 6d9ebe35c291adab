"""Linear algebra."""

from __future__ import annotations

from typing import Any

from clew import _C, _namespace
from clew._C import Tensor
from clew._einsum import multi_dot

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "multi_dot",
    "norm",
    "vecdot",
    "vector_norm",
]

vector_norm = _C.functions["linalg.vector_norm"]
matmul = _C.functions["matmul"]


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The inner product sum(conj(x) * y) along ``dim``.

    >>> clew.linalg.vecdot(clew.ones(3), clew.ones(3))
    tensor(3.)
    """
    product = (x.conj() * y).sum(dim)
    return product if out is None else out.copy_(product)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the matrices in the dims dim1 and dim2."""
    return A.diagonal(offset, dim1, dim2)


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of 3-vectors along ``dim``.

    >>> clew.linalg.cross(clew.tensor([1.0, 0.0, 0.0]), clew.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3; got {input.shape[dim]} "
            f"and {other.shape[dim]}"
        )
    a, b = input.unbind(dim), other.unbind(dim)
    from clew import stack

    product = stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
        dim if dim < 0 else max(input.ndim, other.ndim) - input.ndim + dim,
    )
    return product if out is None else out.copy_(product)


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of matrices: 'fro', 1, -1, inf or -inf (orders that need singular values are not
    offered yet).
    """
    if dtype is not None:
        A = A.to(dtype)
    first, second = (d % A.ndim for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different; got {dim}")
    if ord == "fro":
        result = vector_norm(A, 2, (first, second), keepdim)
    elif ord in (1, -1, float("inf"), float("-inf")):
        inner, outer = (first, second) if abs(ord) == 1 else (second, first)
        sums = A.abs().sum(inner, keepdim=True)
        result = sums.amax(outer, keepdim=True) if ord > 0 else sums.amin(outer, keepdim=True)
        if not keepdim:
            result = result.squeeze((first, second))
    elif ord in ("nuc", 2, -2):
        raise NotImplementedError(
            f"linalg.matrix_norm: ord={ord!r} needs singular values, which clew does not "
            f"compute yet"
        )
    else:
        raise RuntimeError(f"linalg.matrix_norm: order {ord!r} not supported")
    return result if out is None else out.copy_(result)


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """A vector norm, or a matrix norm when two dims (or a text order) are given.

    >>> clew.linalg.norm(clew.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if dim is None and ord is not None:
        if A.ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: if dim is not specified but ord is, the input must be 1D or 2D; "
                f"got {A.ndim}D"
            )
        dim = (0,) if A.ndim == 1 else (0, 1)
    dims = (dim,) if isinstance(dim, int) else dim
    if ord is not None and dims is not None and len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: ord={ord!r} needs two dims; got {dims}")
    result = vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)
    return result if out is None else out.copy_(result)


__getattr__ = _namespace.module_getattr(__name__, globals())
