"""Products and reductions in ONNX."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers, promoted
from clew.onnx._math import floating
from clew.onnx._shape import rank

# ---- products ----


def product(b: Builder, left: str, right: str, m: int, n: int) -> str:
    """A matrix product of tensors of m and n dims. Vectors become matrices: onnxruntime 1.32 gives
    wrong results where it joins a Transpose with the product of a matrix and a vector."""
    if m == n == 1:
        return str(b.op("MatMul", left, right))
    if m == 1:
        row = b.op("MatMul", b.op("Unsqueeze", left, b.ints(0)), right)
        return str(b.op("Squeeze", row, b.ints(-2)))
    if n == 1:
        column = b.op("MatMul", left, b.op("Unsqueeze", right, b.ints(1)))
        return str(b.op("Squeeze", column, b.ints(-1)))
    return str(b.op("MatMul", left, right))


@lowers("matmul", "mm", "bmm", "mv", "dot", "inner", "vdot")
def _matmul(b: Builder, a: Any) -> str:
    x, y = list(a.values())[:2]
    left, right = b.name(x), b.name(y)
    if a.node.op == "inner":
        if not x.sizes or not y.sizes:
            return b.op("Mul", left, right)
        if len(y.sizes) == 2:
            right = b.op("Transpose", right, perm=[1, 0])
        elif len(y.sizes) > 2:
            raise OnnxExporterError("onnx.export: inner() of more than two dims")
    return product(b, left, right, len(x.sizes), len(y.sizes))


@lowers("addmm", "addbmm", "baddbmm", "addmv", "addr")
def _addmm(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    names = [n for n in a if n not in ("input", "beta", "alpha")]
    left, right = (b.name(a[n]) for n in names[:2])
    if a.node.op == "addr":
        left, right = (b.op("Unsqueeze", left, b.ints(1)), b.op("Unsqueeze", right, b.ints(0)))
    ranks = [2, 2] if a.node.op == "addr" else [len(a[n].sizes) for n in names[:2]]
    made = product(b, left, right, *ranks)
    if a.node.op == "addbmm":
        made = b.op("ReduceSum", made, b.ints(0), keepdims=0)
    if a.alpha != 1:
        made = b.op("Mul", made, b.scalar(a.alpha, dtype))
    if a.beta == 0:
        return str(made)
    base = b.name(a.input)
    if a.beta != 1:
        base = b.op("Mul", base, b.scalar(a.beta, dtype))
    result: str = b.op("Add", base, made)
    return result


@lowers("outer", "ger")
def _outer(b: Builder, a: Any) -> str:
    x, y = list(a.values())[:2]
    left = b.op("Unsqueeze", b.of(x, a.out.dtype), b.ints(1))
    result: str = b.op("Mul", left, b.op("Unsqueeze", b.of(y, a.out.dtype), b.ints(0)))
    return result


@lowers("ops._tensordot")
def _tensordot(b: Builder, a: Any) -> str:
    x, y = a.input, a.other
    left, right = ([d % rank(v) for d in dims] for v, dims in ((x, a.dims_input),
                                                               (y, a.dims_other)))  # fmt: skip
    for d, e in zip(left, right):
        if None not in (x.sizes[d], y.sizes[e]) and x.sizes[d] != y.sizes[e]:
            raise OnnxExporterError(
                f"onnx.export: tensordot() in which sizes {x.sizes[d]} and {y.sizes[e]} are "
                f"paired; sum the larger one over that dim before"
            )
    letters = iter(string.ascii_lowercase)
    of_x = [next(letters) for _ in x.sizes]
    of_y = [of_x[left[right.index(e)]] if e in right else next(letters) for e in range(rank(y))]
    kept = [k for d, k in enumerate(of_x) if d not in left]
    kept += [k for e, k in enumerate(of_y) if e not in right]
    equation = f"{''.join(of_x)},{''.join(of_y)}->{''.join(kept)}"
    return str(b.op("Einsum", b.name(x), b.name(y), equation=equation))


# ---- reductions ----


def axes_of(dim: Any, rank: int) -> list[int]:
    """The dims of a reduction, from 0."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(rank))
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [d % rank for d in dims] if rank else []


def reduce(b: Builder, kind: str, name: str, axes: list[int], keep: bool) -> str:
    """A reduction over dims."""
    if not axes:
        return name
    result: str = b.op(kind, name, b.ints(*axes), keepdims=int(keep))
    return result


@lowers("sum", "mean", "prod", "amax", "amin", "nansum", "nanmean")
def _reduction(b: Builder, a: Any) -> str:
    x = a.input
    op = a.node.op
    kind = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax",
            "amin": "ReduceMin", "nansum": "ReduceSum", "nanmean": "ReduceSum"}[op]  # fmt: skip
    rank, keep = len(x.sizes), bool(a.get("keepdim"))
    axes = axes_of(a.get("dim"), rank)
    dtype = a.out.dtype
    name = b.of(x, dtype)
    if op == "prod" and dtype not in (clew.float32, clew.int32, clew.int64):
        return b.cast(reduce(b, kind, b.cast(name, "float32"), axes, keep), dtype)
    if dtype == clew.bool:
        return b.cast(reduce(b, kind, b.cast(name, "int32"), axes, keep), dtype)
    if op.startswith("nan") and floating(dtype):
        bad = b.op("IsNaN", name)
        name = b.op("Where", bad, b.scalar(0, dtype), name)
        total = reduce(b, kind, name, axes, keep)
        if op == "nansum":
            return total
        count = reduce(b, kind, b.cast(b.op("Not", bad), dtype), axes, keep)
        return b.op("Div", total, count)
    if op == "mean":
        return _mean(b, x, name, axes, keep, dtype)
    return reduce(b, kind, name, axes, keep)


def _mean(b: Builder, x: Value, name: str, axes: list[int], keep: bool, dtype: Any) -> str:
    """The mean over dims; that of no elements is nan, where ONNX Runtime's ReduceMean has 0."""
    if all(x.sizes[d] for d in axes):
        return reduce(b, "ReduceMean", name, axes, keep)
    count = b.const(1, np.int64)
    for d in axes:
        count = b.op("Mul", count, b.dim_of(x, d))
    result: str = b.op("Div", reduce(b, "ReduceSum", name, axes, keep), b.cast(count, dtype))
    return result


@lowers("all", "any", "count_nonzero")
def _truth(b: Builder, a: Any) -> str:
    x = a.input
    axes = axes_of(a.get("dim"), len(x.sizes))
    keep = bool(a.get("keepdim"))
    name = b.cast(b.of(x, clew.bool), "int32")
    if a.node.op == "count_nonzero":
        return reduce(b, "ReduceSum", b.cast(name, "int64"), axes, False)
    kind = "ReduceMin" if a.node.op == "all" else "ReduceMax"
    # Of nothing, all() is true and any() false, where ONNX leaves minima undefined.
    if kind == "ReduceMax":
        count = reduce(b, "ReduceSum", name, axes, keep)
        return b.op("Greater", count, b.const(0, np.int32))
    count = reduce(b, "ReduceSum", b.op("Sub", b.const(1, np.int32), name), axes, keep)
    return b.op("Equal", count, b.const(0, np.int32))


@lowers("max", "min")
def _extreme(b: Builder, a: Any) -> Any:
    x = a.input
    top = a.node.op == "max"
    if a.get("other") is not None:
        dtype = a.out.dtype
        return b.op("Max" if top else "Min", b.of(x, dtype), b.of(a.other, dtype))
    kind = "ReduceMax" if top else "ReduceMin"
    if a.get("dim") is None:
        return reduce(b, kind, b.name(x), list(range(len(x.sizes))), False)
    if not x.sizes:
        return [b.name(x), b.const(0, np.int64)]
    d, keep = a.dim % len(x.sizes), int(bool(a.keepdim))
    values = reduce(b, kind, b.name(x), [d], bool(keep))
    places = b.op("ArgMax" if top else "ArgMin", b.name(x), axis=d, keepdims=keep)
    return [values, places]


@lowers("aminmax")
def _aminmax(b: Builder, a: Any) -> list[str]:
    axes = axes_of(a.get("dim"), len(a.input.sizes))
    keep = bool(a.get("keepdim"))
    return [reduce(b, kind, b.name(a.input), axes, keep) for kind in ("ReduceMin", "ReduceMax")]


@lowers("cdist")
def _cdist(b: Builder, a: Any) -> str:
    x1, x2 = (b.of(argument(a, k, f"x{k + 1}", None), a.out.dtype) for k in (0, 1))
    p = float(argument(a, 2, "p", 2.0))
    apart = b.op("Sub", b.op("Unsqueeze", x1, b.ints(-2)), b.op("Unsqueeze", x2, b.ints(-3)))
    if p in (1.0, 2.0):
        return str(b.op(f"ReduceL{p:.0f}", apart, b.ints(-1), keepdims=0))
    if p == float("inf"):
        return str(b.op("ReduceMax", b.op("Abs", apart), b.ints(-1), keepdims=0))
    raise OnnxExporterError(f"onnx.export: cdist() with p={p:g}; 1, 2 and inf can be written")


@lowers("searchsorted", "bucketize")
def _bucketize(b: Builder, a: Any) -> str:
    if a.node.op == "bucketize":
        x, sorted_ = a.input, a.boundaries
        right = bool(a.get("right"))
    else:
        x, sorted_ = a.input, a.sorted_sequence
        right = bool(a.get("right")) or a.get("side") == "right"
    dtype = promoted(x, sorted_)
    wide = b.op("Unsqueeze", b.of(x, dtype), b.ints(-1))
    edges = b.of(sorted_, dtype)
    if a.get("sorter") is not None:
        edges = b.op("GatherElements", edges, b.of(a.sorter, clew.int64), axis=-1)
    if len(sorted_.sizes) > 1:  # a row of edges for each row
        edges = b.op("Unsqueeze", edges, b.ints(-2))
    below = b.op("LessOrEqual" if right else "Less", edges, wide)
    if floating(dtype):  # nan lies behind all numbers
        last = b.op("IsNaN", wide)
        if not right:
            last = b.op("And", last, b.op("Not", b.op("IsNaN", edges)))
        below = b.op("Or", below, last)
    count = b.op("ReduceSum", b.cast(below, "int64"), b.ints(-1), keepdims=0)
    return str(count if a.out.dtype == clew.int64 else b.cast(count, a.out.dtype))


@lowers("angle")
def _angle(b: Builder, a: Any) -> str:
    x, dtype = b.of(a.input, a.out.dtype), a.out.dtype
    found = b.op("Where", b.op("Less", x, b.scalar(0, dtype)), b.scalar(math.pi, dtype),
                 b.scalar(0, dtype))  # fmt: skip
    return str(b.op("Where", b.op("IsNaN", x), x, found))


@lowers("linalg.det", "det", "ops._det")
def _det(b: Builder, a: Any) -> Any:
    found = b.op("Det", b.name(a.node.args[0]))
    return [found] * len(a.node.outputs)


@lowers("argmax", "argmin")
def _argmax(b: Builder, a: Any) -> str:
    x = a.input
    kind = "ArgMax" if a.node.op == "argmax" else "ArgMin"
    name = b.name(x)
    if x.dtype == clew.bool:
        name = b.cast(name, "int32")
    if a.get("dim") is None:
        flat = b.op("Reshape", name, b.ints(-1))
        found = b.op(kind, flat, axis=0, keepdims=0)
        if a.get("keepdim"):
            found = b.op("Reshape", found, b.ints(*[1] * len(x.sizes)))
        return str(found)
    if not x.sizes:
        return b.const(0, np.int64)
    result: str = b.op(kind, name, axis=a.dim % len(x.sizes), keepdims=int(bool(a.keepdim)))
    return result


@lowers("logsumexp")
def _logsumexp(b: Builder, a: Any) -> str:
    axes = axes_of(a.dim, len(a.input.sizes))
    return reduce(b, "ReduceLogSumExp", b.of(a.input, a.out.dtype), axes, bool(a.get("keepdim")))


@lowers("var", "std", "var_mean", "std_mean")
def _variance(b: Builder, a: Any) -> Any:
    x = a.input
    rank = len(x.sizes)
    axes = axes_of(a.get("dim"), rank)
    keep = bool(a.get("keepdim"))
    correction = a.get("correction", 1 if a.get("unbiased", True) else 0)
    correction = 1 if correction is None else correction
    name = b.name(x)
    dtype = a.out.dtype
    mean = reduce(b, "ReduceMean", name, axes, True)
    gap = b.op("Sub", name, mean)
    total = reduce(b, "ReduceSum", b.op("Mul", gap, gap), axes, keep)
    count = b.const(1, np.int64)
    for d in axes:
        count = b.op("Mul", count, b.dim_of(x, d))
    free = b.op("Sub", b.cast(count, dtype), b.scalar(correction, dtype))
    found = b.op("Div", total, b.op("Max", free, b.scalar(0, dtype)))
    if a.node.op.startswith("std"):
        found = b.op("Sqrt", found)
    if a.node.op.endswith("mean"):
        return [found, _mean(b, x, name, axes, keep, dtype)]
    return found


@lowers("norm", "linalg.vector_norm", "ops.vector_norm")
def _norm(b: Builder, a: Any) -> str:
    p = a.get("p", a.get("ord", 2))
    p = 2 if p in (None, "fro") else p
    x = a.input if "input" in a else a.x
    axes = axes_of(a.get("dim"), len(x.sizes))
    keep = bool(a.get("keepdim"))
    dtype = a.out.dtype
    size = b.op("Abs", b.of(x, dtype))
    if p == 2:
        return reduce(b, "ReduceL2", b.of(x, dtype), axes, keep) if axes else str(size)
    if p == 1:
        return reduce(b, "ReduceSum", size, axes, keep)
    if p in (math.inf, -math.inf):
        return reduce(b, "ReduceMax" if p > 0 else "ReduceMin", size, axes, keep)
    if p == 0:
        zero = b.op("Equal", size, b.scalar(0, dtype))
        return reduce(b, "ReduceSum", b.cast(b.op("Not", zero), dtype), axes, keep)
    total = reduce(b, "ReduceSum", b.op("Pow", size, b.scalar(p, dtype)), axes, keep)
    result: str = b.op("Pow", total, b.scalar(1 / p, dtype))
    return result


@lowers("cumsum")
def _cumsum(b: Builder, a: Any) -> str:
    name = b.of(a.input, a.out.dtype)
    if not a.input.sizes:
        return name
    result: str = b.op("CumSum", name, b.const(a.dim % len(a.input.sizes), np.int64))
    return result
