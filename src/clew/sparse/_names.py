"""Other names of what has rules, and what is written with them."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C, Tensor
from clew._base import dtypes as _dtypes
from clew.sparse import _batched, _construct
from clew.sparse import _changes as _changes
from clew.sparse._batched import Batched
from clew.sparse._rules import _ZERO_STAYS, RULES
from clew.sparse._tensor import Coo, Pattern, _Sparse, coo, spread_places

__all__: list[str] = []


def _movedim(x: Any, source: Any, destination: Any) -> Any:
    n = x.dim()
    given = [list(d) if isinstance(d, (tuple, list)) else [d] for d in (source, destination)]
    if any(not -n <= d < n for dims in given for d in dims):
        raise IndexError(f"movedim: dims must be in [{-n}, {n - 1}]; got {source}, {destination}")
    old, new = ([d % n for d in dims] for dims in given)
    if len(old) != len(new) or len({*old}) != len(old) or len({*new}) != len(new):
        raise RuntimeError(
            f"movedim: source and destination must name as many dims, each once; got {source} and "
            f"{destination}"
        )
    order = [d for d in range(n) if d not in old]
    for to, d in sorted(zip(new, old)):
        order.insert(to, d)
    return RULES["permute"](x, order)


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Of one dim only, which changes nothing."""
    n = max(x.dim(), 1)
    if not all(-n <= d < n for d in (start_dim, end_dim)):
        raise IndexError(f"flatten: dims must be in [{-n}, {n - 1}]; got {start_dim}, {end_dim}")
    return x if start_dim % n == end_dim % n and x.dim() else NotImplemented


def _float_power(x: Any, exponent: Any) -> Any:
    if not isinstance(x, _Sparse):
        return NotImplemented
    return RULES["pow"](x.to(_C.complex128 if x.is_complex() else _C.float64), exponent)


def _dist(x: Any, y: Any, p: Any = 2) -> Any:
    made = RULES["sub"](x, y)
    return made if made is NotImplemented else clew.norm(made, p)


def _nan_to_num_(x: Any, *args: Any, **kwargs: Any) -> Any:
    if not x.is_coalesced():
        raise RuntimeError(
            "nan_to_num_: elements of equal places must be added up first: use .coalesce()"
        )
    x._elements.nan_to_num_(*args, **kwargs)
    return x


def _sum_to_size(x: Any, *size: Any) -> Any:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if shape == tuple(x.shape):
        return x
    return RULES["sum"](x).reshape(shape) if all(n == 1 for n in shape) else NotImplemented


def _new_ones(x: Any, *size: Any, **options: Any) -> Any:
    """Dense: nothing of it is zero."""
    return x._elements.new_ones(*size, **options)


def _unbind(x: Any, dim: int = 0) -> Any:
    if dim not in (0, -x.dim()):
        return NotImplemented
    return tuple(RULES_OF_BATCHES["select"](x, 0, i) for i in range(int(x.shape[0])))


def _of_batches(name: str) -> Any:
    """A sum or difference of two batches with elements in the same places."""

    def rule(x: Any, y: Any, *, alpha: Any = 1) -> Any:
        if not isinstance(x, Batched) or not x._has_places_of(y):
            return NotImplemented
        made = getattr(x._elements, name)(y._elements, alpha=alpha)
        return x if name.endswith("_") else x._with(made)

    return rule


def _copy_(x: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(x, Batched) or not x._has_places_of(source):
        return NotImplemented
    x._elements.copy_(source._elements)
    return x


def _zeros_like(x: Any, *, dtype: Any = None, layout: Any = None, **options: Any) -> Any:
    """Without elements, as those of one matrix."""
    if layout not in (None, x.layout) or any(v not in (None, False) for v in options.values()):
        return NotImplemented
    ends, places = clew.zeros_like(x._ends), x._places[..., :0]
    patterns = [
        Pattern(e, p, old.shape)
        for e, p, old in zip(ends.flatten(0, -2), places.flatten(0, -2), x._patterns)
    ]
    dense = x._elements.shape[x._places.dim() :]
    values = x._elements.detach().new_zeros((*places.shape, *dense), dtype=dtype)
    return _batched.batched(patterns, ends, places, values, x._by_rows)


def _to_coo(x: Any, sparse_dim: Any = None) -> Any:
    batch, each = tuple(x._places.shape[:-1]), x._nnz()
    if sparse_dim not in (None, len(batch) + 2):
        return NotImplemented
    row = clew.cat([p.rows() for p in x._patterns])
    places = [row, x._places.flatten().long()]
    number = clew.arange(len(x._patterns)).repeat_interleave(each)
    ind = clew.cat(
        [spread_places(number, batch), clew.stack(places if x._by_rows else places[::-1])]
    )
    values = x._elements.flatten(0, len(batch))
    return coo(ind, values, tuple(x.shape), x._by_rows).coalesce()


def _to_layout(x: Any, *args: Any, layout: Any = None, **options: Any) -> Any:
    if layout is x.layout:
        return _batched.to_layout(x, *args, layout=layout, **options)
    if layout not in (None, _dtypes.sparse_coo) or len(args) > 1:
        return NotImplemented
    dims = args or (options.pop("sparse_dim", None),)
    return NotImplemented if any(v is not None for v in options.values()) else _to_coo(x, *dims)


def _total(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return NotImplemented if dim is not None or keepdim else x._elements.sum(dtype=dtype)


def _new(x: Any, *args: Any, device: Any = None, **named: Any) -> Any:
    """One without elements, of these sizes; or of indices, values and maybe a size."""
    if not isinstance(x, Coo):
        return NotImplemented
    given = [*args, *(named[n] for n in ("indices", "values") if n in named)]
    if len(given) > 1 and all(isinstance(v, Tensor) for v in given[:2]):
        return _construct.sparse_coo_tensor(*args, device=device, **named)
    size = named.pop("size", args or (0,))
    if len(size) == 1 and isinstance(size[0], clew.Size):
        (size,) = size
    if named or not all(isinstance(n, int) for n in size):
        raise TypeError(
            "new: a sparse tensor takes sizes, or indices and values, tensors both, and a size; "
            f"got {(*args, *named.values())}"
        )
    return _construct.sparse_coo_tensor(size=size, dtype=x.dtype, device=device)


RULES_OF_BATCHES = Batched._rules
RULES.update(
    {
        "subtract_": RULES["sub_"],
        "multiply_": RULES["mul_"],
        **dict.fromkeys(("divide_", "true_divide_"), RULES["div_"]),
        "swapdims": RULES["transpose"],
        **dict.fromkeys(("movedim", "moveaxis"), _movedim),
        "flatten": _flatten,
        "float_power": _float_power,
        "dist": _dist,
        "nan_to_num_": _nan_to_num_,
        "sum_to_size": _sum_to_size,
        "new_ones": _new_ones,
        "new": _new,
    }
)
RULES_OF_BATCHES.update(
    {
        **{n + "_": RULES[n + "_"] for n in _ZERO_STAYS if n + "_" in RULES},
        **{n: RULES[n] for n in "fill_ type_as empty_like ones_like full_like".split()},
        "copy_": _copy_,
        "zeros_like": _zeros_like,
        "multiply_": RULES_OF_BATCHES["mul_"],
        **dict.fromkeys(("divide_", "true_divide_"), RULES_OF_BATCHES["div_"]),
        **{n: _of_batches(n) for n in ("add", "sub", "add_", "sub_")},
        **dict.fromkeys(("swapaxes", "swapdims"), RULES_OF_BATCHES["transpose"]),
        "is_same_size": RULES["is_same_size"],
        "unbind": _unbind,
        "sum": _total,
        "to_sparse": _to_layout,
        "to_sparse_coo": _to_coo,
    }
)
