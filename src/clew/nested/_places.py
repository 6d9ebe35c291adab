"""Places of ragged tensors that other tensors name: read, written and added to."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C
from clew._C import Tensor
from clew.nested._by_row import joined
from clew.nested._reductions import dim_of
from clew.nested._shapes import _dense_dim, _refuse_batch
from clew.nested._tensor import NestedTensor, is_ragged, need_same_rows, ragged

__all__ = ["RULES"]


def _gather(name: str, call: Any) -> Any:
    def rule(x: Any, dim: Any, index: Any, *more: Any, **kwargs: Any) -> Any:
        if name == "take_along_dim":  # its dim comes last
            dim, index = index, dim
        if not (is_ragged(x) and is_ragged(index)):
            return NotImplemented
        d = dim_of(name, x, dim)
        if d == 0:
            _refuse_batch(name)
        if len(x._sizes()) != len(index._sizes()) or x._at != index._at:
            raise RuntimeError(
                f"{name}: index must have the dims of the tensor; got shapes {list(x.shape)} and "
                f"{list(index.shape)}"
            )
        x, index = x.packed(), index.packed()
        if d != x._at:
            need_same_rows(name, (x, index))
            return ragged(x._rows, call(x._elements, d - 1, index._elements), x._at)
        if len(x._rows.counts) != len(index._rows.counts):
            raise RuntimeError(f"{name}: index must have as many rows as the tensor")
        pairs = zip(x.row_values(), index.row_values())
        return joined([call(p, d - 1, q) for p, q in pairs], x, x._at)

    return rule


def _scatter(name: str) -> Any:
    call = getattr(Tensor, name)

    def rule(x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
        given = (x, index, *args, *kwargs.values())
        tensors = [a for a in given if isinstance(a, Tensor)]
        if not all(map(is_ragged, tensors)):
            return NotImplemented
        d = dim_of(name, x, dim)
        if d == 0:
            _refuse_batch(name)
        need_same_rows(name, tensors)

        def part(a: Any) -> Any:
            return a.packed()._elements if is_ragged(a) else a

        rest, named = [part(a) for a in args], {k: part(v) for k, v in kwargs.items()}
        x = x.packed()
        if d != x._at:
            made = call(x._elements, d - 1, part(index), *rest, **named)
            return ragged(x._rows, made, x._at)
        # Places in a row are places in all values.
        sizes = [1] * x._elements.dim()
        sizes[d - 1] = -1
        counts = clew.tensor(x._rows.counts, dtype=_C.int64)
        limit = counts.index_select(0, x._rows.ids()).reshape(tuple(sizes))
        places = part(index)
        if bool(((places < 0) | (places >= limit)).any()):
            raise RuntimeError(f"{name}: an index is out of range for its row")
        start = clew.tensor(x._rows.starts, dtype=_C.int64).index_select(0, x._rows.ids())
        made = call(x._elements, d - 1, places + start.reshape(tuple(sizes)), *rest, **named)
        return ragged(x._rows, made, x._at)

    return rule


def _indexed(name: str) -> Any:
    """index_add, index_copy and index_fill of dims whose sizes rows share."""
    call = getattr(Tensor, name)

    def rule(x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
        if not is_ragged(x) or is_ragged(index):
            return NotImplemented
        if name == "index_fill" and dim_of(name, x, dim) == x._at:
            return x.by_row(lambda row: call(row, x._at - 1, index, source, **kwargs))
        d = _dense_dim(name, x, dim)
        if is_ragged(source):
            need_same_rows(name, (x, source))
            x, source = x.packed(), source.packed()._elements
        elif isinstance(source, Tensor) and source.dim():
            return NotImplemented
        return ragged(x._rows, call(x._elements, d - 1, index, source, **kwargs), x._at)

    return rule


def _flat_places(name: str, x: NestedTensor, indices: Any) -> tuple[Any, ...]:
    """Indices of a ragged tensor as indices of its values."""
    given = tuple(indices)
    if len(given) <= x._at or any(
        type(i) is not Tensor or i.dtype not in (_C.int64, _C.int32) for i in given
    ):
        raise NotImplementedError(
            f"{name}: indices of a ragged tensor must be tensors of integers for the batch dim, 0, "
            f"up to the ragged dim, {x._at}; write rows through those of .unbind(), which are views"
        )
    row, place = given[0].long(), given[x._at].long()
    counts = clew.tensor(x._rows.counts, dtype=_C.int64)
    starts = clew.tensor(x._rows.starts, dtype=_C.int64)
    size = len(x._rows.counts)
    if bool(((row < -size) | (row >= size)).any()):
        raise IndexError(f"{name}: an index is out of range for {size} rows")
    row = clew.where(row < 0, row + size, row)
    length = counts[row]
    if bool(((place < -length) | (place >= length)).any()):
        raise IndexError(f"{name}: an index is out of range for its row")
    flat = starts[row] + clew.where(place < 0, place + length, place)
    return (*given[1 : x._at], flat, *given[x._at + 1 :])


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if not is_ragged(x) or is_ragged(values):
        return NotImplemented
    places = _flat_places("index_put", x, indices)
    return x._with(x._elements.index_put(places, values, accumulate))


def _index_put_(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if not is_ragged(x) or is_ragged(values):
        return NotImplemented
    x._elements.index_put_(_flat_places("index_put_", x, indices), values, accumulate)
    return x


def _setitem(x: Any, key: Any, value: Any) -> None:
    if is_ragged(key):
        if isinstance(value, Tensor) and value.dim():
            raise NotImplementedError(
                "__setitem__: what a ragged mask names is set to a number, or use clew.where"
            )
        x.masked_fill_(key, value)
        return
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, (Tensor, list)) for k in keys):
        if all(isinstance(k, Tensor) for k in keys):
            new = value if isinstance(value, Tensor) else x._elements.new_full((), value)
            _index_put_(x, keys, new)
            return
        raise NotImplementedError(
            "__setitem__: rows of a ragged tensor that a list names are written one by one: "
            "x[i] = value"
        )
    part = x[key]
    if not _shares(part, x):
        raise NotImplementedError(
            "__setitem__: one place of all rows is no view of a ragged tensor; write through the "
            "rows of .unbind(), which are views"
        )
    if isinstance(value, Tensor) and value.dim():
        part.copy_(value)
    else:
        part.fill_(value)


def _shares(part: Any, x: NestedTensor) -> bool:
    mine, whole = part._elements if is_ragged(part) else part, x._elements
    return bool(mine._storage_key() == whole._storage_key())


RULES: dict[str, Any] = {
    "gather": _gather("gather", Tensor.gather),
    "take_along_dim": _gather("take_along_dim", lambda t, d, i: clew.take_along_dim(t, i, d)),
    **{n: _scatter(n) for n in ("scatter", "scatter_add", "scatter_reduce")},
    **{n: _indexed(n) for n in ("index_add", "index_copy", "index_fill")},
    "index_put": _index_put,
    "index_put_": _index_put_,
    "__setitem__": _setitem,
}
