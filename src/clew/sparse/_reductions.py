"""Sums and softmaxes of sparse tensors."""

from __future__ import annotations

from typing import Any

import clew
from clew.sparse._tensor import Compressed, _Sparse, coo, flat_places

__all__ = ["log_softmax", "softmax", "sum"]


def sum(input: Any, dim: Any = None, dtype: Any = None) -> clew.Tensor:
    """The sum of a sparse tensor, of all elements or over dims.

    Args:
        input: a sparse tensor.
        dim: an int or a tuple; default: all dims, which gives a number.
        dtype: the sum's.

    Returns:
        a sparse tensor; a dense one where no sparse dim is left.

    >>> clew.sparse.sum(clew.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not isinstance(input, _Sparse):
        raise RuntimeError("sparse.sum: input must be sparse; use clew.sum for a dense tensor")
    x = input.to_sparse_coo()
    if not (x.is_floating_point() or x.is_complex()):
        x = x.coalesce()  # elements of one place wrap, or are true once, as in a dense tensor
    values = x._elements if dtype is None else x._elements.to(dtype)
    if dim is None:
        return values.sum(dtype=dtype)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    n, sparse = x.dim(), x.sparse_dim()
    if any(not -n <= d < n for d in dims):
        raise IndexError(f"sum: dims must be in [{-n}, {n - 1}]; got {dim}")
    gone = {d % n for d in dims}
    if len(gone) != len(dims):
        raise RuntimeError(f"sum: a dim appears more than once in {dim}")
    inner = [d - sparse + 1 for d in gone if d >= sparse]
    if inner:
        values = values.sum(inner, dtype=dtype)
    rest = [d for d in range(sparse) if d not in gone]
    if not rest:
        return values.sum(0, dtype=dtype)
    shape = [s for d, s in enumerate(x.shape) if d not in gone]
    if len(rest) == sparse:
        return coo(x._ind, values, shape, x._coalesced)
    return coo(x._ind[rest], values, shape, False).coalesce()


def _normalized(name: str, x: Any, dim: int, dtype: Any) -> Any:
    if not isinstance(x, _Sparse):
        raise RuntimeError(f"sparse.{name}: input must be sparse; use clew.{name} for a dense one")
    if not -x.dim() <= dim < x.dim():
        raise IndexError(f"{name}: dim must be in [{-x.dim()}, {x.dim() - 1}]; got {dim}")
    if not (x.dtype if dtype is None else dtype).is_floating_point:
        raise NotImplementedError(
            f"sparse.{name}: input must be floating point; got {x.dtype} (pass dtype= to convert "
            "first)"
        )
    dim = dim % x.dim()
    if isinstance(x, Compressed):
        made = _normalized(name, x.to_sparse_coo(), dim, dtype)
        made = made.to_sparse_csr()
        return made if x._by_rows else made.to_sparse_csc()
    x = x.coalesce()
    values = x._elements if dtype is None else x._elements.to(dtype)
    if dim >= x.sparse_dim():
        at = dim - x.sparse_dim() + 1
        return x._with(getattr(clew, name)(values, at))
    rest = [d for d in range(x.sparse_dim()) if d != dim]
    flat = flat_places(x._ind[rest], tuple(x.shape[d] for d in rest))
    kept, group = clew.unique(flat, return_inverse=True)
    shape = (kept.shape[0], *values.shape[1:])
    index = group.reshape(-1, *[1] * (values.dim() - 1)).expand(values.shape)
    most = (
        values.detach()
        .new_zeros(shape)
        .scatter_reduce(0, index, values.detach(), "amax", include_self=False)
    )
    shifted = values - most.index_select(0, group)
    total = values.new_zeros(shape).index_add(0, group, shifted.exp())
    if name == "softmax":
        return x._with(shifted.exp() / total.index_select(0, group))
    return x._with(shifted - total.log().index_select(0, group))


def softmax(input: Any, dim: int, *, dtype: Any = None) -> clew.Tensor:
    """Softmax over the elements that a sparse tensor has; the others count as minus infinity.

    Args:
        input: a sparse tensor.
        dim: along which elements sum to one.
        dtype: of the computation and the result.

    Returns:
        a sparse tensor with the same places.

    >>> clew.sparse.softmax(clew.eye(2).to_sparse(), 1).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _normalized("softmax", input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> clew.Tensor:
    """The logarithm of :func:`softmax`, at the elements that a sparse tensor has.

    Args:
        input: a sparse tensor.
        dim: along which the exponentials of elements sum to one.
        dtype: of the computation and the result.

    Returns:
        a sparse tensor with the same places.

    >>> clew.sparse.log_softmax(clew.eye(2).to_sparse(), 1).values().tolist()
    [0.0, 0.0]
    """
    return _normalized("log_softmax", input, dim, dtype)


def _softmax_rule(name: str) -> Any:
    """A dense one would count what is not there as zero, a sparse one as minus infinity."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}: of a sparse tensor, call clew.sparse.{name} for the elements that are there, "
            "or convert with .to_dense() for all of them"
        )

    return rule


RULES: dict[str, Any] = {
    "softmax": _softmax_rule("softmax"),
    "log_softmax": _softmax_rule("log_softmax"),
}
