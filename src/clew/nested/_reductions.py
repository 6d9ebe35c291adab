"""Reductions of ragged tensors: within rows, across them, over everything."""

from __future__ import annotations

import operator
from typing import Any

import clew
from clew import _C
from clew._C import Tensor
from clew.nested._pointwise import extreme, function, on_values
from clew.nested._tensor import NestedTensor, is_ragged, ragged

__all__ = ["RULES", "dim_of"]

# Sums over rows of more elements are made row by row: adding to a running sum loses digits.
_LONG = 4096


def dim_of(name: str, x: NestedTensor, dim: Any) -> int:
    """A dim counted from the front."""
    n = len(x._sizes())
    try:
        d = operator.index(dim)
    except TypeError:
        raise TypeError(f"{name}: dim must be an int; got {dim!r}") from None
    if not -n <= d < n:
        raise IndexError(f"{name}: dim must be in [{-n}, {n - 1}]; got {d}")
    return d % n


def _dims_of(name: str, x: NestedTensor, dim: Any) -> list[int]:
    given = [dim] if not isinstance(dim, (tuple, list)) else dim
    dims = [dim_of(name, x, d) for d in given]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{name}: a dim is named twice: {list(given)}")
    return sorted(dims)


def _each(made: Any, wrap: Any) -> Any:
    """The result, or each field of it, wrapped."""
    if isinstance(made, tuple):
        fields = [wrap(m) for m in made]
        kind: Any = type(made)
        return kind._make(fields) if hasattr(kind, "_make") else kind(fields)
    return wrap(made)


def reduced(name: str, x: NestedTensor, dim: Any, keepdim: bool, call: Any, many: bool) -> Any:
    """A reduction over dims. `call(values, dims, keepdim)` makes it of a dense tensor; dims is a
    tuple where `many` is true, otherwise a number; None for all of them.
    """
    n = len(x._sizes())
    if not isinstance(keepdim, bool):
        raise TypeError(f"{name}: keepdim must be a bool; got {keepdim!r}")
    every = dim is None or (isinstance(dim, (tuple, list)) and not dim)
    dims = list(range(n)) if every else _dims_of(name, x, dim)
    x = x.packed()
    if len(dims) == n and (dim is None or many):
        made = call(x._elements, None, False)
        return _each(made, lambda m: m.reshape((1,) * n)) if keepdim else made
    within = [d - 1 for d in dims if d]
    over = tuple(within) if many else (within[0] if within else 0)
    if 0 in dims:
        if x._at not in dims:
            raise RuntimeError(
                f"{name}: the batch dim can be reduced together with the ragged dim {x._at} only: "
                f"rows differ in length; pass dim=(0, {x._at}), or make the tensor dense with "
                ".to_padded_tensor(padding)"
            )
        made = call(x._elements, over, keepdim)
        return _each(made, lambda m: m.unsqueeze(0)) if keepdim else made
    if x._at in dims:
        if within == [x._at - 1] and name in ("sum", "mean"):
            fast = _row_sums(x, name == "mean", keepdim)
            if fast is not None:
                return fast
        rows = _with_an_element(name, x.row_values(), x._at - 1)
        return _stacked([call(row, over, keepdim) for row in rows], x, dims, keepdim)
    at = x._at if keepdim else x._at - sum(d < x._at for d in dims)
    return _each(call(x._elements, over, keepdim), lambda m: ragged(x._rows, m, at))


def _with_an_element(name: str, rows: Any, dim: int) -> Any:
    """The rows, empty ones with one element, past which every number lies: what the largest or the
    smallest element of an empty row is, as in PyTorch.
    """
    largest = name in ("max", "amax", "argmax")
    if not largest and name not in ("min", "amin", "argmin"):
        return rows
    made = []
    for row in rows:
        if not row.shape[dim]:
            dtype = row.dtype
            info: Any = clew.finfo(dtype) if dtype.is_floating_point else None
            if dtype is not _C.bool and info is None:
                info = clew.iinfo(dtype)
            fill = not largest if info is None else (info.min if largest else info.max)
            row = row.new_full((*row.shape[:dim], 1, *row.shape[dim + 1 :]), fill)
        made.append(row)
    return made


def _stacked(made: list[Any], x: NestedTensor, dims: list[int], keepdim: bool) -> Any:
    if not made:
        sizes = [
            1 if d in dims else s for d, s in enumerate(x._sizes()) if keepdim or d not in dims
        ]
        return x._elements.new_zeros(tuple(sizes))
    if isinstance(made[0], tuple):
        return type(made[0])([clew.stack([m[i] for m in made]) for i in range(len(made[0]))])
    return clew.stack(made)


def _row_sums(x: NestedTensor, mean: bool, keepdim: bool) -> Tensor | None:
    """Sums over the ragged dim in one operation; None where it would be less exact."""
    values, rows, dim = x._elements, x._rows, x._at - 1
    if values.dtype not in (_C.float32, _C.float64) or rows.longest > _LONG:
        return None
    sizes = list(values.shape)
    sizes[dim] = len(rows.counts)
    made = values.new_zeros(tuple(sizes)).index_add(dim, rows.ids(), values).movedim(dim, 0)
    if mean:
        counts = clew.tensor(rows.counts, dtype=values.dtype)
        made = made / counts.reshape((-1,) + (1,) * (made.dim() - 1))
    return made.unsqueeze(x._at) if keepdim else made


def _over_dims(name: str) -> Any:
    """Reductions whose dim may be several."""
    fn = function(name)

    def rule(x: Any, dim: Any = None, keepdim: bool = False, **more: Any) -> Any:
        def call(t: Tensor, dims: Any, keep: bool) -> Any:
            return fn(t, **more) if dims is None else fn(t, dims, keep, **more)

        dtype = more.get("dtype")
        if dtype is not None and is_ragged(x):
            x = x.to(dtype)
        elif name == "sum" and not (x.is_floating_point() or x.is_complex()):
            x = x.to(_C.int64)
        elif name == "mean" and not (x.is_floating_point() or x.is_complex()):
            if is_ragged(x) and dim in (x._at, x._at - len(x._sizes()), (x._at,), [x._at]):
                return rule(x.to(_C.get_default_dtype()), dim, keepdim)  # as in PyTorch
            raise RuntimeError(f"mean: the tensor must be floating point or complex; got {x.dtype}")
        return reduced(name, x, dim, keepdim, call, True)

    return rule


def _over_dim(name: str) -> Any:
    """Reductions whose dim is one, or everything."""
    fn = function(name)

    def rule(x: Any, dim: Any = None, keepdim: bool = False, **more: Any) -> Any:
        def call(t: Tensor, d: Any, keep: bool) -> Any:
            return fn(t, **more) if d is None else fn(t, d, keep, **more)

        if isinstance(dim, (tuple, list)):
            return NotImplemented
        return reduced(name, x, dim, keepdim, call, False)

    return rule


def _spread(name: str) -> Any:
    """std, var and both with the mean: dim may be a bool, that of the old signature."""
    fn = function(name)

    def rule(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **more: Any
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            if not isinstance(unbiased, bool):
                raise TypeError(f"{name}: unbiased must be a bool; got {unbiased!r}")
            more["correction"] = int(unbiased)

        def call(t: Tensor, dims: Any, keep: bool) -> Any:
            return fn(t, dim=dims, keepdim=keep, **more)

        return reduced(name, x, dim, keepdim, call, True)

    return rule


def _norm(
    x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, **more: Any
) -> Any:
    return _vector_norm(x, 2 if p in (None, "fro") else p, dim, keepdim, dtype=dtype)


def _vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    def call(t: Tensor, dims: Any, keep: bool) -> Any:
        return clew.linalg.vector_norm(t, ord, dims, keep, dtype=dtype)

    return reduced("norm", x, dim, keepdim, call, True)


def _count_nonzero(x: Any, dim: Any = None) -> Any:
    return (x != 0).sum(dim)


def _item(x: Any) -> Any:
    return x.packed()._elements.item()


RULES: dict[str, Any] = {
    **{n: _over_dims(n) for n in "sum nansum mean nanmean amax amin logsumexp all any".split()},
    **{n: _over_dim(n) for n in "prod argmax argmin median nanmedian".split()},
    **{n: _spread(n) for n in "std var std_mean var_mean".split()},
    "max": extreme("max", "maximum", _over_dim("max"), on_values),
    "min": extreme("min", "minimum", _over_dim("min"), on_values),
    "count_nonzero": _count_nonzero,
    "norm": _norm,
    "vector_norm": _vector_norm,
    "item": _item,
    "__bool__": lambda x: bool(x.packed()._elements),
}
