"""Views, parts and joins of ragged tensors. The batch dim stays the first; the ragged dim may move,
and be cut or merged with another.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

import clew
from clew import _C
from clew._C import Tensor
from clew.nested._reductions import dim_of
from clew.nested._tensor import NestedTensor, RaggedSize, Rows, is_ragged, need_same_rows, ragged

__all__ = ["RULES"]


def _refuse_batch(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}: the batch dim, 0, of a ragged tensor stays where it is; make the tensor dense "
        "with .to_padded_tensor(padding), or work on the rows of .unbind()"
    )


def _refuse_ragged(name: str, x: NestedTensor) -> NoReturn:
    raise RuntimeError(
        f"{name}: not offered for the ragged dim, {x._at}, whose size is another one in each row; "
        "make the tensor dense with .to_padded_tensor(padding), or work on the rows of .unbind()"
    )


def _dense_dim(name: str, x: NestedTensor, dim: Any) -> int:
    """A dim that is neither the batch's nor the ragged one."""
    d = dim_of(name, x, dim)
    if d == 0:
        _refuse_batch(name)
    if d == x._at:
        _refuse_ragged(name, x)
    return d


# ---- the order and number of dims ----


def _permuted(name: str, x: NestedTensor, order: list[int]) -> NestedTensor:
    if order[0] != 0:
        _refuse_batch(name)
    values = x._elements.permute([d - 1 for d in order[1:]])
    return ragged(x._rows, values, order.index(x._at))


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    order = list(range(len(x._sizes())))
    a, b = dim_of("transpose", x, dim0), dim_of("transpose", x, dim1)
    order[a], order[b] = order[b], order[a]
    return _permuted("transpose", x, order)


def permute(x: Any, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [dim_of("permute", x, d) for d in given]
    if sorted(order) != list(range(len(x._sizes()))):
        raise RuntimeError(f"permute: dims must name each dim once; got {list(given)}")
    return _permuted("permute", x, order)


def movedim(x: Any, source: Any, destination: Any) -> Any:
    n = len(x._sizes())
    clew.empty((0,) * n).movedim(source, destination)  # checks them
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    src, dst = [s % n for s in src], [d % n for d in dst]
    rest = [d for d in range(n) if d not in src]
    for d, s in sorted(zip(dst, src)):
        rest.insert(d, s)
    return _permuted("movedim", x, rest)


def unsqueeze(x: Any, dim: int) -> Any:
    n = len(x._sizes())
    if not -n - 1 <= dim <= n:
        raise IndexError(f"unsqueeze: dim must be in [{-n - 1}, {n}]; got {dim}")
    d = dim % (n + 1)
    if d == 0:
        _refuse_batch("unsqueeze")
    return ragged(x._rows, x._elements.unsqueeze(d - 1), x._at + (d <= x._at))


def squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        dims = [d for d, s in enumerate(x._sizes()) if s == 1 and d not in (0, x._at)]
    else:
        given = dim if isinstance(dim, (tuple, list)) else [dim]
        dims = [_dense_dim("squeeze", x, d) for d in given]
        dims = [d for d in dims if x._sizes()[d] == 1]
    if not dims:
        return x
    values = x._elements.squeeze(tuple(d - 1 for d in dims))
    return ragged(x._rows, values, x._at - sum(d < x._at for d in dims))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    a, b = dim_of("flatten", x, start_dim), dim_of("flatten", x, end_dim)
    if a == b:
        return x
    if a == 0:
        _refuse_batch("flatten")
    if a <= x._at <= b:
        return _of_changed_rows(x, lambda row: row.flatten(a - 1, b - 1), a)
    at = x._at if x._at < a else x._at - (b - a)
    return ragged(x._rows, x._elements.flatten(a - 1, b - 1), at)


def _of_changed_rows(x: NestedTensor, function: Any, at: int) -> NestedTensor:
    """What a function makes of each row, ragged in another dim or with other lengths."""
    x = x.packed()
    # No rows: the function still says what shape is left.
    made = [function(row) for row in x.row_values() or [x._elements]]
    counts = [int(row.shape[at - 1]) for row in made] if x._rows.counts else []
    return ragged(Rows.of_counts(counts), clew.cat(made, at - 1), at)


def unflatten(x: Any, dim: int, sizes: Any) -> Any:
    if dim_of("unflatten", x, dim) == x._at:
        if list(sizes).count(-1) != 1:
            raise RuntimeError(
                "unflatten: the sizes of a ragged dim must have one -1, for what differs from row "
                f"to row; got {list(sizes)}"
            )
        at = x._at + list(sizes).index(-1)
        return _of_changed_rows(x, lambda row: row.unflatten(x._at - 1, tuple(sizes)), at)
    d = _dense_dim("unflatten", x, dim)
    values = x._elements.unflatten(d - 1, tuple(sizes))
    return ragged(x._rows, values, x._at + (len(sizes) - 1 if d < x._at else 0))


def _shaped(name: str, x: NestedTensor, sizes: Any) -> tuple[list[int], int]:
    """The sizes that a shape gives to the values, -1 in the ragged dim, and where that is."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    symbols = [d for d, s in enumerate(sizes) if isinstance(s, RaggedSize)]
    unknown = [d for d, s in enumerate(sizes) if not isinstance(s, RaggedSize) and s == -1]
    at = symbols or unknown[:1]
    batch = len(x._rows.counts)
    fits = len(at) == 1 and at[0] > 0 and len(sizes) > 1 and sizes[0] in (batch, -1)
    if not fits or (symbols and sizes[at[0]] != x._rows.size):
        raise RuntimeError(
            f"{name}: a shape for this tensor must begin with its number of rows, {batch}, and "
            f"have {x._rows.size!r} (see .size({x._at})) or -1 for the ragged dim; got "
            f"{list(sizes)} for {list(x.shape)}"
        )
    return [-1 if d == at[0] else int(s) for d, s in enumerate(sizes)][1:], at[0]


def _view(name: str) -> Any:
    call = getattr(Tensor, name)

    def rule(x: Any, *sizes: Any, **named: Any) -> Any:
        if named or (len(sizes) == 1 and isinstance(sizes[0], (_C.dtype, Tensor))):
            if len(sizes) == 1 and is_ragged(sizes[0]):
                return rule(x, sizes[0].shape)
            if not named and isinstance(sizes[0], _C.dtype) and x._at < len(x._sizes()) - 1:
                return ragged(x._rows, call(x._elements, sizes[0]), x._at)
            return NotImplemented
        shape, at = _shaped(name, x, sizes)
        before = [s for d, s in enumerate(x._sizes()[1:], 1) if d < x._at]
        if int(np.prod(shape[: at - 1])) != int(np.prod(before)) or -1 in shape[: at - 1]:
            raise RuntimeError(
                f"{name}: the ragged dim cannot be merged with others or be split; got shape "
                f"{[len(x._rows.counts), *shape]} for {list(x.shape)}"
            )
        total = int(x._elements.shape[x._at - 1])
        exact = [total if d == at - 1 else s for d, s in enumerate(shape)]
        return ragged(x._rows, call(x._elements, tuple(exact)), at)

    return rule


def expand(x: Any, *sizes: Any) -> Any:
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    own = list(x.shape)
    if len(sizes) != len(own):
        raise RuntimeError(f"expand: a shape of {len(own)} dims must be given; got {list(sizes)}")
    wanted = [o if isinstance(s, int) and s == -1 else s for s, o in zip(sizes, own)]
    if wanted[0] != own[0] or wanted[x._at] != own[x._at]:
        raise RuntimeError(
            f"expand: the batch dim and the ragged dim keep their sizes; got {list(sizes)} for "
            f"{own}"
        )
    wanted[x._at] = x._elements.shape[x._at - 1]
    return ragged(x._rows, x._elements.expand(tuple(wanted[1:])), x._at)


# ---- parts ----


def _of_rows(x: NestedTensor, index: np.ndarray) -> NestedTensor:
    """Some of the rows, in some order."""
    x = x.packed()
    counts = np.asarray(x._rows.counts, np.int64)[index]
    rows = Rows.of_counts(counts)
    starts = np.repeat(np.asarray(x._rows.starts, np.int64)[index], counts)
    places = clew.from_numpy(starts + rows.positions().numpy())
    return ragged(rows, x._elements.index_select(x._at - 1, places), x._at)


def _row_range(x: NestedTensor, start: int, stop: int) -> NestedTensor:
    """Rows that follow one another: a view."""
    x = x.packed()
    first = x._rows.starts[start] if start < stop else 0
    rows = Rows.of_counts(x._rows.counts[start:stop])
    return ragged(rows, x._elements.narrow(x._at - 1, first, sum(rows.counts)), x._at)


def _within(x: NestedTensor, part: slice) -> NestedTensor:
    """The same part of each row: a view with gaps, unless it skips elements."""
    if part.step not in (None, 1):
        keys = (slice(None),) * (x._at - 1) + (part,)
        return _of_changed_rows(x, lambda row: row[keys], x._at)
    spans = [part.indices(n)[:2] for n in x._rows.counts]
    lengths = np.asarray([max(b - a, 0) for a, b in spans], np.int64)
    starts = np.asarray([s + a for s, (a, _) in zip(x._rows.starts, spans)], np.int64)
    offsets = np.append(starts, x._elements.shape[x._at - 1])
    return ragged(Rows(clew.from_numpy(offsets), clew.from_numpy(lengths)), x._elements, x._at)


def select(x: Any, dim: int, index: Any) -> Any:
    d = dim_of("select", x, dim)
    size, i = len(x._rows.counts), int(index)
    if d == 0:
        if not -size <= i < size:
            raise IndexError(f"select: index {i} is out of range for {size} rows")
        start, count = x._rows.starts[i], x._rows.counts[i]
        return x._elements.narrow(x._at - 1, start, count)
    if d == x._at:
        short = min(x._rows.counts, default=0)
        if not -short <= i < short:
            raise IndexError(
                f"select: index {i} is out of range for the shortest row, of {short} elements"
            )
        places = [s + (i if i >= 0 else n + i) for s, n in zip(x._rows.starts, x._rows.counts)]
        return x._elements.index_select(d - 1, clew.tensor(places, dtype=_C.int64)).movedim(
            d - 1, 0
        )
    return ragged(x._rows, x._elements.select(d - 1, i), x._at - (d < x._at))


def narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    d = dim_of("narrow", x, dim)
    a, n = int(start), int(length)
    size = len(x._rows.counts) if d == 0 else min(x._rows.counts, default=0)
    if d in (0, x._at):
        a = a + size if a < 0 else a
        if a < 0 or n < 0 or a + n > size:
            raise RuntimeError(
                f"narrow: start ({start}) + length ({length}) exceeds dim {d}, whose smallest "
                f"size is {size}"
            )
        return _row_range(x, a, a + n) if d == 0 else _within(x, slice(a, a + n))
    return ragged(x._rows, x._elements.narrow(d - 1, a, n), x._at)


def index_select(x: Any, dim: int, index: Tensor) -> Any:
    d = dim_of("index_select", x, dim)
    if d == 0:
        return _of_rows(x, _row_numbers(x, index))
    if d == x._at:
        short = min(x._rows.counts, default=0)
        places = index.numpy()
        if places.ndim != 1 or (places.size and not 0 <= places.min() <= places.max() < short):
            raise IndexError(
                f"index_select: index must be a vector in [0, {short - 1}], the places of the "
                f"shortest row; got {places.tolist()}"
            )
        rows = [row.index_select(d - 1, index) for row in x.row_values()]
        return clew.stack(rows) if rows else NotImplemented
    return ragged(x._rows, x._elements.index_select(d - 1, index), x._at)


def _row_numbers(x: NestedTensor, given: Any) -> np.ndarray:
    """The rows that a vector of numbers or a mask names."""
    size = len(x._rows.counts)
    found = np.asarray(given.numpy() if isinstance(given, Tensor) else given)
    if found.dtype == bool:
        if found.shape != (size,):
            raise IndexError(f"a mask of rows must have {size} elements; got {found.size}")
        return np.flatnonzero(found)
    if found.size and not np.issubdtype(found.dtype, np.integer):
        raise IndexError(f"numbers of rows must be integers; got {found.dtype}")
    found = found.astype(np.int64)
    if found.ndim != 1 or (found.size and (found.min() < -size or found.max() >= size)):
        raise IndexError(
            f"numbers of rows must be a vector in [{-size}, {size - 1}]; got {found.tolist()}"
        )
    return found


def getitem(x: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    n = len(x._sizes())
    if any(k is Ellipsis for k in keys):
        at = [k is Ellipsis for k in keys].index(True)
        given = sum(k is not None for k in keys) - 1
        keys = (*keys[:at], *[slice(None)] * (n - given), *keys[at + 1 :])
    if sum(k is not None for k in keys) > n:
        raise IndexError(f"too many indices for a tensor of {n} dims")
    d = 0
    for i, k in enumerate(keys):
        if k is None:
            x, d = unsqueeze(x, d), d + 1
        elif isinstance(k, slice):
            x, d = (x if k == slice(None) else _sliced(x, d, k)), d + 1
        elif isinstance(k, int) and not isinstance(k, bool):
            chosen = select(x, d, k)
            if not is_ragged(chosen):  # a row, or an element of each
                return chosen[(slice(None),) * d + tuple(keys[i + 1 :])]
            x = chosen
        elif isinstance(k, list) or (type(k) is Tensor and k.dim() == 1):
            if d:
                return NotImplemented
            x, d = _of_rows(x, _row_numbers(x, k)), d + 1
        else:
            return NotImplemented
    return x


def _sliced(x: NestedTensor, d: int, part: slice) -> NestedTensor:
    if d == x._at:
        return _within(x, part)
    if d:
        keys = (slice(None),) * (d - 1) + (part,)
        return ragged(x._rows, x._elements[keys], x._at)
    start, stop, step = part.indices(len(x._rows.counts))
    if step == 1:
        return _row_range(x, start, max(start, stop))
    return _of_rows(x, np.arange(start, stop, step))


def split(x: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    d, size = dim_of("split", x, dim), split_size_or_sections
    if d == x._at:
        _refuse_ragged("split", x)
    if d:
        return tuple(ragged(x._rows, v, x._at) for v in x._elements.split(size, d - 1))
    pieces = clew.arange(len(x._rows.counts)).split(size)
    ends = np.cumsum([p.shape[0] for p in pieces]).tolist()
    return tuple(_row_range(x, e - p.shape[0], e) for p, e in zip(pieces, ends))


def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    d = dim_of("chunk", x, dim)
    if d == x._at:
        _refuse_ragged("chunk", x)
    if d:
        return tuple(ragged(x._rows, v, x._at) for v in x._elements.chunk(chunks, d - 1))
    sizes = [int(p.shape[0]) for p in clew.arange(len(x._rows.counts)).chunk(chunks)]
    return split(x, sizes, 0)


def tensor_split(x: Any, indices_or_sections: Any, dim: int = 0) -> Any:
    d = dim_of("tensor_split", x, dim)
    if d == x._at:
        _refuse_ragged("tensor_split", x)
    if not d:
        return NotImplemented
    pieces = x._elements.tensor_split(indices_or_sections, d - 1)
    return tuple(ragged(x._rows, v, x._at) for v in pieces)


# ---- joins ----


def cat(tensors: Any, dim: int = 0) -> Any:
    if not all(map(is_ragged, tensors)):
        return NotImplemented
    first = tensors[0]
    d = dim_of("cat", first, dim)
    if any(x._at != first._at or len(x._sizes()) != len(first._sizes()) for x in tensors):
        raise RuntimeError("cat: ragged tensors must have the same dims, the same one ragged")
    xs = [x.packed() for x in tensors]
    values = [x._elements for x in xs]
    if d not in (0, first._at):
        need_same_rows("cat", xs)
        return ragged(xs[0]._rows, clew.cat(values, d - 1), first._at)
    if d == 0:
        counts = [n for x in xs for n in x._rows.counts]
        return ragged(Rows.of_counts(counts), clew.cat(values, first._at - 1), first._at)
    if len({len(x._rows.counts) for x in xs}) > 1:
        raise RuntimeError("cat: ragged tensors must have the same number of rows")
    parts = [row for rows in zip(*(x.row_values() for x in xs)) for row in rows]
    counts = np.sum([x._rows.counts for x in xs], 0)
    joined = clew.cat(parts, d - 1) if parts else values[0]
    return ragged(Rows.of_counts(counts), joined, d)


def stack(tensors: Any, dim: int = 0) -> Any:
    if not all(map(is_ragged, tensors)):
        return NotImplemented
    first = tensors[0]
    n = len(first._sizes())
    if not -n - 1 <= dim <= n:
        raise IndexError(f"stack: dim must be in [{-n - 1}, {n}]; got {dim}")
    d = dim % (n + 1)
    if d == 0:
        _refuse_batch("stack")
    need_same_rows("stack", tensors)
    xs = [x.packed() for x in tensors]
    return ragged(
        xs[0]._rows, clew.stack([x._elements for x in xs], d - 1), first._at + (d <= first._at)
    )


RULES: dict[str, Any] = {
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), transpose),
    "permute": permute,
    **dict.fromkeys(("movedim", "moveaxis"), movedim),
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "flatten": flatten,
    "unflatten": unflatten,
    "view": _view("view"),
    "reshape": _view("reshape"),
    "view_as": lambda x, other: x.view(other.shape) if is_ragged(x) else NotImplemented,
    "reshape_as": lambda x, other: x.reshape(other.shape) if is_ragged(x) else NotImplemented,
    "expand": expand,
    "expand_as": lambda x, other: expand(x, other.shape) if is_ragged(x) else NotImplemented,
    "select": select,
    "narrow": narrow,
    "index_select": index_select,
    "__getitem__": getitem,
    "split": split,
    "split_with_sizes": split,
    "chunk": chunk,
    "tensor_split": tensor_split,
    **dict.fromkeys(("cat", "concat", "concatenate"), cat),
    "stack": stack,
}
