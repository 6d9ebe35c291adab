"""Distinct elements, counts, running products and masked writes in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

import clew
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers

_ORDERED = (clew.float32, clew.float64, clew.int64, clew.int8)  # what runtimes take for Unique


def _distinct(b: Builder, x: Any, dim: int | None) -> list[str]:
    """Distinct elements, or slices, in order; the number of each element's; and counts."""
    kind = x.dtype if x.dtype in _ORDERED else (
        clew.float32 if x.dtype.is_floating_point else clew.int64
    )  # fmt: skip
    values, _, inverse, counts = b.op("Unique", b.of(x, kind), n=4, sorted=1, axis=dim)
    if kind != x.dtype:
        values = b.cast(values, x.dtype)
    if dim is None:
        inverse = b.op("Reshape", inverse, b.shape(b.name(x)), allowzero=1)
    return [values, inverse, counts]


@lowers("ops._unique", "ops._unique_dim")
def _unique(b: Builder, a: Any) -> list[str]:
    return _distinct(b, a.input, a.get("dim"))


@lowers("Tensor.unique")
def _unique_method(b: Builder, a: Any) -> list[str]:
    found = _distinct(b, a.node.args[0], argument(a, 4, "dim", None))
    asked = argument(a, 2, "return_inverse", False), argument(a, 3, "return_counts", False)
    return [found[0], *(f for f, wanted in zip(found[1:], asked) if wanted)]


def _runs(b: Builder, x: Any) -> list[str]:
    """The same of neighbours only."""
    flat = b.op("Reshape", b.name(x), b.ints(-1))
    first = b.op("Slice", flat, b.ints(0), b.ints(1), b.ints(0))
    front = b.op("Slice", flat, b.ints(0), b.ints(-1), b.ints(0))
    differs = b.op("Not", b.op("Equal", flat, b.op("Concat", first, front, axis=0)))
    inverse = b.op("CumSum", b.cast(differs, "int64"), b.const(0, np.int64))
    # Of an empty tensor the line of places is empty, too.
    zero, one = b.const(0, np.int64), b.const(1, np.int64)
    places = b.op("Range", zero, b.op("Size", flat), one)
    starts = b.op("Or", differs, b.op("Equal", places, zero))
    values = b.op("Compress", flat, starts, axis=0)
    begin = b.op("Compress", places, starts, axis=0)
    tail = b.op("Slice", begin, b.ints(1), b.ints(2**31), b.ints(0))
    size = b.op("Unsqueeze", b.op("Size", flat), b.ints(0))
    ends = b.op("Slice", b.op("Concat", tail, size, axis=0), b.ints(0), b.shape(begin), b.ints(0))
    counts = b.op("Sub", ends, begin)
    return [values, b.op("Reshape", inverse, b.shape(b.name(x)), allowzero=1), counts]


@lowers("ops._unique_consecutive")
def _unique_consecutive(b: Builder, a: Any) -> list[str]:
    if a.get("dim") is not None:
        raise OnnxExporterError("onnx.export: unique_consecutive() with dim")
    return _runs(b, a.input)


@lowers("Tensor.unique_consecutive")
def _unique_consecutive_method(b: Builder, a: Any) -> list[str]:
    if argument(a, 3, "dim", None) is not None:
        raise OnnxExporterError("onnx.export: unique_consecutive() with dim")
    found = _runs(b, a.node.args[0])
    asked = argument(a, 1, "return_inverse", False), argument(a, 2, "return_counts", False)
    return [found[0], *(f for f, wanted in zip(found[1:], asked) if wanted)]


@lowers("bincount")
def _bincount(b: Builder, a: Any) -> str:
    x = b.of(a.input, clew.int64)
    least = b.op("Sub", b.scalar(a.minlength, "int64"), b.const(1, np.int64))
    least = b.op("Unsqueeze", least, b.ints(0))
    last = b.op("ReduceMax", b.op("Concat", x, least, axis=0), keepdims=1)
    size = b.op("Add", last, b.ints(1))
    zeros = b.op("Expand", b.scalar(0, a.out.dtype), size)
    if a.get("weights") is None:
        added = b.op("Expand", b.scalar(1, a.out.dtype), b.shape(x))
    else:
        added = b.of(a.weights, a.out.dtype)
    return str(b.op("ScatterElements", zeros, x, added, axis=0, reduction="add"))


@lowers("masked_scatter")
def _masked_scatter(b: Builder, a: Any) -> str:
    whole = b.op("Expand", b.name(a.input), b.shape(b.name(a.mask)))
    mask = b.op("Expand", b.of(a.mask, clew.bool), b.shape(whole))
    chosen = b.cast(b.op("Reshape", mask, b.ints(-1)), "int64")
    order = b.op("Sub", b.op("CumSum", chosen, b.const(0, np.int64)), b.const(1, np.int64))
    order = b.op("Max", order, b.const(0, np.int64))
    values = b.op("Reshape", b.of(a.source, a.input.dtype), b.ints(-1))
    # One more, which is not taken: there may be none.
    values = b.op("Concat", values, b.op("Expand", b.scalar(0, a.input.dtype), b.ints(1)), axis=0)
    given = b.op("Reshape", b.op("Gather", values, order, axis=0), b.shape(whole), allowzero=1)
    return str(b.op("Where", mask, given, whole))


@lowers("cumprod")
def _cumprod(b: Builder, a: Any) -> str:
    x = b.of(a.input, a.out.dtype)
    count = len(a.input.sizes)
    if not count:
        return str(b.op("Identity", x))
    dim = a.dim % count
    order = [dim, *(d for d in range(count) if d != dim)]
    x = b.op("Transpose", x, perm=order)
    rest = b.op("Slice", b.shape(x), b.ints(1), b.ints(2**31), b.ints(0))
    start = b.op("Expand", b.scalar(1, a.out.dtype), rest)
    element, sizes = b.element(a.out.dtype), [None] * (count - 1)

    def work() -> tuple[list[Any], list[Any]]:
        so_far, now = b.fresh("so_far"), b.fresh("now")
        product = b.op("Mul", so_far, now)
        kept = b.op("Identity", product)
        of = helper.make_tensor_value_info
        return (
            [of(so_far, element, sizes), of(now, element, sizes)],
            [of(product, element, sizes), of(kept, element, sizes)],
        )

    body = b.inner(work, "product")
    _, result = b.op("Scan", start, x, n=2, body=body, num_scan_inputs=1)
    return str(b.op("Transpose", result, perm=[order.index(d) for d in range(count)]))
