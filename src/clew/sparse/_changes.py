"""Sparse tensors written in place, joined and taken apart, and made like others."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import _C
from clew._C import Tensor
from clew.sparse._blocked import Blocked
from clew.sparse._products import addmm, scaled
from clew.sparse._products import matmul as product
from clew.sparse._reductions import sum as sum_over
from clew.sparse._rules import (
    _ZERO_STAYS,
    LINEAR,
    RULES,
    _as_layout_of,
    _dim_of,
    _is_number,
    _is_place,
    add,
    cat,
    div,
    getitem,
    index_select,
    mul,
    mul_,
    narrow,
    select,
    t,
    to_coo,
    unsqueeze,
    zero_,
    zeros_like,
)
from clew.sparse._tensor import (
    Compressed,
    Coo,
    Pattern,
    _Sparse,
    compressed,
    coo,
    first_of_places,
    flat_places,
    is_same_pattern,
)

__all__ = ["take"]


def _sum_of_places(x: Any) -> Any:
    """The tensor with elements of equal places added up, which functions of elements need."""
    return x.coalesce() if isinstance(x, Coo) else x


# ---- in place ----


def take(x: Any, made: Any) -> Any:
    """Gives a tensor the elements and the places of another one of its layout."""
    x._elements, x._pattern = made._elements, made._pattern
    if isinstance(x, Coo):
        x._ind, x._coalesced = made._ind, made._coalesced
    return x


def _need_no_leaf(name: str, x: Any) -> None:
    """Refuses other places for a leaf, whose values somebody trains."""
    if not x.requires_grad or not x.is_leaf:
        return
    if _C.is_grad_enabled():
        raise RuntimeError(
            f"{name}: a leaf that requires grad cannot be written in place; write under no_grad"
        )
    raise RuntimeError(
        f"{name}: a sparse leaf that requires grad cannot get other places; make a new one of "
        ".detach()"
    )


def _added_within(x: Any, y: Any, alpha: Any) -> bool:
    """Adds to a trained tensor in coordinates what lies at places that it has; False where it is
    none, or does not have them all.
    """
    if not (isinstance(x, Coo) and isinstance(y, Coo) and x.requires_grad and x.is_leaf):
        return False
    if _C.is_grad_enabled() or x.sparse_dim() != y.sparse_dim() or not x._nnz():
        return False
    places, first = first_of_places(x)
    wanted = flat_places(y._ind, tuple(y.shape[: y.sparse_dim()])).numpy()
    at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    if not np.array_equal(places[at], wanted) or y.dtype is not x.dtype:
        return False
    x._elements.index_add_(0, clew.from_numpy(first[at]), y._elements, alpha=alpha)
    return True


def _adding(name: str, sign: int) -> Any:
    def rule(x: Any, y: Any, *, alpha: Any = 1) -> Any:
        alpha = alpha * sign
        if not isinstance(x, _Sparse):
            return _add_to_dense(name, x, y, alpha)
        if not isinstance(y, _Sparse):
            return NotImplemented
        if tuple(x.shape) != tuple(y.shape):
            raise RuntimeError(
                f"{name}: sparse tensors must have one shape; got {list(x.shape)} and "
                f"{list(y.shape)}"
            )
        if x.layout is y.layout and is_same_pattern(x, y):
            x._elements.add_(y._elements, alpha=alpha)
            return x
        if _added_within(x, y, alpha):
            return x
        _need_no_leaf(name, x)
        made = add(x, y, alpha=alpha)
        if made is NotImplemented:
            return made
        if made.dtype is not x.dtype:
            raise RuntimeError(f"{name}: a result of {made.dtype} cannot be written into {x.dtype}")
        return take(x, made)

    return rule


def _add_to_dense(name: str, dense: Tensor, y: Any, alpha: Any) -> Tensor:
    """Only the places of the sparse tensor are touched."""
    if tuple(dense.shape) != tuple(y.shape):
        raise RuntimeError(
            f"{name}: the dense tensor must have the sparse one's shape, {list(y.shape)}; got "
            f"{list(dense.shape)}"
        )
    values = y._elements if alpha == 1 else y._elements * alpha
    if not clew.can_cast(values.dtype, dense.dtype):
        raise RuntimeError(
            f"{name}: a result of {values.dtype} cannot be written into {dense.dtype}"
        )
    if isinstance(y, Coo):
        if not y.sparse_dim():
            return dense.add_(values.sum(0))
        places = tuple(y._ind.unbind(0))
    else:
        p = y._pattern
        rows, columns = p.rows(), p.col.long()
        places = (rows, columns) if y._by_rows else (columns, rows)
    return dense.index_put_(places, values.to(dense.dtype), accumulate=True)


def _mul_(x: Any, y: Any) -> Any:
    if not isinstance(x, _Sparse):
        return x.mul_(y.to_dense())
    if not isinstance(y, Tensor) or _is_number(y):
        return mul_(x, y)
    _need_no_leaf("mul_", x)
    made = mul(x, y)
    if made is NotImplemented or made.layout is not x.layout:
        return NotImplemented
    if made.dtype is not x.dtype:
        raise RuntimeError(f"mul_: a result of {made.dtype} cannot be written into {x.dtype}")
    return take(x, made)


def _zero_(x: Any) -> Any:
    """No elements are left, unless somebody trains them."""
    zero_(x)
    return x if x.requires_grad else take(x, zeros_like(x))


def _written(name: str) -> Any:
    call = getattr(Tensor, name + "_")

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not x.is_coalesced() and name not in LINEAR:
            raise RuntimeError(
                f"{name}_: elements of equal places must be added up first: use .coalesce()"
            )
        call(x._elements, *args, **kwargs)
        return x

    return rule


# ---- joins and parts ----


def _stack(tensors: Any, dim: int = 0) -> Any:
    if not all(isinstance(x, Coo) for x in tensors):
        return NotImplemented
    first = tensors[0]
    for x in tensors:
        if tuple(x.shape) != tuple(first.shape) or x.sparse_dim() != first.sparse_dim():
            raise RuntimeError(
                f"stack: sparse tensors must have the same shape and the same sparse dims; got "
                f"{list(first.shape)} and {list(x.shape)}"
            )
    dim = _dim_of("stack", first, dim, 1)
    return cat([unsqueeze(x, dim) for x in tensors], dim)


def _hstack(tensors: Any) -> Any:
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def _dstack(tensors: Any) -> Any:
    n = tensors[0].dim()
    rows = [unsqueeze(x, 0) if n == 1 else x for x in tensors]
    return cat([unsqueeze(x, 2) if n < 3 else x for x in rows], 2)


def _vstack(tensors: Any) -> Any:
    return cat(tensors) if tensors[0].dim() > 1 else _stack(tensors)


def _unbind(x: Any, dim: int = 0) -> Any:
    dim = _dim_of("unbind", x, dim)
    return tuple(select(x, dim, i) for i in range(int(x.shape[dim])))


def _element_of_blocks(x: Any, key: Any) -> Any:
    """What has a dim less, in coordinates, as in PyTorch; ranges of blocks have no rule."""
    keys = key if isinstance(key, tuple) else (key,)
    return getitem(x.to_sparse_coo(), key) if any(_is_place(k) for k in keys) else NotImplemented


def _narrow_copy(x: Any, dim: int, start: int, length: int) -> Any:
    return narrow(x, dim, start, length).clone()


# ---- tensors like others ----


def _empty_like(x: Any, **options: Any) -> Any:
    """With coordinates without elements, else with the tensor's places, as in PyTorch."""
    if isinstance(x, Coo) or any(v not in (None, False) for v in options.values()):
        return zeros_like(x, **options)
    return x._with(clew.empty_like(x._elements, requires_grad=False))


def _ones_like(x: Any, **options: Any) -> Any:
    """Ones at the places of the tensor, as in PyTorch; it has no rule for coordinates."""
    if isinstance(x, Coo) or any(v not in (None, False) for v in options.values()):
        return NotImplemented
    return x._with(clew.ones_like(x._elements, requires_grad=False))


def _full_like(x: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Any:
    """The number at the places of the tensor, as in PyTorch; it has no rule for coordinates."""
    if isinstance(x, Coo) or any(v not in (None, False) for v in options.values()):
        return NotImplemented
    return x._with(clew.full_like(x._elements.detach(), fill_value, dtype=dtype))


def _fill_(x: Any, value: Any) -> Any:
    if isinstance(x, Coo):
        return NotImplemented
    x._elements.fill_(value)
    return x


def _embedding(weight: Any, indices: Any, *more: Any) -> Any:
    """Rows of a table in coordinates."""
    if not isinstance(weight, Coo) or isinstance(indices, _Sparse) or indices.dim() != 1:
        return NotImplemented
    return index_select(weight, 0, indices)


def _addmm_(x: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if isinstance(x, _Sparse):
        return NotImplemented
    return x.copy_(addmm(x, mat1, mat2, beta=beta, alpha=alpha))


def _addmv(x: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if isinstance(x, _Sparse) or isinstance(vec, _Sparse) or vec.dim() != 1:
        return NotImplemented
    return scaled(x, beta) + scaled(product(mat, vec), alpha)


def _new_zeros(x: Any, size: Any, *more: Any, dtype: Any = None, **options: Any) -> Any:
    """A tensor of the same layout without elements."""
    if any(v not in (None, False) for v in options.values()):
        return NotImplemented
    shape = tuple(size) if isinstance(size, (tuple, list)) else (size, *more)
    values = x._elements.new_zeros((0,), dtype=dtype)
    if isinstance(x, Coo):
        return coo(x._ind.new_zeros((len(shape), 0)), values, shape, True)
    if len(shape) != 2:
        return NotImplemented
    n, m = shape if x._by_rows else shape[::-1]
    pattern = Pattern(x._pattern.crow.new_zeros(n + 1), x._pattern.col[:0], (n, m))
    return compressed(pattern, values, x._by_rows)


def _is_same_size(x: Any, y: Any) -> bool:
    return tuple(x.shape) == tuple(y.shape)


# ---- functions of elements ----


def _div(x: Any, y: Any, *, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        return div(x, y)
    if not isinstance(x, _Sparse) or not _is_number(y):
        return NotImplemented
    x = _sum_of_places(x)
    return x._with(clew.div(x._elements, y, rounding_mode=rounding_mode))


def _floor_divide(x: Any, y: Any) -> Any:
    return _div(x, y, rounding_mode="floor")


def _floor_divide_(x: Any, y: Any) -> Any:
    if not isinstance(x, _Sparse) or not _is_number(y):
        return NotImplemented
    if x.is_coalesced():
        x._elements.floor_divide_(y)
        return x
    _need_no_leaf("floor_divide_", x)
    made = x.coalesce()
    made._elements.floor_divide_(y)
    return take(x, made)


def _nan_to_num(x: Any, *args: Any, **kwargs: Any) -> Any:
    x = _sum_of_places(x)
    return x._with(x._elements.nan_to_num(*args, **kwargs))


def _dropout(x: Any, *args: Any, **kwargs: Any) -> Any:
    x = _sum_of_places(x)
    return x._with(clew.nn.functional.dropout(x._elements, *args, **kwargs))


def _any(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is not None or keepdim:
        return NotImplemented
    return _sum_of_places(x)._elements.any()


def _adjoint(x: Any) -> Any:
    made = t(x)
    if made is NotImplemented or not x.is_complex():
        return made
    return made._with(made._elements.conj())


def _sum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is None and not (x.is_floating_point() or x.is_complex()):
        dtype = _C.int64  # that of a dense sum
    made: Any = sum_over(x, dim, dtype)
    if not keepdim:
        return made
    gone = range(x.dim()) if dim is None else ([dim] if isinstance(dim, int) else dim)
    for d in sorted(d % x.dim() for d in gone):
        made = unsqueeze(made, d) if isinstance(made, Coo) else made.unsqueeze(d)
        if made is NotImplemented:
            return made
    is_matrix = isinstance(made, Coo) and made.sparse_dim() == 2
    return _as_layout_of(made, x) if is_matrix and isinstance(x, Compressed) else made


def _batches(x: Any, y: Any) -> Any:
    """A batch of sparse matrices times one of dense ones."""
    if not isinstance(x, Coo) or isinstance(y, _Sparse) or x.dense_dim():
        return NotImplemented
    if x.dim() != 3 or y.dim() != 3 or x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise RuntimeError(
            f"bmm: expected (b, n, m) and (b, m, p); got {list(x.shape)} and {list(y.shape)}"
        )
    made = [product(to_coo(a), b) for a, b in zip(_unbind(x), y.unbind(0))]
    return clew.stack(made) if made else y.new_zeros((0, x.shape[1], y.shape[2]))


def _matmul(x: Any, y: Any) -> Any:
    if isinstance(x, Coo) and isinstance(y, Tensor) and x.dim() == 3:
        return _batches(x, y)
    return product(x, y)


RULES.update(
    {
        **{n + "_": _written(n) for n in _ZERO_STAYS if hasattr(Tensor, n + "_")},
        "add_": _adding("add_", 1),
        "sub_": _adding("sub_", -1),
        "mul_": _mul_,
        "zero_": _zero_,
        "floor_divide_": _floor_divide_,
        "stack": _stack,
        "dstack": _dstack,
        "hstack": _hstack,
        **dict.fromkeys(("vstack", "row_stack"), _vstack),
        "unbind": _unbind,
        "narrow_copy": _narrow_copy,
        "empty_like": _empty_like,
        "ones_like": _ones_like,
        **dict.fromkeys(("new_zeros", "new_empty"), _new_zeros),
        "full_like": _full_like,
        "fill_": _fill_,
        "clone": lambda x, memory_format=None: x.clone(),
        "detach": lambda x: x.detach(),
        "_embedding": _embedding,
        "addmm_": _addmm_,
        "addmv": _addmv,
        "new_tensor": lambda x, data, **options: x._elements.new_tensor(data, **options),
        "is_same_size": _is_same_size,
        "type_as": lambda x, other: x.to(other.dtype),
        **dict.fromkeys(("div", "divide", "true_divide"), _div),
        **dict.fromkeys(("floor_divide", "__floordiv__"), _floor_divide),
        "nan_to_num": _nan_to_num,
        "dropout": _dropout,
        "any": _any,
        "adjoint": _adjoint,
        "sum": _sum,
        "bmm": _batches,
        "matmul": _matmul,
    }
)
Blocked._rules.update(
    {
        name: RULES[name]
        for name in (
            *(n + "_" for n in _ZERO_STAYS if n + "_" in RULES),
            *"zero_ zeros_like ones_like empty_like full_like fill_ is_same_size clone".split(),
            *"detach type_as dropout sparse_mask".split(),
        )
    }
)
Blocked._rules.update(
    {
        "__getitem__": _element_of_blocks,
        "select": lambda x, dim, index: select(x.to_sparse_coo(), dim, index),
        "unbind": lambda x, dim=0: _unbind(x.to_sparse_coo(), dim),
    }
)
