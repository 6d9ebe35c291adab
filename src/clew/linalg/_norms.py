"""Norms of vectors and matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base.arguments import need_bools, numpy_names, whole, whole_tuple
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import write_out

from ._common import check_inexact, check_matrix, check_tensor, real_dtype, show
from ._solve import inv_ex
from ._svd import singular_values

vector_norm: Callable[..., Tensor] = _C.functions["linalg.vector_norm"]
_INF = float("inf")
_SPECTRAL = ("nuc", 2, -2)


@asks_classes
@numpy_names
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of matrices.

    Args:
        input: at least two dims, (*, m, n) by default; floating point or complex.
        ord: "fro", "nuc" (the sum of singular values), 2, -2 (the greatest, the least), 1, -1 (of
            the columns' sums of absolute values), inf, -inf (of the rows').
        dim: the two dims of the matrices.
        keepdim: keep these dims with size 1.
        dtype: convert input to this first.
        out: a tensor that receives the result.

    Returns:
        real; the shape of input without dim.

    Example:
        >>> clew.linalg.matrix_norm(clew.tensor([[0.0, 3.0], [4.0, 0.0]]), 2)
        tensor(4.)
    """
    name = "linalg.matrix_norm"
    check_tensor(name, "A", input)
    if input.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions; got {show(input)}"
        )
    check_inexact(name, input, low=True)
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple; got {dim}")
    if (ints := whole_tuple(dims)) is None:
        raise TypeError(f"{name}(): dim must be a pair of ints; got {dim!r}")
    for d in ints:
        if not -input.ndim <= d < input.ndim:
            raise IndexError(
                f"{name}: Dimension out of range (expected to be in range of [{-input.ndim}, "
                f"{input.ndim - 1}], but got {d})"
            )
    first, second = (d % input.ndim for d in ints)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different; got {dim}")
    if dtype is not None:
        input = _converted(name, input, dtype)
    if isinstance(ord, str):
        known = ord in ("fro", "nuc")
    else:
        known = ord in (1, -1, 2, -2, _INF, -_INF)
    if not known:
        raise RuntimeError(f"{name}: order {ord!r} not supported")
    if ord == "fro":
        result = vector_norm(input, 2, (first, second), keepdim)
    elif ord in _SPECTRAL:
        values = singular_values(input.movedim((first, second), (-2, -1)), name)
        if ord == "nuc":
            result = values.sum(-1)
        else:
            result = _largest(values, -1) if ord == 2 else values.amin(-1)
        if keepdim:
            for d in sorted((first, second)):
                result = result.unsqueeze(d)
    else:
        inner, outer = (first, second) if abs(ord) == 1 else (second, first)
        sums = input.abs().sum(inner, keepdim=True)
        result = _largest(sums, outer, True) if ord > 0 else sums.amin(outer, keepdim=True)
        if not keepdim:
            result = result.squeeze((first, second))
    return write_out(name, result, out, records=True)


def _largest(t: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The largest along dim, of numbers from 0 on: 0 of none."""
    return t.amax(dim, keepdim) if t.shape[dim] else t.sum(dim, keepdim)


def _converted(name: str, t: Tensor, dtype: Any) -> Tensor:
    if not isinstance(dtype, _C.dtype):
        raise TypeError(
            f"{name}(): dtype must be a clew.dtype, such as clew.float32; got {dtype!r}"
        )
    if not (dtype.is_floating_point or dtype.is_complex) or (
        t.is_complex() and not dtype.is_complex
    ):
        raise RuntimeError(
            f"{name}: dtype must be floating point or complex, and complex for complex tensors; "
            f"got {dtype.name} for {show(t)}"
        )
    return t.to(dtype)


@asks_classes
@numpy_names
def norm(
    input: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """A vector norm, or a matrix norm when two dims (or a text order) are given.

    Args:
        input: the tensor, of any shape; floating point or complex.
        ord: the order; None is 2 of all elements.
        dim: one dim or two; None takes all, of which there must be one or two when ord is given.
        keepdim: keep these dims with size 1.
        out: a tensor that receives the result.
        dtype: convert input to this first.

    Returns:
        real; the shape of input without dim.

    Example:
        >>> clew.linalg.norm(clew.tensor([3.0, 4.0]))
        tensor(5.)
    """
    check_tensor("linalg.norm", "A", input)
    if dim is None and ord is not None:
        if input.ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: if dim is not specified but ord is, the input must be 1D or 2D; "
                f"got {input.ndim}D"
            )
        dim = (0,) if input.ndim == 1 else (0, 1)
    dims = dim if whole(dim) is None else (dim,)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: dim must be of length 1 or 2; got {list(dims)}")
    if ord is not None and dims is not None and len(dims) == 2:
        return matrix_norm(input, ord, dims, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: ord={ord!r} needs two dims; got {dims}")
    result = vector_norm(input, 2 if ord is None else ord, dims, keepdim, dtype=dtype)
    return write_out("linalg.norm", result, out, records=True)


@asks_classes
def nuclear_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The sum of the singular values; linalg.matrix_norm with ord="nuc".

    Args:
        input: matrices, (*, m, n), or any tensor when dim is given.
        dim: the two dims of the matrices; None takes the last two; a bool here is keepdim.
        keepdim: keep these dims with size 1.
        out: a tensor that receives the result.

    Returns:
        real.

    Example:
        >>> clew.nuclear_norm(clew.eye(3))
        tensor(3.)
    """
    need_bools("nuclear_norm", keepdim=keepdim)
    check_tensor("nuclear_norm", "input", input)
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    if dim is None:
        if input.ndim < 2:
            raise RuntimeError(
                f"nuclear_norm: Expected a tensor with at least 2 dimensions, but got {show(input)}"
            )
        dim = (-2, -1)
    return matrix_norm(input, "nuc", dim, keepdim, out=out)


@asks_classes
@in_float32
def cond(input: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number of matrices, norm(A) * norm(A^-1).

    Args:
        input: A, (*, m, n); square unless p is None, 2 or -2.
        p: the norm: None (2), 2, -2, "fro", "nuc", 1, -1, inf, -inf.
        out: a tensor that receives the result.

    Returns:
        (*), real; inf for singular matrices, and for NaN where p is none of None, 2, -2 and "nuc".

    Example:
        >>> clew.linalg.cond(clew.tensor([[4.0, 0.0], [0.0, 2.0]]))
        tensor(2.)
    """
    name = "linalg.cond"
    check_tensor(name, "A", input)
    special = p is None or (not isinstance(p, str) and p in (2, -2))
    check_matrix(name, input, square=not special)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: got an invalid norm type: {p!r}")
    if input.numel() == 0:
        made = input.new_zeros(input.shape[:-2], dtype=real_dtype(input.dtype))
        return write_out(name, made, out, converts=True, records=True)
    if special:
        s = singular_values(input, name)
        first, last = s[..., 0], s[..., -1]
        made = last / first if p == -2 else first / last
        return write_out(name, made, out, converts=True, records=True)
    if p == "nuc":
        s = singular_values(input, name)
        return write_out(name, s.sum(-1) * s.reciprocal().sum(-1), out, converts=True, records=True)
    inverse, info = inv_ex(input)
    infinite = float("inf")
    singular = (info != 0).unsqueeze(-1).unsqueeze(-1)
    made = matrix_norm(input, p) * matrix_norm(inverse.masked_fill(singular, infinite), p)
    # A norm that underflows to 0 times one that overflows is NaN: such a matrix, and one that has
    # NaN itself, counts as singular.
    made = made.masked_fill((info != 0) | made.isnan(), infinite)
    return write_out(name, made, out, converts=True, records=True)
