"""Products of sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew import _C
from clew._base.autocast import autocasting, lower
from clew._C import Tensor
from clew.sparse._tensor import Compressed, Coo, Pattern, _Sparse, coo

__all__ = [
    "addmm",
    "dsmm",
    "hspmm",
    "in_region",
    "mm",
    "need_matrices",
    "need_tensors",
    "of_batch",
    "sampled_addmm",
    "scaled",
    "smm",
    "sspaddmm",
]

_OPS = _C.ops


def need_tensors(name: str, **given: Any) -> None:
    """Refuses arguments of other kinds."""
    for what, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: {what} must be a Tensor; got {type(value).__name__}")


def scaled(x: Any, factor: Any) -> Any:
    """What alpha and beta make of a tensor: of integers, whole multiples, as in dense products."""
    if not (x.is_floating_point() or x.is_complex()):
        factor = bool(factor) if x.dtype is _C.bool else int(factor)
    return x if factor == 1 else x * factor


def in_region(*tensors: Any) -> tuple[Any, ...]:
    """The tensors in the dtype of products inside autocast."""
    return lower(*tensors) if autocasting() else tensors


def _rows(name: str, x: Any) -> tuple[Pattern, Tensor]:
    """A sparse matrix as a pattern in rows and its values."""
    if not isinstance(x, (Coo, Compressed)):
        raise NotImplementedError(
            f"{name}: there is no rule for tensors of layout {x.layout}; convert with "
            ".to_sparse_csr()"
        )
    if x.dim() != 2 or (isinstance(x, Coo) and x.sparse_dim() != 2):
        raise RuntimeError(
            f"{name}: expected a sparse matrix with two sparse dims; got shape {list(x.shape)} "
            f"with {x.sparse_dim()}"
        )
    if isinstance(x, Coo):
        x = x.coalesce()
        return x.pattern(), x._elements
    return x.pattern(), x.row_values()


def _check(name: str, a: Any, b: Any) -> None:
    if int(a.shape[-1]) != int(b.shape[0]):
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, a.shape))} and "
            f"{'x'.join(map(str, b.shape))})"
        )
    _check_dtypes(name, a, b)


def _check_dtypes(name: str, a: Any, b: Any) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: expected both factors to have one dtype; got {a.dtype} and {b.dtype}"
        )


def _product(p: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    if not (values.is_floating_point() or values.is_complex()):
        rows = dense.index_select(0, p.col) * values.unsqueeze(1)
        return rows.new_zeros((p.shape[0], dense.shape[1])).index_add(0, p.rows(), rows)
    mirror = p.mirror() if dense.requires_grad and _C.is_grad_enabled() else None
    return _OPS._sparse_csr_mm(p.crow, p.col, values, dense, mirror)


def _sparse_sparse(name: str, x: Any, y: Any) -> Any:
    """Each element of x meets the elements of y's row of its column."""
    (p, v), (q, w) = _rows(name, x), _rows(name, y)
    starts, col = q.crow.long().numpy(), p.col.long().numpy()
    counts = (starts[1:] - starts[:-1])[col]
    left = np.repeat(np.arange(len(col)), counts)
    right = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts - starts[:-1][col], counts)
    at, to = clew.from_numpy(left), clew.from_numpy(right)
    ind = clew.stack([p.rows().index_select(0, at), q.col.long().index_select(0, to)])
    values = v.index_select(0, at) * w.index_select(0, to)
    made = coo(ind, values, (p.shape[0], q.shape[1]), False).coalesce()
    if isinstance(x, Compressed) and isinstance(y, Compressed):
        return made.to_sparse_csr()
    return made


def of_batch(product: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """The product of a sparse matrix and a dense tensor of more than two dims, on either side, as
    one product of matrices.
    """
    if isinstance(x, _Sparse):
        *batch, m, n = y.shape
        made = product(x, y.movedim(-2, 0).reshape(m, math.prod(batch) * n))
        return made.reshape(x.shape[0], *batch, n).movedim(0, -2)
    *batch, m = x.shape
    made = product(x.reshape(math.prod(batch), m), y)
    return made.reshape(*batch, y.shape[1])


def _is_matrix(x: Any) -> bool:
    return isinstance(x, _Sparse) and x.dim() == 2


def _is_many(x: Any) -> bool:
    return not isinstance(x, _Sparse) and x.dim() > 2


def matmul(x: Any, y: Any) -> Any:
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        return NotImplemented
    if (_is_matrix(x) and _is_many(y)) or (_is_many(x) and _is_matrix(y)):
        return of_batch(matmul, x, y)
    if x.dim() > 2 or y.dim() > 2 or not x.dim() or not y.dim():
        return NotImplemented
    if (isinstance(x, _Sparse) and x.dim() == 1) or (isinstance(y, _Sparse) and y.dim() == 1):
        return NotImplemented
    x, y = in_region(x, y)
    _check("matmul", x, y)
    if isinstance(x, _Sparse) and isinstance(y, _Sparse):
        return _sparse_sparse("matmul", x, y)
    if isinstance(x, _Sparse):
        p, values = _rows("matmul", x)
        if y.dim() == 1:
            return _product(p, values, y.unsqueeze(1)).squeeze(1)
        return _product(p, values, y)
    turned = y.transpose(0, 1)
    p, values = _rows("matmul", turned)
    if x.dim() == 1:
        return _product(p, values, x.unsqueeze(1)).squeeze(1)
    return _product(p, values, x.t()).t()


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Tensor:
    """The product of two matrices of which one is sparse, or both are.

    Sparse by dense is dense; sparse by sparse is sparse. Gradients flow to the values and to the
    dense factor.

    Args:
        mat1: (n, m).
        mat2: (m, p).
        reduce: what is made of the products of a row: "sum", "mean", "amax" (or "max") or "amin"
            (or "min"); others than "sum" for a sparse mat1 and a dense mat2.

    Returns:
        (n, p).

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> a = clew.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
    >>> clew.sparse.mm(a, clew.ones(2, 1))
    tensor([[2.],
            [3.]])
    """
    need_tensors("mm", mat1=mat1, mat2=mat2)
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(
            f"mm: expected two matrices; got shapes {list(mat1.shape)} and {list(mat2.shape)}"
        )
    if reduce == "sum":
        return mat1 @ mat2
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise ValueError(f"mm: reduce must be 'sum', 'mean', 'amax' or 'amin'; got {reduce!r}")
    if not isinstance(mat1, _Sparse) or isinstance(mat2, _Sparse):
        raise NotImplementedError(f"mm: reduce={reduce!r} needs a sparse mat1 and a dense mat2")
    _check("mm", mat1, mat2)
    p, values = _rows("mm", mat1)
    if reduce == "mean":
        counts = (p.crow[1:] - p.crow[:-1]).clamp(min=1).to(values.dtype)
        return _product(p, values, mat2) / counts.unsqueeze(1)
    rows = mat2.index_select(0, p.col) * values.unsqueeze(1)
    zeros = rows.new_zeros((p.shape[0], rows.shape[1]))
    index = p.rows().unsqueeze(1).expand(rows.shape)
    return zeros.scatter_reduce(0, index, rows, reduce, include_self=False)


def _rows_there(name: str, mat1: Any, mat2: Any) -> tuple[Tensor, Tensor]:
    """The rows of a product that a sparse matrix has elements in: (their numbers, the rows)."""
    if not isinstance(mat1, Coo):
        raise RuntimeError(
            f"{name}: the first matrix must have layout sparse_coo; got {mat1.layout}; convert "
            "with .to_sparse()"
        )
    if isinstance(mat2, _Sparse) or mat2.dim() != 2:
        raise RuntimeError(
            f"{name}: the second matrix must be a dense one; got {mat2.layout} of shape "
            f"{list(mat2.shape)}"
        )
    p, values = _rows(name, mat1)
    _check(name, mat1, mat2)
    there = (p.crow[1:] > p.crow[:-1]).nonzero()[:, 0]
    return there, _product(p, values, mat2).index_select(0, there)


def hspmm(mat1: Any, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one as a sparse tensor of dense rows.

    Args:
        mat1: (n, m), in coordinates.
        mat2: (m, p), dense.

    Returns:
        (n, p), with one sparse dim: the rows that mat1 has elements in.

    Raises:
        RuntimeError: shapes, dtypes or layouts do not fit.

    >>> a = clew.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> clew.hspmm(a, clew.ones(2, 3)).coalesce().values()
    tensor([[2., 2., 2.]])
    """
    need_tensors("hspmm", mat1=mat1, mat2=mat2)
    there, rows = _rows_there("hspmm", mat1, mat2)
    return coo(there.unsqueeze(0), rows, (mat1.shape[0], mat2.shape[1]), not there.shape[0])


def smm(input: Any, mat: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one as a sparse matrix.

    Args:
        input: (n, m), in coordinates.
        mat: (m, p), dense.

    Returns:
        (n, p), with all elements of the rows that input has elements in.

    Raises:
        RuntimeError: shapes, dtypes or layouts do not fit.

    >>> a = clew.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> clew.smm(a, clew.ones(2, 3)).to_dense()
    tensor([[2., 2., 2.],
            [0., 0., 0.]])
    """
    need_tensors("smm", input=input, mat=mat)
    there, rows = _rows_there("smm", input, mat)
    width = int(mat.shape[1])
    columns = clew.arange(width).repeat(there.shape[0])
    ind = clew.stack([there.repeat_interleave(width), columns])
    return coo(ind, rows.reshape(-1), (input.shape[0], width), not there.shape[0])


def sspaddmm(input: Any, mat1: Any, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` as a sparse matrix.

    Args:
        input: (n, p), in coordinates.
        mat1: (n, m), in coordinates.
        mat2: (m, p), dense.
        beta, alpha: numbers.

    Returns:
        (n, p), not coalesced: the elements of input and those of the product.

    Raises:
        RuntimeError: shapes, dtypes or layouts do not fit.

    >>> a = clew.eye(2).to_sparse()
    >>> clew.sspaddmm(a, a, clew.ones(2, 2), beta=2).to_dense()
    tensor([[3., 1.],
            [1., 3.]])
    """
    need_tensors("sspaddmm", input=input, mat1=mat1, mat2=mat2)
    if not isinstance(input, Coo) or input.sparse_dim() != 2 or input.dense_dim():
        raise RuntimeError(
            f"sspaddmm: input must be a matrix in coordinates; got {input.layout} of shape "
            f"{list(input.shape)}; convert with .to_sparse()"
        )
    product: Any = smm(mat1, mat2)
    if tuple(input.shape) != tuple(product.shape):
        raise RuntimeError(
            f"sspaddmm: input must have the product's shape, {list(product.shape)}; got "
            f"{list(input.shape)}"
        )
    _check_dtypes("sspaddmm", input, product)
    values = [scaled(input._elements, beta), scaled(product._elements, alpha)]
    ind = clew.cat([input._ind, product._ind], 1)
    return coo(ind, clew.cat(values), product.shape, False)


def dsmm(input: Any, mat2: Any) -> Tensor:
    """The product of two matrices of which one is sparse, or both are; the same as ``mm``.

    Args:
        input: (n, m).
        mat2: (m, p).

    >>> clew.dsmm(clew.eye(2).to_sparse(), clew.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return mm(input, mat2)


def need_matrices(mat: Any, mat1: Any, mat2: Any) -> None:
    """Raises for what addmm() cannot add and multiply."""
    if not mat1.dim() == mat2.dim() == 2:
        raise RuntimeError(
            f"addmm: mat1 and mat2 must be matrices; got shapes {list(mat1.shape)} and "
            f"{list(mat2.shape)}"
        )
    shape = (int(mat1.shape[0]), int(mat2.shape[1]))
    if mat.dim() > 2 or any(m not in (1, n) for m, n in zip(mat.shape[::-1], shape[::-1])):
        raise RuntimeError(
            f"addmm: mat must be broadcastable to the product's shape, {list(shape)}; got "
            f"{list(mat.shape)}"
        )


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` for a sparse mat1.

    Args:
        mat: (n, p), dense or sparse.
        mat1: (n, m).
        mat2: (m, p).
        beta, alpha: numbers.

    Returns:
        (n, p).

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> clew.sparse.addmm(clew.ones(2, 2), clew.eye(2).to_sparse(), clew.ones(2, 2))
    tensor([[2., 2.],
            [2., 2.]])
    """
    need_tensors("addmm", mat=mat, mat1=mat1, mat2=mat2)
    need_matrices(mat, mat1, mat2)
    mat, mat1, mat2 = in_region(mat, mat1, mat2)
    product = mat1 @ mat2
    product = scaled(product, alpha)
    if isinstance(product, _Sparse):
        if not isinstance(mat, _Sparse):
            raise NotImplementedError("addmm: a sparse product needs a sparse mat")
        return scaled(mat, beta) + product
    if isinstance(mat, _Sparse):
        mat = mat.to_dense()
    return product if beta == 0 else scaled(mat, beta) + product


def sampled_addmm(
    input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the places of a sparse matrix.

    Args:
        input: (n, p), sparse: clew.sparse_csr in PyTorch; any matrix layout here.
        mat1: (n, m), dense.
        mat2: (m, p), dense.
        beta, alpha: numbers.
        out: None.

    Returns:
        a sparse matrix with the places of input.

    Raises:
        RuntimeError: shapes or dtypes do not fit.

    >>> places = clew.eye(2).to_sparse_csr()
    >>> clew.sparse.sampled_addmm(places, clew.ones(2, 3), clew.ones(3, 2)).values()
    tensor([4., 4.])
    """
    need_tensors("sampled_addmm", input=input, mat1=mat1, mat2=mat2)
    if out is not None:
        raise NotImplementedError("sampled_addmm: out= is not offered for sparse tensors")
    if not isinstance(input, _Sparse):
        raise RuntimeError("sampled_addmm: input must be sparse; convert with .to_sparse_csr()")
    p, values = _rows("sampled_addmm", input)
    _check("sampled_addmm", mat1, mat2)
    if (mat1.shape[0], mat2.shape[1]) != p.shape or mat1.dtype is not values.dtype:
        raise RuntimeError(
            f"sampled_addmm: the product must have input's shape and dtype; got "
            f"{[mat1.shape[0], mat2.shape[1]]} of {mat1.dtype} for {list(p.shape)} of "
            f"{values.dtype}"
        )
    right = mat2.t()
    mirror = p.mirror() if right.requires_grad and _C.is_grad_enabled() else None
    dots = _OPS._sparse_csr_dots(p.crow, p.col, mat1, right, mirror)
    made = dots * alpha if beta == 0 else values * beta + dots * alpha
    if isinstance(input, Coo):
        return coo(input.coalesce()._ind, made, input.shape, True, p)
    rows: Any = Compressed._over(p.shape, made)
    rows._pattern, rows._by_rows = p, True
    return rows if getattr(input, "_by_rows", True) else rows.to_sparse_csc()


def _only_two(x: Any, y: Any) -> Any:
    return matmul(x, y) if x.dim() == y.dim() == 2 else NotImplemented


def _mv(x: Any, y: Any) -> Any:
    return matmul(x, y) if x.dim() == 2 and y.dim() == 1 else NotImplemented


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if weight.dim() != 2:
        return NotImplemented
    product = matmul(input, weight.t())
    if product is NotImplemented or isinstance(product, _Sparse):
        return NotImplemented
    return product if bias is None else product + in_region(bias)[0]


RULES: dict[str, Any] = {
    "matmul": matmul,
    "linear": linear,
    "__rmatmul__": lambda x, y: matmul(y, x),
    "mm": _only_two,
    "mv": _mv,
    "addmm": addmm,
    "hspmm": hspmm,
    "smm": smm,
    "sspaddmm": sspaddmm,
    "dsmm": dsmm,
}
