"""Joining, sorting and what makes tensors, in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._shape import LAST, rank

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
                  b.op("Slice", shape, b.ints(d + 1), b.ints(LAST)), axis=0)  # fmt: skip
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
    return b.cast(_line(b, a), a.out.dtype)


@lowers("logspace")
def _logspace(b: Builder, a: Any) -> str:
    if not a.out.dtype.is_floating_point:
        raise OnnxExporterError(
            "onnx.export: logspace() of whole numbers; write clew.logspace(...).round().long()"
        )
    base = b.scalar(argument(a, 3, "base", 10.0), "float64")
    return b.cast(b.op("Pow", base, _line(b, a)), a.out.dtype)


def _line(b: Builder, a: Any) -> str:
    """Numbers at equal distances, float64."""
    start, end, steps = (argument(a, k, n, None) for k, n in enumerate(("start", "end", "steps")))
    n = b.scalar(steps, "int64")
    one = b.const(1, np.int64)
    line = b.cast(b.op("Range", b.const(0, np.int64), n, one), "float64")
    gaps = b.cast(b.op("Max", b.op("Sub", n, one), one), "float64")
    first = b.scalar(start, "float64")
    step = b.op("Div", b.op("Sub", b.scalar(end, "float64"), first), gaps)
    return str(b.op("Add", first, b.op("Mul", line, step)))


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
