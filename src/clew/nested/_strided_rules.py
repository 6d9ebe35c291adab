"""What operations do with nested tensors whose rows differ in any of their sizes: row by row, or on
the elements of all rows where each is taken by itself.
"""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import _C
from clew._C import Tensor
from clew._tensor.structured import Structured
from clew.nested import _pointwise
from clew.nested._pointwise import extreme, function
from clew.nested._strided import NestedRows, _made, is_nested_rows, of_rows, row_dim

__all__ = ["RULES"]


def _each_row(name: str, call: Any, *given: Any) -> list[Any]:
    """What a function makes of the rows of nested tensors; others are the same for all rows."""
    found: Any = [x for x in given if isinstance(x, Structured)]
    if not all(map(is_nested_rows, found)) or len(set(map(len, found))) > 1:
        raise RuntimeError(
            f"{name}: nested tensors must be of one layout and have the same number of rows"
        )
    columns = [x.row_values() if is_nested_rows(x) else [x] * len(found[0]) for x in given]
    return [call(*row) for row in zip(*columns)]


def _joined(rows: list[Any]) -> Any:
    """Of what was made of each row, of each field where there are several."""
    if not isinstance(rows[0], tuple):
        return of_rows(rows)
    fields = [of_rows(list(column)) for column in zip(*rows)]
    kind: Any = type(rows[0])
    return kind._make(fields) if hasattr(kind, "_make") else kind(fields)


def _need_dense(*others: Any) -> bool:
    return not any(isinstance(x, Structured) for x in others)


# ---- elements by themselves ----


def _on_elements(
    name: str, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], writes: bool = False
) -> Any:
    given = [*args, *kwargs.values()]
    found: list[Any] = [a for a in given if isinstance(a, Structured)]
    if not all(map(is_nested_rows, found)):
        return NotImplemented
    first: Any = found[0]
    if any(x._shapes != first._shapes for x in found[1:]):
        shapes = [_broadcast(name, rows) for rows in _rows_of_all(name, found)]
        if writes and tuple(shapes) != first._shapes:
            raise RuntimeError(f"{name}: the result must have the rows' sizes, {shapes[:4]}")
        grown = {id(x): _grown(x, shapes) for x in found}
        args = tuple(grown.get(id(a), a) for a in args)
        kwargs = {k: grown.get(id(v), v) for k, v in kwargs.items()}
        return _on_elements(name, call, args, kwargs, writes)
    spread = {
        id(a): _spread(name, a, first)
        for a in given
        if isinstance(a, Tensor) and not is_nested_rows(a) and a.dim()
    }

    nested = set(map(id, found))

    def part(a: Any) -> Any:
        return a._elements if id(a) in nested else spread.get(id(a), a)

    made = call(*map(part, args), **{k: part(v) for k, v in kwargs.items()})
    return first if writes else first._with(made)


def _rows_of_all(name: str, found: list[Any]) -> list[Any]:
    """The shapes of each row in all of the tensors."""
    if len(set(map(len, found))) > 1 or len({x.dim() for x in found}) > 1:
        raise RuntimeError(
            f"{name}: nested tensors must have the same number of rows and of dims; got "
            f"{[list(x._shapes)[:4] for x in found]}"
        )
    return list(zip(*(x._shapes for x in found)))


def _broadcast(name: str, shapes: Any) -> tuple[int, ...]:
    try:
        return tuple(clew.broadcast_shapes(*shapes))
    except RuntimeError:
        raise RuntimeError(
            f"{name}: nested tensors must have rows of the same sizes, or of size 1; got rows of "
            f"{[list(s) for s in shapes]}"
        ) from None


def _grown(x: NestedRows, shapes: list[tuple[int, ...]]) -> NestedRows:
    """The rows broadcast to shapes."""
    if x._shapes == tuple(shapes):
        return x
    return of_rows([r.expand(s) for r, s in zip(x.row_values(), shapes)])


def _spread(name: str, dense: Tensor, x: NestedRows) -> Tensor:
    """A dense tensor broadcast to each row, (its own part of it where it has the batch dim)."""
    n, size = len(x._sizes()), len(x._shapes)
    if dense.dim() > n or (dense.dim() == n and dense.shape[0] not in (1, size)):
        raise RuntimeError(
            f"{name}: a dense tensor must be broadcastable to each of {size} rows of {n - 1} dims; "
            f"got shape {list(dense.shape)}"
        )
    whole = dense.dim() == n
    parts = dense.expand(size, *dense.shape[1:]).unbind(0) if whole else [dense] * size
    return clew.cat([p.expand(s).reshape(-1) for p, s in zip(parts, x._shapes)])


def _rule(name: str, call: Any) -> Any:
    return lambda *args, **kwargs: _on_elements(name, call, args, kwargs)


def _writing(name: str) -> Any:
    call = getattr(Tensor, name)

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_nested_rows(x):
            raise RuntimeError(
                f"{name}: a nested tensor cannot be written into a dense one; make it dense with "
                ".to_padded_tensor(padding)"
            )
        return _on_elements(name, call, (x, *args), kwargs, writes=True)

    return rule


def _is_same_size(x: Any, y: Any) -> bool:
    return is_nested_rows(x) and is_nested_rows(y) and x._shapes == y._shapes


# ---- reductions, and what goes along a dim ----


def _reduction(name: str, several: bool) -> Any:
    fn = function(name)

    def rule(x: Any, dim: Any = None, keepdim: bool = False, **more: Any) -> Any:
        if isinstance(dim, Tensor):  # max of two
            return NotImplemented
        if dim is None or dim in ((), []):
            return fn(x._elements, **more)
        if isinstance(dim, (tuple, list)):
            if not several:
                return NotImplemented
            over: Any = tuple(row_dim(name, x, d) - 1 for d in dim)
        else:
            over = row_dim(name, x, dim) - 1
        return _joined(_each_row(name, lambda r: fn(r, over, keepdim=keepdim, **more), x))

    return rule


def _vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    def call(t: Tensor, dims: Any, keep: bool) -> Tensor:
        return clew.linalg.vector_norm(t, ord, dims, keep, dtype=dtype)

    if dim is None:
        return call(x._elements, None, False)
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    over = tuple(row_dim("norm", x, d) - 1 for d in given)
    return of_rows(_each_row("norm", lambda r: call(r, over, keepdim), x))


def _norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return _vector_norm(x, 2 if p in (None, "fro") else p, dim, keepdim, dtype=dtype)


def _along(name: str) -> Any:
    fn = function(name)

    def rule(x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        if dim is None or not is_nested_rows(x) or not _need_dense(*args, *kwargs.values()):
            return NotImplemented
        d = row_dim(name, x, dim) - 1
        return of_rows(_each_row(name, lambda r: fn(r, d, *args, **kwargs), x))

    return rule


# ---- products ----


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    if not is_nested_rows(x) or not _need_dense(weight, bias):
        return NotImplemented
    width = {s[-1] for s in x._shapes} if x._shapes[0] else set()
    if width != {weight.shape[-1]}:
        raise RuntimeError(
            f"linear: the rows must all have {weight.shape[-1]} elements in their last dim; got "
            f"{sorted(width)[:8]}"
        )
    # One product for all rows.
    made = clew.nn.functional.linear(_in_one(x, weight.shape[-1:]), weight, bias)
    out = made.shape[-1]
    return _rows_like(made, [(*s[:-1], out) for s in x._shapes])


def _in_one(x: NestedRows, last: Any) -> Tensor:
    """What all rows hold, as one tensor whose last dims are those of the rows, (places, *last)."""
    places = sum(math.prod(s[: len(s) - len(last)]) for s in x._shapes)
    return x._elements.view(places, *last)


def _rows_like(values: Tensor, shapes: Any) -> NestedRows:
    return _made(tuple(shapes), values.reshape(-1))


def _matmul(x: Any, y: Any) -> Any:
    if is_nested_rows(x) and is_nested_rows(y):
        return of_rows(_each_row("matmul", clew.matmul, x, y))
    nested, dense = (x, y) if is_nested_rows(x) else (y, x)
    if not is_nested_rows(nested) or isinstance(dense, Structured):
        return NotImplemented
    if dense.dim() == len(nested._sizes()):  # a matrix, or batch of them, for each row
        if dense.shape[0] != len(nested._shapes):
            raise RuntimeError(
                f"matmul: there must be {len(nested._shapes)} dense matrices, one for each row; "
                f"got shape {list(dense.shape)}"
            )
        pairs = zip(nested.row_values(), dense.unbind(0))
        return of_rows([r @ d if nested is x else d @ r for r, d in pairs])
    if dense.dim() > 2:
        return NotImplemented
    return of_rows(_each_row("matmul", clew.matmul, x, y))


def _bmm(x: Any, y: Any) -> Any:
    sizes = [len(t._sizes()) if is_nested_rows(t) else t.dim() for t in (x, y)]
    if sizes != [3, 3]:
        raise RuntimeError(f"bmm: both must have three dims; got {sizes}")
    return _matmul(x, y)


def _embedding(table: Any, indices: Any, *args: Any) -> Any:
    if not is_nested_rows(indices) or isinstance(table, Structured):
        return NotImplemented
    made = _C.ops._embedding(table, indices._elements, *args)
    return _rows_like(made, [(*s, table.shape[1]) for s in indices._shapes])


def _normed(name: str) -> Any:
    fn = function(name)

    def rule(x: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_nested_rows(x) or not _need_dense(*args, *kwargs.values()):
            return NotImplemented
        given = normalized_shape
        shape = (given,) if isinstance(given, int) else tuple(given)
        if any(s[len(s) - len(shape) :] != shape for s in x._shapes):
            raise RuntimeError(
                f"{name}: the rows must all end with the sizes {list(shape)}; got "
                f"{[list(s) for s in x._shapes][:4]}"
            )
        return x._with(fn(_in_one(x, shape), shape, *args, **kwargs).reshape(-1))

    return rule


def _distance(name: str) -> Any:
    """Losses between the elements of two tensors."""
    fn = getattr(_C.ops, name)

    def rule(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        if not (is_nested_rows(x) and is_nested_rows(y) and _need_dense(*args)):
            return NotImplemented
        if x._shapes != y._shapes:
            raise RuntimeError(f"{name[1:]}: nested tensors must have rows of the same sizes")
        made = fn(x._elements, y._elements, *args, **kwargs)
        return x._with(made) if made.dim() else made

    return rule


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, *args: Any, **kwargs: Any
) -> Any:
    name = "scaled_dot_product_attention"
    if not all(map(is_nested_rows, (query, key, value))):
        raise RuntimeError(
            f"{name}: query, key and value must all be nested tensors of one layout, or none of "
            "them"
        )
    if attn_mask is not None:
        return NotImplemented
    fn = clew.nn.functional.scaled_dot_product_attention

    def call(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (t.unsqueeze(0) for t in (q, k, v))
        return fn(q, k, v, None, *args, **kwargs).squeeze(0)

    return of_rows(_each_row(name, call, query, key, value))


# ---- shapes ----


def _unbind(x: Any, dim: int = 0) -> Any:
    if row_dim("unbind", x, dim, batch=True):
        raise RuntimeError(f"unbind: dim must be 0, that of the rows of a nested tensor; got {dim}")
    return tuple(x.row_values())


def _transpose(x: Any, dim0: int, dim1: int) -> Any:
    a, b = row_dim("transpose", x, dim0) - 1, row_dim("transpose", x, dim1) - 1
    return of_rows(_each_row("transpose", lambda r: r.transpose(a, b), x))


def _permute(x: Any, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [row_dim("permute", x, d, batch=True) for d in given]
    if not order or order[0] != 0:
        raise RuntimeError("permute: the batch dim, 0, of a nested tensor stays where it is")
    return of_rows([r.permute([d - 1 for d in order[1:]]) for r in x.row_values()])


def _view(name: str) -> Any:
    def rule(x: Any, *sizes: Any) -> Any:
        given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        if not given or not all(isinstance(n, int) for n in given):
            return NotImplemented
        if given[0] not in (-1, len(x._shapes)):
            raise RuntimeError(
                f"{name}: a shape must begin with the number of rows, {len(x._shapes)}; got "
                f"{list(given)}"
            )
        own = len(x._sizes())

        def shape(row: Tensor) -> Any:
            # -1 keeps a row's size where its dims still stand, otherwise it is worked out.
            kept = [row.shape[d] if n == -1 and d < own - 1 else n for d, n in enumerate(given[1:])]
            fits = -1 in kept or math.prod(kept) == row.numel()
            return row.reshape(kept if fits else given[1:])

        return of_rows([shape(r) for r in x.row_values()])

    return rule


def _unsqueeze(x: Any, dim: int) -> Any:
    n = len(x._sizes())
    d = dim % (n + 1) if -n - 1 <= dim <= n else dim
    if not 0 < d <= n:
        raise IndexError(f"unsqueeze: dim must be in [1, {n}] for a nested tensor; got {dim}")
    return of_rows([r.unsqueeze(d - 1) for r in x.row_values()])


def _squeeze(x: Any, dim: Any = None) -> Any:
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    if dim is None:
        given = tuple(range(1, len(x._sizes())))
    places = tuple(row_dim("squeeze", x, d) - 1 for d in given)
    gone = tuple(d for d in places if all(s[d] == 1 for s in x._shapes))
    return of_rows([r.squeeze(gone) for r in x.row_values()]) if gone else x


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    a, b = row_dim("flatten", x, start_dim), row_dim("flatten", x, end_dim)
    return of_rows([r.flatten(a - 1, b - 1) for r in x.row_values()])


def _pieces(name: str) -> Any:
    """chunk, split and split_with_sizes of the rows' dims."""
    call = getattr(Tensor, name)

    def rule(x: Any, how: Any, dim: int = 0) -> Any:
        d = row_dim(name, x, dim)
        rows = [call(r, how, d - 1) for r in x.row_values()]
        if len({len(r) for r in rows}) > 1:
            raise RuntimeError(f"{name}: the rows must all give the same number of pieces")
        return tuple(of_rows(list(piece)) for piece in zip(*rows))

    return rule


def _narrow(x: Any, dim: int, start: int, length: int) -> Any:
    d = row_dim("narrow", x, dim, batch=True)
    if d:
        return of_rows([r.narrow(d - 1, start, length) for r in x.row_values()])
    size = len(x._shapes)
    if start < 0 or length < 1 or start + length > size:
        raise RuntimeError(
            f"narrow: start ({start}) and length ({length}) must name some of {size} rows"
        )
    return of_rows(x.row_values()[start : start + length])


def _select(x: Any, dim: int, index: int) -> Any:
    d = row_dim("select", x, dim, batch=True)
    if d:
        return of_rows([r.select(d - 1, index) for r in x.row_values()])
    size = len(x._shapes)
    if not -size <= index < size:
        raise IndexError(f"select: index {index} is out of range for {size} rows")
    return x.row_values()[index]


def _getitem(x: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    if keys and keys[0] is Ellipsis:
        named = sum(k is not None and k is not Ellipsis for k in keys)
        keys = (slice(None), *keys) if named < len(x._sizes()) else keys[1:]
    first, *rest = keys or (slice(None),)
    if isinstance(first, (list, Tensor)):
        none = isinstance(first, list) and not first
        names = clew.zeros(0, dtype=_C.int64) if none else clew.as_tensor(first)
        picked = clew.arange(len(x._shapes))[names]
        if picked.dim() > 1:
            return NotImplemented
        first = picked.tolist()
    if isinstance(first, bool) or not isinstance(first, (int, slice, list)):
        return NotImplemented
    if isinstance(first, int):
        row = _select(x, 0, first)
        return row[tuple(rest)] if rest else row
    all_rows = x.row_values()
    rows = [all_rows[i] for i in first] if isinstance(first, list) else all_rows[first]
    if not rows:
        raise IndexError("a nested tensor must have at least one row")
    return of_rows([r[tuple(rest)] if rest else r for r in rows])


def _cat(tensors: Any, dim: int = 0) -> Any:
    if not all(map(is_nested_rows, tensors)):
        return NotImplemented
    if len({len(x._sizes()) for x in tensors}) > 1:
        raise RuntimeError("cat: nested tensors must have the same number of dims")
    d = row_dim("cat", tensors[0], dim, batch=True)
    if d == 0:
        return of_rows([r for x in tensors for r in x.row_values()])
    return of_rows(_each_row("cat", lambda *rows: clew.cat(rows, d - 1), *tensors))


def padded(x: NestedRows, padding: float, output_size: Any = None) -> Tensor:
    """The rows at the size of the largest, (rows, ...)."""
    sizes = x._sizes()
    wanted = sizes if output_size is None else tuple(int(n) for n in output_size)
    if len(wanted) != len(sizes) or any(w < n for w, n in zip(wanted, sizes)):
        raise RuntimeError(
            f"to_padded_tensor: output_size must have {len(sizes)} sizes of at least "
            f"{list(sizes)}; got {list(wanted)}"
        )

    def grown(row: Tensor) -> Tensor:
        missing = [n for w, s in zip(wanted[:0:-1], row.shape[::-1]) for n in (0, w - s)]
        return clew.nn.functional.pad(row, missing, value=padding) if any(missing) else row

    made = clew.stack([grown(r) for r in x.row_values()])
    more = wanted[0] - sizes[0]
    if more:
        made = clew.cat([made, made.new_full((more, *wanted[1:]), padding)])
    return made


RULES: dict[str, Any] = {
    **{
        n: _rule(n, function(n))
        for n in (*_pointwise._NAMES, *_pointwise._LIKE)
        if function(n) is not None
    },
    **{n: _rule(n, call) for n, call in _pointwise._OPERATORS.items()},
    **{
        n + "_": _writing(n + "_")
        for n in (*_pointwise._NAMES, *_pointwise._FILLING)
        if hasattr(Tensor, n + "_")
    },
    **{n: _writing(m) for n, m in _pointwise._WRITING.items()},
    **{n: _pointwise._cast(n) for n in _pointwise._CASTS},
    **{n: _reduction(n, True) for n in "sum mean amax amin logsumexp std var all any".split()},
    **{n: _reduction(n, False) for n in "prod argmax argmin median".split()},
    **{n: _along(n) for n in "softmax log_softmax softmin cumsum cumprod logcumsumexp".split()},
    **{n: _pieces(n) for n in ("chunk", "split", "split_with_sizes")},
    "norm": _norm,
    "vector_norm": _vector_norm,
    "max": extreme("max", "maximum", _reduction("max", False), _on_elements),
    "min": extreme("min", "minimum", _reduction("min", False), _on_elements),
    "to": lambda x, *args, **kwargs: x.to(*args, **kwargs),
    "type_as": lambda x, other: x.to(other.dtype),
    "contiguous": lambda x, **kwargs: x,
    "detach_": _pointwise.detach_,
    "is_same_size": _is_same_size,
    "size": lambda x, dim=None: x.size(dim),
    "numel": lambda x: x.numel(),
    "nelement": lambda x: x.numel(),
    **{n: _distance(n) for n in ("_mse_loss", "_smooth_l1_loss", "_huber_loss")},
    **{n: _distance(n) for n in ("_binary_cross_entropy", "_binary_cross_entropy_with_logits")},
    "_distance": lambda *args: _on_elements("loss", _C.ops._distance, args, {}),
    "linear": _linear,
    "matmul": _matmul,
    "__rmatmul__": lambda x, y: _matmul(y, x),
    "bmm": _bmm,
    "_embedding": _embedding,
    "layer_norm": _normed("layer_norm"),
    "rms_norm": _normed("rms_norm"),
    "scaled_dot_product_attention": _attention,
    "unbind": _unbind,
    "to_padded_tensor": padded,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    "permute": _permute,
    "view": _view("view"),
    "reshape": _view("reshape"),
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "flatten": _flatten,
    "view_as": lambda x, other: x if _is_same_size(x, other) else NotImplemented,
    "narrow": _narrow,
    "select": _select,
    "__getitem__": _getitem,
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
}
NestedRows._rules = RULES
