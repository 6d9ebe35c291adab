"""Indexing, gathering and scattering in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._shape import LAST, rank, transposed

# ---- indexing ----


@lowers("ops._slice")
def _slice(b: Builder, a: Any) -> str:
    x, dim, start, end, step = (*a.node.args, 1)[:5]
    d = dim % rank(x)
    last = LAST if end is None else end
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


def _is_place(k: Any) -> bool:
    """Whether something in a list of an index is a whole number."""
    return type(k) is int or (isinstance(k, Value) and k.kind == "int")


def indexed(b: Builder, name: str, n: int, items: list[Any]) -> str:
    """``x[items]``."""
    items = [b.vector(i) if isinstance(i, list) and all(map(_is_place, i)) else i for i in items]
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
                ends.append(LAST if i.stop is None else i.stop)
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
    return _advanced(b, name, layout) if advanced else name


def _advanced(b: Builder, name: str, layout: list[Any]) -> str:
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
    if mode == "mean" and rank(x) and dtype.is_floating_point:
        return _scattered_mean(b, a, index, name)
    if mode not in how:
        raise OnnxExporterError(f"onnx.export: scatter_reduce() with {mode!r} of these")
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


def _scattered_mean(b: Builder, a: Any, index: str, source: str) -> str:
    """Sums by how many elements they are of."""
    x, d, own = a.input, a.dim % rank(a.input), a.get("include_self", True)
    one, zero = b.scalar(1, x.dtype), b.scalar(0, x.dtype)
    nothing = b.op("Expand", zero, b.shape(b.name(x)))
    ones = b.op("Expand", one, b.shape(index))
    count = b.op("ScatterElements", nothing, index, ones, axis=d, reduction="add")
    first = b.name(x) if own else nothing
    total = b.op("ScatterElements", first, index, source, axis=d, reduction="add")
    if own:
        return str(b.op("Div", total, b.op("Add", count, one)))
    mean = b.op("Div", total, b.op("Max", count, one))
    return str(b.op("Where", b.op("Greater", count, zero), mean, b.name(x)))


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
