"""Views, indexing, joining, sorting and what makes tensors, in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers

_LAST = 2**63 - 1


def rank(v: Value) -> int:
    """The number of dims."""
    return len(v.sizes)


@lowers("reshape", "ops.reshape", "ops.view", "view")
def _reshape(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    size = a.get("size", a.get("shape"))
    if size is None:
        raise OnnxExporterError("onnx.export: view() as another dtype")
    result: str = b.op("Reshape", b.name(x), b.vector(size), allowzero=int(_has_zero(size)))
    return result


def _has_zero(size: Any) -> bool:
    parts = size if isinstance(size, (tuple, list)) else (size,)
    return not any(type(n) is int and n == -1 for n in parts)


@lowers("ops.view_as", "ops.reshape_as")
def _view_as(b: Builder, a: Any) -> str:
    x, other = a.node.args[:2]
    result: str = b.op("Reshape", b.name(x), b.shape(b.name(other)), allowzero=1)
    return result


@lowers("flatten", "ravel")
def _flatten(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n = rank(x)
    if n == 0 or a.node.op == "ravel":
        return b.op("Reshape", b.name(x), b.ints(-1))
    start, end = a.get("start_dim", 0) % n, a.get("end_dim", -1) % n
    shape = b.shape(b.name(x))
    before = b.op("Slice", shape, b.ints(0), b.ints(start))
    after = b.op("Slice", shape, b.ints(end + 1), b.ints(_LAST))
    inner = b.op("ReduceProd", b.op("Slice", shape, b.ints(start), b.ints(end + 1)), keepdims=1)
    target = b.op("Concat", before, inner, after, axis=0)
    result: str = b.op("Reshape", b.name(x), target, allowzero=1)
    return result


@lowers("unflatten")
def _unflatten(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    d = a.dim % rank(x)
    shape = b.shape(b.name(x))
    before = b.op("Slice", shape, b.ints(0), b.ints(d))
    after = b.op("Slice", shape, b.ints(d + 1), b.ints(_LAST))
    target = b.op("Concat", before, b.vector(a.sizes), after, axis=0)
    result: str = b.op("Reshape", b.name(x), target)
    return result


def transposed(b: Builder, name: str, perm: list[int]) -> str:
    """Dims in another order."""
    result: str = name if perm == sorted(perm) else b.op("Transpose", name, perm=perm)
    return result


@lowers("transpose", "swapaxes", "swapdims")
def _transpose(b: Builder, a: Any) -> str:
    x, *dims = list(a.values())[:3]
    n = rank(x)
    if n == 0:
        return b.name(x)
    i, j = (d % n for d in dims)
    perm = list(range(n))
    perm[i], perm[j] = j, i
    return transposed(b, b.name(x), perm)


@lowers("t", "ops._mT", "ops._T", "adjoint", "ops._H", "ops._mH")
def _t(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n = rank(x)
    if n < 2:
        return b.name(x)
    perm = list(range(n))
    if a.node.op == "ops._T":
        perm = perm[::-1]
    else:
        perm[-1], perm[-2] = perm[-2], perm[-1]
    return transposed(b, b.name(x), perm)


@lowers("permute")
def _permute(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    return transposed(b, b.name(x), [d % rank(x) for d in a.dims])


@lowers("movedim", "moveaxis")
def _movedim(b: Builder, a: Any) -> str:
    x, source, target = list(a.values())[:3]
    n = rank(x)
    listed = lambda d: [k % n for k in (d if isinstance(d, (tuple, list)) else [d])]  # noqa: E731
    source, target = listed(source), listed(target)
    perm: list[Any] = [None] * n
    for s, t in zip(source, target):
        perm[t] = s
    rest = iter(k for k in range(n) if k not in source)
    return transposed(b, b.name(x), [next(rest) if p is None else p for p in perm])


@lowers("unsqueeze")
def _unsqueeze(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    result: str = b.op("Unsqueeze", b.name(x), b.ints(a.dim % (rank(x) + 1)))
    return result


@lowers("squeeze")
def _squeeze(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n, gone = rank(x), rank(x) - rank(a.out)
    dim = a.get("dim")
    if dim is None:
        dims = [d for d, size in enumerate(x.sizes) if size == 1]
    else:
        dims = [d % n for d in ([dim] if isinstance(dim, int) else dim)] if n else []
        dims = dims if len(dims) == gone else [d for d in dims if x.sizes[d] == 1]
    if len(dims) != gone:
        raise OnnxExporterError("onnx.export: squeeze() of a dim whose size varies")
    result: str = b.op("Squeeze", b.name(x), b.ints(*dims)) if dims else b.name(x)
    return result


@lowers("expand", "ops.expand", "broadcast_to", "ops.expand_as")
def _expand(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    if a.node.op.endswith("as"):
        return b.op("Expand", b.name(x), b.shape(b.name(a.node.args[1])))
    size = next(v for k, v in a.items() if k in ("size", "sizes", "shape"))
    size = [1 if type(n) is int and n == -1 else n for n in size]
    result: str = b.op("Expand", b.name(x), b.vector(size))
    return result


@lowers("ops.repeat", "tile")
def _repeat(b: Builder, a: Any) -> str:
    x, times = list(a.values())[:2]
    times = list(times) if isinstance(times, (tuple, list)) else [times]
    name = b.name(x)
    extra = len(times) - rank(x)
    if extra > 0:
        name = b.op("Unsqueeze", name, b.ints(*range(extra)))
    times = [1] * -extra + times
    result: str = b.op("Tile", name, b.vector(times))
    return result


@lowers("narrow")
def _narrow(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    start = b.vector(a.start)
    if type(a.start) is int and a.start < 0:
        size = b.op("Unsqueeze", b.dim_of(x, a.dim % rank(x)), b.ints(0))
        start = b.op("Add", start, size)
    end = b.op("Add", start, b.vector(a.length))
    result: str = b.op("Slice", b.name(x), start, end, b.ints(a.dim % rank(x)))
    return result


@lowers("select")
def _select(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    result: str = b.op("Gather", b.name(x), b.scalar(a.index, "int64"), axis=a.dim % rank(x))
    return result


@lowers("unbind")
def _unbind(b: Builder, a: Any) -> list[str]:
    x = a.node.args[0]
    d = a.get("dim", 0) % rank(x)
    return [
        b.op("Gather", b.name(x), b.const(k, np.int64), axis=d) for k in range(len(a.node.outputs))
    ]


@lowers("split", "chunk", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit")
def _split(b: Builder, a: Any) -> Any:
    x = a.node.args[0]
    op = a.node.op
    d = {"hsplit": 0 if rank(x) == 1 else 1, "vsplit": 0, "dsplit": 2}.get(op)
    d = a.get("dim", 0) % rank(x) if d is None else d
    lengths = [o.sizes[d] for o in a.node.outputs]
    name = b.name(x)
    if None not in lengths:
        names = b.op("Split", name, b.ints(*lengths), n=len(lengths), axis=d)
        return [names] if len(lengths) == 1 else names
    if op == "chunk":
        count = a.chunks
        size = b.dim_of(x, d)
        each = b.op("Div", b.op("Add", size, b.const(count - 1, np.int64)),
                    b.const(count, np.int64))  # fmt: skip
    elif op in ("split", "split_with_sizes") and isinstance(
        sizes := next(v for k, v in a.items() if k.startswith("split_size")), (tuple, list)
    ):
        return b.op("Split", name, b.vector(sizes), n=len(lengths), axis=d)
    elif op == "split":
        each = b.scalar(next(v for k, v in a.items() if k.startswith("split_size")), "int64")
    else:
        raise OnnxExporterError(f"onnx.export: {op}() into parts whose sizes vary")
    found = []
    for k in range(len(lengths)):
        start = b.op("Unsqueeze", b.op("Mul", each, b.const(k, np.int64)), b.ints(0))
        end = b.op("Unsqueeze", b.op("Mul", each, b.const(k + 1, np.int64)), b.ints(0))
        found.append(b.op("Slice", name, start, end, b.ints(d)))
    return found


@lowers("flip", "fliplr", "flipud")
def _flip(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    dims = {"fliplr": (1,), "flipud": (0,)}.get(a.node.op) or a.get("dims")
    dims = [d % rank(x) for d in ([dims] if isinstance(dims, int) else dims)]
    if not dims:
        return b.name(x)
    k = len(dims)
    result: str = b.op(
        "Slice", b.name(x), b.ints(*[-1] * k), b.ints(*[-_LAST] * k), b.ints(*dims),
        b.ints(*[-1] * k),
    )  # fmt: skip
    return result


@lowers("roll")
def _roll(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    as_list = lambda v: list(v) if isinstance(v, (tuple, list)) else [v]  # noqa: E731
    shifts, dims = as_list(a.shifts), a.get("dims")
    name = b.name(x)
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        flat = b.op("Reshape", name, b.ints(-1))
        return b.op("Reshape", _rolled(b, flat, shifts[0], 0), b.shape(name), allowzero=1)
    for s, d in zip(shifts, as_list(dims)):
        name = _rolled(b, name, s, d % rank(x))
    return name


def _rolled(b: Builder, name: str, shift: Any, d: int) -> str:
    size = b.op("Squeeze", b.op("Shape", name, start=d, end=d + 1), b.ints(0))
    line = b.op("Range", b.const(0, np.int64), size, b.const(1, np.int64))
    places = b.op("Mod", b.op("Sub", line, b.scalar(shift, "int64")), size)
    result: str = b.op("Gather", name, places, axis=d)
    return result


@lowers("ops.unfold", "Tensor.unfold")
def _windows(b: Builder, a: Any) -> str:
    """Windows along a dim, whose elements become the last dim."""
    x = a.node.args[0]
    d, size, step = a.dimension % max(rank(x), 1), a.get("size"), a.step
    if not rank(x) or isinstance(size, Value) or isinstance(step, Value):
        raise OnnxExporterError("onnx.export: unfold() of a number, or with a size that varies")
    stop = b.op("Sub", b.dim_of(x, d), b.const(size - 1, np.int64))
    starts = b.op("Range", b.const(0, np.int64), stop, b.const(step, np.int64))
    places = b.op("Add", b.op("Unsqueeze", starts, b.ints(1)), b.ints(*range(size)))
    windows = b.op("Gather", b.name(x), places, axis=d)
    order = [*range(d + 1), *range(d + 2, rank(x) + 1), d + 1]
    result: str = b.op("Transpose", windows, perm=order)
    return result


@lowers(
    "diagonal", "diag", "diag_embed", "diagflat", "as_strided", "ops._as_strided", "rot90",
)  # fmt: skip
def _fixed_places(b: Builder, a: Any) -> str:
    """A view of fixed sizes: the places of its elements are constants."""
    x = a.node.args[0]
    if None in x.sizes and a.node.op in ("diagonal", "diag", "diag_embed", "diagflat"):
        return _diagonal(b, a, x)
    if None in x.sizes or None in a.out.sizes:
        raise OnnxExporterError(f"onnx.export: {a.node.op}() of a tensor whose sizes vary")
    from clew.export._names import function_of

    count = int(np.prod(x.sizes))
    line = clew.arange(count).reshape(x.sizes)
    function = function_of(a.node.op)
    assert function is not None
    if a.node.op in ("diag_embed", "diagflat") or (a.node.op == "diag" and rank(x) == 1):
        made = function(line + 1, *a.node.args[1:], **a.node.kwargs).numpy() - 1
        padded = b.op("Concat", b.op("Reshape", b.name(x), b.ints(-1)), b.op(
            "Reshape", b.scalar(0, x.dtype), b.ints(1)), axis=0)  # fmt: skip
        return b.op("Gather", padded, b.const(np.where(made < 0, count, made)), axis=0)
    places = function(line, *a.node.args[1:], **a.node.kwargs).numpy()
    flat = b.op("Reshape", b.name(x), b.ints(-1))
    result: str = b.op("Gather", flat, b.const(places.astype(np.int64)), axis=0)
    return result


def _diagonal(b: Builder, a: Any, x: Value) -> str:
    """Diagonals, read or made, of sizes that vary."""
    op, n, name = a.node.op, rank(x), b.name(x)
    shift = a.get("offset", a.get("diagonal", 0)) or 0
    zero, one = b.const(0, np.int64), b.const(1, np.int64)
    if op == "diagonal" or (op == "diag" and n == 2):
        d1, d2 = a.get("dim1", 0) % n, a.get("dim2", 1) % n
        rest = [d for d in range(n) if d not in (d1, d2)]
        name = b.op("Transpose", name, perm=[*rest, d1, d2])
        rows = b.op("Sub", b.dim_of(x, d1), b.const(max(-shift, 0), np.int64))
        columns = b.dim_of(x, d2)
        count = b.op("Min", rows, b.op("Sub", columns, b.const(max(shift, 0), np.int64)))
        line = b.op("Range", zero, b.op("Max", count, zero), one)
        places = b.op("Mul", line, b.op("Add", columns, one))
        start = b.op("Mul", b.const(max(-shift, 0), np.int64), columns)
        places = b.op("Add", places, b.op("Add", start, b.const(max(shift, 0), np.int64)))
        flat = b.op("Reshape", name, b.ints(*[0] * (n - 2), -1))
        return str(b.op("Gather", flat, places, axis=n - 2))
    if op == "diagflat":
        name, n = b.op("Reshape", name, b.ints(-1)), 1
    into = a.get("dim1", -2) % (n + 1), a.get("dim2", -1) % (n + 1)
    if op == "diag_embed" and into != (n - 1, n):
        raise OnnxExporterError("onnx.export: diag_embed() of varying sizes into other dims")
    last = b.op("Shape", name, start=n - 1)
    size = b.op("Add", b.op("Squeeze", last, b.ints(0)), b.const(abs(shift), np.int64))
    line = b.op("Range", zero, size, one)
    down = b.op("Unsqueeze", line, b.ints(1))
    on = b.op("Equal", b.op("Sub", line, b.const(shift, np.int64)), down)
    wide = b.op("Unsqueeze", name, b.ints(n - 1))
    pads = [*[0] * n, max(shift, 0), *[0] * n, max(-shift, 0)]
    padded = b.op("Pad", wide, b.ints(*pads))
    return str(b.op("Where", on, padded, b.scalar(0, x.dtype)))


# ---- indexing ----


@lowers("ops._slice")
def _slice(b: Builder, a: Any) -> str:
    x, dim, start, end, step = (*a.node.args, 1)[:5]
    d = dim % rank(x)
    last = _LAST if end is None else end
    result: str = b.op(
        "Slice", b.name(x), b.vector([0 if start is None else start]), b.vector([last]), b.ints(d),
        b.vector([step]),
    )  # fmt: skip
    return result


@lowers("getitem")
def _getitem(b: Builder, a: Any) -> str:
    x, index = a.node.args
    items = list(index) if isinstance(index, tuple) else [index]
    return indexed(b, b.name(x), rank(x), items)


def indexed(b: Builder, name: str, n: int, items: list[Any]) -> str:
    """``x[items]``."""
    items = [b.ints(*i) if isinstance(i, list) and all(type(k) is int for k in i) else i
             for i in items]  # fmt: skip
    tensors = lambda i: isinstance(i, Value) and i.kind == "tensor"  # noqa: E731

    def width(i: Any) -> int:
        if i is None or i is Ellipsis:
            return 0
        return max(rank(i), 0) if tensors(i) and i.dtype in (clew.bool, clew.uint8) else 1

    used = sum(map(width, items))
    if Ellipsis in [i for i in items if not isinstance(i, Value)]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items[at : at + 1] = [slice(None)] * (n - used)
    else:
        items += [slice(None)] * (n - used)
    starts, ends, axes, steps, picks = [], [], [], [], []
    layout: list[Any] = []  # of the dims that are left: None for new ones, tensors, "kept"
    d = 0
    for i in items:
        if i is None:
            layout.append(None)
        elif isinstance(i, slice):
            step = 1 if i.step is None else i.step
            if not (i.start in (None, 0) and i.stop is None and step == 1) or isinstance(
                i.start, Value
            ):
                starts.append(0 if i.start is None else i.start)
                ends.append(_LAST if i.stop is None else i.stop)
                axes.append(d)
                steps.append(step)
            layout.append("kept")
            d += 1
        elif isinstance(i, str) or (tensors(i) and not (i.dtype == clew.bool and not rank(i))):
            layout.append(i)
            d += width(i) if not isinstance(i, str) else 1
        elif type(i) is bool or tensors(i) or (isinstance(i, Value) and i.kind == "bool"):
            raise OnnxExporterError("onnx.export: indexing with a single bool")
        else:
            picks.append((d, i))
            d += 1
    if axes:
        name = b.op("Slice", name, b.vector(starts), b.vector(ends), b.ints(*axes),
                    b.vector(steps))  # fmt: skip
    for at, i in reversed(picks):
        name = b.op("Gather", name, b.scalar(i, "int64"), axis=at)
    new = [k for k, i in enumerate(layout) if i is None]
    advanced = any(i is not None and not (isinstance(i, str) and i == "kept") for i in layout)
    if new:
        axes_new = new
        if advanced:  # a mask takes several dims of the layout
            axes_new, at = [], 0
            for i in layout:
                if i is None:
                    axes_new.append(at)
                at += 1 if i is None or isinstance(i, str) else width(i)
        name = b.op("Unsqueeze", name, b.ints(*axes_new))
    return _advanced(b, name, layout, width) if advanced else name


def _advanced(b: Builder, name: str, layout: list[Any], width: Any) -> str:
    """Indexing with tensors."""
    at = 0
    places: list[tuple[int, str, int]] = []  # dim, indices, their rank
    for i in layout:
        if i is None or (isinstance(i, str) and i == "kept"):
            at += 1
        elif isinstance(i, str):
            places.append((at, i, 1))
            at += 1
        elif i.dtype in (clew.bool, clew.uint8):
            found = b.op("NonZero", b.of(i, clew.bool))
            for k in range(rank(i)):
                places.append((at, b.op("Gather", found, b.const(k, np.int64), axis=0), 1))
                at += 1
        else:
            places.append((at, b.of(i, clew.int64), rank(i)))
            at += 1
    if len(places) == 1:
        result: str = b.op("Gather", name, places[0][1], axis=places[0][0])
        return result
    dims = [p[0] for p in places]
    rest = [d for d in range(at) if d not in dims]
    moved = transposed(b, name, dims + rest)
    wide = max(p[2] for p in places)
    total = places[0][1]
    for _, indices, _ in places[1:]:
        total = b.op("Add", total, indices)
    shape = b.shape(total)
    columns = [
        b.op("Unsqueeze", b.op("Expand", indices, shape), b.ints(-1)) for _, indices, _ in places
    ]
    found = b.op("GatherND", moved, b.op("Concat", *columns, axis=-1))
    if dims == list(range(dims[0], dims[0] + len(dims))) and dims[0]:
        # Neighbouring index tensors leave their dims where they were.
        front = list(range(wide, wide + dims[0]))
        back = list(range(wide + dims[0], wide + len(rest)))
        found = transposed(b, found, front + list(range(wide)) + back)
    return str(found)


@lowers("index_select")
def _index_select(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    index = b.of(a.index, clew.int64)
    if not rank(x):
        return b.name(x)
    if not rank(a.index):
        index = b.op("Unsqueeze", index, b.ints(0))
    result: str = b.op("Gather", b.name(x), index, axis=a.dim % rank(x))
    return result


@lowers("gather", "take_along_dim")
def _gather(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    index = a.get("index", a.get("indices"))
    dim = a.get("dim")
    if not rank(x):
        return b.name(x)
    if a.node.op == "take_along_dim":
        if dim is None:
            return b.op("Gather", b.op("Reshape", b.name(x), b.ints(-1)),
                        b.op("Reshape", b.name(index), b.ints(-1)), axis=0)  # fmt: skip
        d = dim % rank(x)
        lead = lambda v: [b.ints(1) if k == d else b.op(  # noqa: E731
            "Shape", b.name(v), start=k, end=k + 1) for k in range(rank(x))]  # fmt: skip
        both = b.op("Max", *[b.op("Concat", *lead(v), axis=0) for v in (x, index)])
        name = b.op("Expand", b.name(x), both)
        index_name = b.op("Expand", b.of(index, clew.int64), both)
        return b.op("GatherElements", name, index_name, axis=d)
    result: str = b.op(
        "GatherElements", b.name(x), b.of(index, clew.int64), axis=dim % rank(x)
    )  # fmt: skip
    return result


@lowers("take")
def _take(b: Builder, a: Any) -> str:
    x, index = list(a.values())[:2]
    flat = b.op("Reshape", b.name(x), b.ints(-1))
    result: str = b.op("Gather", flat, b.of(index, clew.int64), axis=0)
    return result


@lowers("scatter", "scatter_add", "scatter_reduce")
def _scatter(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    dtype = x.dtype
    index = b.of(a.index, clew.int64)
    source = a.get("src", a.get("value"))
    shape = b.shape(index)
    if isinstance(source, Value) and source.kind == "tensor":
        name = b.of(source, dtype)
        if rank(source):
            zeros = b.ints(*[0] * rank(source))
            name = b.op("Slice", name, zeros, shape, b.ints(*range(rank(source))))
    else:
        name = b.op("Expand", b.scalar(source, dtype), shape)
    how = {None: "none", "sum": "add", "add": "add", "prod": "mul", "multiply": "mul",
           "amax": "max", "amin": "min"}  # fmt: skip
    mode = a.get("reduce")
    if a.node.op == "scatter_add":
        mode = "sum"
    if mode not in how:
        raise OnnxExporterError(f"onnx.export: scatter_reduce() with {mode!r}")
    if a.node.op == "scatter_reduce" and not a.get("include_self", True):
        return _without_self(b, a, index, name, how[mode])
    if not rank(x):
        parts = [b.op("Reshape", n, b.ints(1)) for n in (b.name(x), index, name)]
        written = b.op("ScatterElements", *parts, axis=0, reduction=how[mode])
        return str(b.op("Reshape", written, b.const(np.zeros(0, np.int64))))
    result: str = b.op(
        "ScatterElements", b.name(x), index, name, axis=a.dim % rank(x), reduction=how[mode]
    )
    return result


def _without_self(b: Builder, a: Any, index: str, source: str, how: str) -> str:
    """Elements that are written first become what changes nothing, then the rest is the same."""
    x, d = a.input, a.dim % max(rank(a.input), 1)
    if not rank(x) or not x.dtype.is_floating_point or how == "none":
        raise OnnxExporterError("onnx.export: scatter_reduce() of integers with include_self=False")
    start = {"add": 0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}[how]
    neutral = b.op("Expand", b.scalar(start, x.dtype), b.shape(index))
    cleared = b.op("ScatterElements", b.name(x), index, neutral, axis=d)
    return str(b.op("ScatterElements", cleared, index, source, axis=d, reduction=how))


@lowers("index_add", "index_copy", "index_fill")
def _index_write(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    d = a.dim % max(rank(x), 1)
    if not rank(x):
        raise OnnxExporterError(f"onnx.export: {a.node.op}() into a tensor without dims")
    index = b.of(a.index, clew.int64)
    if not rank(a.index):
        index = b.op("Unsqueeze", index, b.ints(0))
    name = b.name(x)
    shape = b.shape(name)
    count = b.op("Shape", index)
    part_shape = b.op("Concat", *[count if k == d else b.op("Slice", shape, b.ints(k), b.ints(
        k + 1)) for k in range(rank(x))], axis=0)  # fmt: skip
    wide = b.op("Unsqueeze", index, b.ints(*[k for k in range(rank(x)) if k != d])) if rank(
        x) > 1 else index  # fmt: skip
    places = b.op("Expand", wide, part_shape)
    source = a.get("source", a.get("value"))
    part = b.op("Expand", b.of(source, x.dtype), part_shape)
    alpha = a.get("alpha", 1)
    if alpha != 1:
        part = b.op("Mul", part, b.scalar(alpha, x.dtype))
    mode = "add" if a.node.op == "index_add" else "none"
    result: str = b.op("ScatterElements", name, places, part, axis=d, reduction=mode)
    return result


@lowers("Tensor.index_put", "ops._index_put")
def _index_put(b: Builder, a: Any) -> str:
    from clew.export._ir import Node

    whole, index, value = a.node.args[:3]
    add = a.node.args[3] if len(a.node.args) > 3 else a.node.kwargs.get("accumulate", False)
    name = b.name(whole)
    positions = b.again(Node("getitem", (whole, tuple(index)), outputs=[]), b.positions(name))[0]
    part = b.op("Expand", b.of(value, whole.dtype), b.shape(positions))
    flat = b.ints(-1)
    line = b.op(
        "ScatterElements", b.op("Reshape", name, flat), b.op("Reshape", positions, flat),
        b.op("Reshape", part, flat), axis=0, reduction="add" if add else "none",
    )  # fmt: skip
    result: str = b.op("Reshape", line, b.shape(name), allowzero=1)
    return result


@lowers("put")
def _put(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    flat = b.ints(-1)
    part = b.op("Reshape", b.of(a.source, x.dtype), flat)
    line = b.op(
        "ScatterElements", b.op("Reshape", b.name(x), flat),
        b.op("Reshape", b.of(a.index, clew.int64), flat), part, axis=0,
        reduction="add" if a.get("accumulate") else "none",
    )  # fmt: skip
    result: str = b.op("Reshape", line, b.shape(b.name(x)), allowzero=1)
    return result


@lowers("median")
def _median(b: Builder, a: Any) -> Any:
    x = a.node.args[0]
    dim = a.get("dim")
    if not rank(x):
        return b.name(x) if dim is None else [b.name(x), b.const(0, np.int64)]
    name = b.name(x) if dim is not None else b.op("Reshape", b.name(x), b.ints(-1))
    d = 0 if dim is None else dim % rank(x)
    size = b.op("Size", name) if dim is None else b.dim_of(x, d)
    one = b.const(1, np.int64)
    k = b.op("Div", b.op("Add", size, one), b.const(2, np.int64))
    found = b.op("TopK", name, b.op("Unsqueeze", k, b.ints(0)), n=2, axis=d, largest=0, sorted=1)
    keep = bool(a.get("keepdim"))
    last = b.ints(-1) if keep else b.const(-1, np.int64)
    if dim is None:
        return b.op("Gather", found[0], b.const(-1, np.int64), axis=0)
    return [b.op("Gather", v, last, axis=d) for v in found]


@lowers("Tensor.nonzero", "nonzero", "argwhere", "ops.nonzero")
def _nonzero(b: Builder, a: Any) -> Any:
    x = a.node.args[0]
    if not rank(x):
        found = b.op("NonZero", b.op("Reshape", b.name(x), b.ints(1)))
        if not a.node.several:  # a row without elements where it is not 0
            rows = b.op("Transpose", found, perm=[1, 0])
            return b.op("Slice", rows, b.ints(0), b.ints(0), b.ints(1))
    else:
        found = b.op("NonZero", b.name(x))
    if a.node.several:
        return [b.op("Gather", found, b.const(k, np.int64), axis=0)
                for k in range(len(a.node.outputs))]  # fmt: skip
    return b.op("Transpose", found, perm=[1, 0])


@lowers("masked_select")
def _masked_select(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    both = b.op("Max", *[b.op("Concat", *_padded_shape(b, v, max(rank(x), rank(a.mask))), axis=0)
                         for v in (x, a.mask)])  # fmt: skip
    flat = b.ints(-1)
    name = b.op("Reshape", b.op("Expand", b.name(x), both), flat)
    mask = b.op("Reshape", b.op("Expand", b.name(a.mask), both), flat)
    result: str = b.op("Compress", name, mask, axis=0)
    return result


def _padded_shape(b: Builder, v: Value, n: int) -> list[str]:
    extra = [b.ints(*[1] * (n - rank(v)))] if n > rank(v) else []
    return [*extra, b.shape(b.name(v))]


@lowers("nn.functional.one_hot", "ops.one_hot")
def _one_hot(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    classes = a.get("num_classes", -1)
    name = b.of(x, clew.int64)
    if classes == -1:
        greatest = b.op("ReduceMax", name, keepdims=0)
        depth = b.op("Add", greatest, b.const(1, np.int64))
    else:
        depth = b.scalar(classes, "int64")
    if not rank(x):
        name = b.op("Reshape", name, b.ints(1))
    result: str = b.op("OneHot", name, depth, b.const([0, 1], np.int64))
    return result if rank(x) else str(b.op("Squeeze", result, b.ints(0)))


# ---- joining ----


def _joined(b: Builder, a: Any) -> list[Value]:
    tensors = list(a.node.args[0])
    return [t for t in tensors if not (rank(t) == 1 and t.sizes[0] == 0)] or tensors[:1]


@lowers("cat", "concat", "concatenate", "ops._cat")
def _cat(b: Builder, a: Any) -> str:
    parts = _joined(b, a)
    dtype = a.out.dtype
    d = a.get("dim", 0) % max(rank(parts[0]), 1)
    names = [b.of(t, dtype) for t in parts]
    result: str = b.op("Concat", *names, axis=d) if len(names) > 1 else names[0]
    return result


@lowers("stack")
def _stack(b: Builder, a: Any) -> str:
    parts = list(a.node.args[0])
    d = a.get("dim", 0) % (rank(parts[0]) + 1)
    names = [b.op("Unsqueeze", b.of(t, a.out.dtype), b.ints(d)) for t in parts]
    result: str = b.op("Concat", *names, axis=d) if len(names) > 1 else names[0]
    return result


@lowers("hstack", "vstack", "dstack", "row_stack", "column_stack")
def _stacks(b: Builder, a: Any) -> str:
    parts = list(a.node.args[0])
    op = a.node.op
    names = []
    for t in parts:
        name, n = b.of(t, a.out.dtype), rank(t)
        least = {"hstack": 1, "vstack": 2, "row_stack": 2, "dstack": 3, "column_stack": 2}[op]
        if n < least:
            if op == "column_stack":
                name = b.op("Reshape", name, b.ints(-1, 1))
            elif op == "dstack":
                name = b.op("Unsqueeze", b.op("Reshape", name, b.ints(1, -1)) if n < 2 else name,
                            b.ints(2))  # fmt: skip
            else:
                name = b.op("Reshape", name, b.ints(*[1] * (least - 1), -1))
        names.append(name)
    flat = op == "hstack" and rank(parts[0]) <= 1
    axis = 0 if flat or op in ("vstack", "row_stack") else 2 if op == "dstack" else 1
    result: str = b.op("Concat", *names, axis=axis)
    return result


@lowers("repeat_interleave")
def _repeat_interleave(b: Builder, a: Any) -> str:
    x, times, dim = a.get("input"), a.get("repeats"), a.get("dim")
    if isinstance(times, Value) and times.kind == "tensor":
        ends = b.op("CumSum", b.of(times, clew.int64), b.const(0, np.int64))
        total = b.op("ReduceSum", b.of(times, clew.int64), keepdims=0)
        line = b.op("Range", b.const(0, np.int64), total, b.const(1, np.int64))
        past = b.op("GreaterOrEqual", line, b.op("Unsqueeze", ends, b.ints(1)))
        which = b.op("ReduceSum", b.cast(past, "int64"), b.ints(0), keepdims=0)
        if x is None:
            return str(which)
        if rank(times) != 1:
            raise OnnxExporterError("onnx.export: repeat_interleave() by a count of no dims")
        if dim is None:
            return str(b.op("Gather", b.op("Reshape", b.name(x), b.ints(-1)), which, axis=0))
        return str(b.op("Gather", b.name(x), which, axis=dim % rank(x)))
    name, n = b.name(x), rank(x)
    if dim is None:
        name, n, dim = b.op("Reshape", name, b.ints(-1)), 1, 0
    d = dim % n
    wide = b.op("Unsqueeze", name, b.ints(d + 1))
    counts = [1] * (n + 1)
    counts[d + 1] = times
    tiled = b.op("Tile", wide, b.vector(counts))
    shape = b.op("Shape", name)
    size = b.op("Mul", b.op("Slice", shape, b.ints(d), b.ints(d + 1)), b.vector(times))
    target = b.op("Concat", b.op("Slice", shape, b.ints(0), b.ints(d)), size,
                  b.op("Slice", shape, b.ints(d + 1), b.ints(_LAST)), axis=0)  # fmt: skip
    result: str = b.op("Reshape", tiled, target, allowzero=1)
    return result


@lowers("meshgrid", "ops.meshgrid")
def _meshgrid(b: Builder, a: Any) -> list[str]:
    parts = list(a.node.args[0])
    indexing = a.get("indexing") or "ij"
    n = len(parts)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    lengths = [b.op("Size", b.name(p)) for p in parts]
    shape = b.op("Concat", *[b.op("Unsqueeze", lengths[k], b.ints(0)) for k in order], axis=0)
    found = []
    for k, p in enumerate(parts):
        at = order.index(k)
        sizes = [1] * n
        sizes[at] = -1
        found.append(b.op("Expand", b.op("Reshape", b.name(p), b.ints(*sizes)), shape))
    return found


# ---- order ----


@lowers("topk")
def _topk(b: Builder, a: Any) -> Any:
    x = a.node.args[0]
    return b.op(
        "TopK", b.name(x), b.vector(a.k), n=2, axis=a.get("dim", -1) % rank(x),
        largest=int(a.get("largest", True)), sorted=1,
    )  # fmt: skip


@lowers("sort", "argsort", "msort")
def _sort(b: Builder, a: Any) -> Any:
    x = a.node.args[0]
    if not rank(x):
        zero = b.const(0, np.int64)
        return {"argsort": zero, "msort": b.name(x)}.get(a.node.op, [b.name(x), zero])
    d = (0 if a.node.op == "msort" else a.get("dim", -1)) % rank(x)
    size = b.op("Unsqueeze", b.dim_of(x, d), b.ints(0))
    name = b.name(x)
    if x.dtype == clew.bool:
        raise OnnxExporterError("onnx.export: sorting bools")
    found = b.op("TopK", name, size, n=2, axis=d, largest=int(bool(a.get("descending"))), sorted=1)
    return {"argsort": found[1], "msort": found[0]}.get(a.node.op, found)


@lowers("tril", "triu")
def _triangle(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    name = b.name(x)
    cast = x.dtype == clew.bool
    if cast:
        name = b.cast(name, "int64")
    k = b.scalar(a.get("diagonal", 0), "int64")
    found = b.op("Trilu", name, k, upper=int(a.node.op == "triu"))
    return b.cast(found, clew.bool) if cast else str(found)


@lowers("kthvalue")
def _kthvalue(b: Builder, a: Any) -> list[str]:
    x = a.node.args[0]
    if not rank(x):
        return [b.name(x), b.const(0, np.int64)]
    d = a.get("dim", -1) % rank(x)
    values, places = b.op("TopK", b.name(x), b.vector(a.k), n=2, axis=d, largest=0, sorted=1)
    keep = bool(a.get("keepdim"))
    last = b.ints(-1) if keep else b.const(-1, np.int64)
    return [b.op("Gather", v, last, axis=d) for v in (values, places)]


# ---- what makes tensors ----


@lowers("arange")
def _arange(b: Builder, a: Any) -> str:
    args = list(a.node.args)
    start, end, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    kw = a.node.kwargs
    start, end, step = kw.get("start", start), kw.get("end", end), kw.get("step", step)
    dtype = a.out.dtype
    kinds = [x.kind if isinstance(x, Value) else type(x).__name__ for x in (start, end, step)]
    common = "float64" if "float" in kinds else "int64"
    line = b.op("Range", *[b.scalar(x, common) for x in (start, end, step)])
    result: str = line if dtype.name == common else b.cast(line, dtype)
    return result


def _filled(b: Builder, shape: str, value: Any, dtype: Any) -> str:
    result: str = b.op("Expand", b.scalar(value, dtype), shape)
    return result


@lowers("zeros", "placeholder", "ones", "empty", "full", "Tensor.new_zeros", "Tensor.new_ones",
        "Tensor.new_full", "Tensor.new_empty")  # fmt: skip
def _full(b: Builder, a: Any) -> str:
    args = list(a.node.args)
    method = a.node.op.startswith("Tensor.")
    name = a.node.op.rpartition("_")[2] if method else a.node.op
    args = args[1:] if method else args
    value: Any = {"zeros": 0, "placeholder": 0, "ones": 1, "empty": 0}.get(name)
    size = a.node.kwargs.get("size")
    if name == "full":
        if len(args) > 1:
            size, value = args[:2]
        else:
            size = args[0] if args else size
            value = a.node.kwargs["fill_value"]
    elif size is None:
        size = args[0] if args and isinstance(args[0], (tuple, list)) else args
    return _filled(b, b.vector(size) if size else b.const(np.zeros(0, np.int64)), value,
                   a.out.dtype)  # fmt: skip


@lowers("zeros_like", "ones_like", "full_like", "empty_like")
def _like(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    value: Any = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}.get(a.node.op)
    if value is None:
        value = a.node.args[1] if len(a.node.args) > 1 else a.node.kwargs["fill_value"]
    return _filled(b, b.shape(b.name(x)), value, a.out.dtype)


@lowers("eye")
def _eye(b: Builder, a: Any) -> str:
    args = a.node.args
    n = b.scalar(args[0], "int64")
    m = b.scalar(args[1], "int64") if len(args) > 1 and args[1] is not None else n
    rows = b.op("Range", b.const(0, np.int64), n, b.const(1, np.int64))
    columns = b.op("Range", b.const(0, np.int64), m, b.const(1, np.int64))
    return b.cast(b.op("Equal", b.op("Unsqueeze", rows, b.ints(1)), columns), a.out.dtype)


@lowers("linspace")
def _linspace(b: Builder, a: Any) -> str:
    start, end, steps = (*a.node.args, a.node.kwargs.get("steps"))[:3]
    n = b.scalar(steps, "int64")
    one = b.const(1, np.int64)
    line = b.cast(b.op("Range", b.const(0, np.int64), n, one), "float64")
    gaps = b.cast(b.op("Max", b.op("Sub", n, one), one), "float64")
    first = b.scalar(start, "float64")
    step = b.op("Div", b.op("Sub", b.scalar(end, "float64"), first), gaps)
    return b.cast(b.op("Add", first, b.op("Mul", line, step)), a.out.dtype)


@lowers("tril_indices", "triu_indices", "scalar_tensor")
def _constant(b: Builder, a: Any) -> str:
    if any(isinstance(x, Value) for x in a.node.args):
        if a.node.op == "scalar_tensor":
            return b.scalar(a.node.args[0], a.out.dtype)
        return _triangle_places(b, a)
    made = getattr(clew, a.node.op)(*a.node.args, **a.node.kwargs)
    return b.const(made.numpy())


def _triangle_places(b: Builder, a: Any) -> str:
    """Places in the triangle of a matrix whose sizes vary, row after row."""
    rows, columns = (b.scalar(argument(a, k, n, 0), "int64") for k, n in enumerate(("row", "col")))
    shift = b.scalar(argument(a, 2, "offset", 0), "int64")
    zero, one = b.const(0, np.int64), b.const(1, np.int64)
    down = b.op("Unsqueeze", b.op("Range", zero, rows, one), b.ints(1))
    apart = b.op("Sub", b.op("Range", zero, columns, one), down)
    how = "LessOrEqual" if a.node.op == "tril_indices" else "GreaterOrEqual"
    places: str = b.op("NonZero", b.op(how, apart, shift))
    return places if a.out.dtype == clew.int64 else b.cast(places, a.out.dtype)


@lowers("rand", "randn", "rand_like", "randn_like")
def _random(b: Builder, a: Any) -> str:
    kind = "RandomNormalLike" if "randn" in a.node.op else "RandomUniformLike"
    if a.node.op.endswith("like"):
        base = b.name(a.node.args[0])
    else:
        args = a.node.args
        size = args[0] if args and isinstance(args[0], (tuple, list)) else args
        base = _filled(b, b.vector(size), 0, a.out.dtype)
    result: str = b.op(kind, base, dtype=b.element(a.out.dtype))
    return result
