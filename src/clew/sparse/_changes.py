"""Sparse tensors written in place, joined and taken apart, and made like others."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C
from clew._C import Tensor
from clew.sparse._products import matmul as product
from clew.sparse._reductions import sum as sum_over
from clew.sparse._rules import (
    _ZERO_STAYS,
    RULES,
    _as_layout_of,
    _dim_of,
    _is_number,
    add,
    cat,
    div,
    mul_,
    narrow,
    select,
    t,
    to_coo,
    unsqueeze,
    zero_,
    zeros_like,
)
from clew.sparse._tensor import Compressed, Coo, Pattern, _Sparse, compressed, coo, is_same_pattern

__all__: list[str] = []


def _sum_of_places(x: Any) -> Any:
    """The tensor with elements of equal places added up, which functions of elements need."""
    return x.coalesce() if isinstance(x, Coo) else x


# ---- in place ----


def _take(x: Any, made: Any) -> Any:
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
        _need_no_leaf(name, x)
        made = add(x, y, alpha=alpha)
        if made is NotImplemented:
            return made
        if made.dtype is not x.dtype:
            raise RuntimeError(f"{name}: a result of {made.dtype} cannot be written into {x.dtype}")
        return _take(x, made)

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
    if isinstance(x, _Sparse):
        return mul_(x, y)
    return x.mul_(y.to_dense())


def _zero_(x: Any) -> Any:
    """No elements are left, unless somebody trains them."""
    zero_(x)
    return x if x.requires_grad else _take(x, zeros_like(x))


def _written(name: str) -> Any:
    call = getattr(Tensor, name + "_")

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        linear = name in ("neg", "negative", "positive", "conj", "conj_physical")
        if not x.is_coalesced() and not linear:
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


def _vstack(tensors: Any) -> Any:
    return cat(tensors) if tensors[0].dim() > 1 else _stack(tensors)


def _unbind(x: Any, dim: int = 0) -> Any:
    dim = _dim_of("unbind", x, dim)
    return tuple(select(x, dim, i) for i in range(int(x.shape[dim])))


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
        "stack": _stack,
        "hstack": _hstack,
        **dict.fromkeys(("vstack", "row_stack"), _vstack),
        "unbind": _unbind,
        "narrow_copy": _narrow_copy,
        "empty_like": _empty_like,
        "ones_like": _ones_like,
        **dict.fromkeys(("new_zeros", "new_empty"), _new_zeros),
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
