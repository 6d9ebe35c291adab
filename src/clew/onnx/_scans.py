"""Running extremes and sums of exponentials, medians and the commonest elements in ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

import clew
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._math import floating

State = list[tuple[str, Any]]  # names of values with their dtypes


def scan(b: Builder, a: Any, name: str, starts: State, step: Callable[[list[str], str], list[str]]
         ) -> list[str]:  # fmt: skip
    """Goes along a dim with a state; gives what each state was behind each element.

    Args:
        name: of the input, in its dtype.
        starts: the state before the first element, each a value of one element.
        step: takes the state and the elements of one place, gives the state.
    """
    rank = len(a.input.sizes)
    dim = a.dim % rank
    order = [dim, *(d for d in range(rank) if d != dim)]
    dtype = a.input.dtype
    x = b.op("Transpose", name, perm=order)
    rest = b.op("Slice", b.shape(x), b.ints(1), b.ints(2**31), b.ints(0))
    begun = [b.op("Expand", start, rest) for start, _ in starts]
    sizes = [None] * (rank - 1)

    def work() -> tuple[list[Any], list[Any]]:
        of = helper.make_tensor_value_info
        before = [b.fresh("so_far") for _ in starts]
        now = b.fresh("now")
        after = step(before, now)
        kept = [b.op("Identity", n) for n in after]
        kinds = [b.element(d) for _, d in starts]
        given = [of(n, k, sizes) for n, k in zip(before, kinds)]
        found = [of(n, k, sizes) for names in (after, kept) for n, k in zip(names, kinds)]
        return [*given, of(now, b.element(dtype), sizes)], found

    body = b.inner(work, "scan")
    results = b.op("Scan", *begun, x, n=2 * len(starts), body=body, num_scan_inputs=1)
    back = [order.index(d) for d in range(rank)]
    return [b.op("Transpose", r, perm=back) for r in results[len(starts) :]]


@lowers("cummax", "cummin")
def _running_extreme(b: Builder, a: Any) -> list[str]:
    dtype = a.input.dtype
    if dtype not in (clew.float32, clew.float64, clew.int32, clew.int64):
        raise OnnxExporterError(f"onnx.export: {a.node.op}() of {dtype.name}")
    if not a.input.sizes:
        return [b.name(a.input), b.const(0, np.int64)]
    low = a.node.op == "cummax"
    if floating(dtype):
        worst = -math.inf if low else math.inf
    else:
        worst = clew.iinfo(dtype).min if low else clew.iinfo(dtype).max

    def step(state: list[str], now: str) -> list[str]:
        best, place, at = state
        better = b.op("GreaterOrEqual" if low else "LessOrEqual", now, best)
        if floating(dtype):  # nan stays
            better = b.op("And", better, b.op("Not", b.op("IsNaN", best)))
            better = b.op("Or", better, b.op("IsNaN", now))
        one = b.const(1, np.int64)
        return [b.op("Where", better, now, best), b.op("Where", better, at, place),
                b.op("Add", at, one)]  # fmt: skip

    zero = b.const(0, np.int64)
    starts: State = [(b.scalar(worst, dtype), dtype), (zero, clew.int64), (zero, clew.int64)]
    return scan(b, a, b.name(a.input), starts, step)[:2]


@lowers("logcumsumexp")
def _logcumsumexp(b: Builder, a: Any) -> str:
    dtype = a.input.dtype
    name = b.name(a.input)
    if not a.input.sizes:
        return str(b.op("Identity", name))

    def step(state: list[str], now: str) -> list[str]:
        (total,) = state
        top, low = b.op("Max", total, now), b.op("Min", total, now)
        gap = b.op("Where", b.op("Equal", top, low), b.scalar(0, dtype), b.op("Sub", low, top))
        more = b.op("Log", b.op("Add", b.scalar(1, dtype), b.op("Exp", gap)))
        found = b.op("Add", top, more)
        # Two infinities of one sign are that infinity.
        return [b.op("Where", b.op("IsInf", top), top, found)]

    return scan(b, a, name, [(b.scalar(-math.inf, dtype), dtype)], step)[0]


@lowers("nanmedian")
def _nanmedian(b: Builder, a: Any) -> Any:
    x, dtype = a.input, a.input.dtype
    rank = len(x.sizes)
    dim = a.get("dim")
    name = b.name(x)
    if dim is None:
        name, axis = b.op("Reshape", name, b.ints(-1)), 0
    elif not rank:
        return [name, b.const(0, np.int64)]
    else:
        axis = dim % rank
    bad = b.op("IsNaN", name) if floating(dtype) else None
    whole = name
    count = b.op("Slice", b.shape(name), b.ints(axis), b.ints(axis + 1))
    if bad is not None:
        whole = b.op("Where", bad, b.scalar(math.inf, dtype), name)
    values, places = b.op("TopK", whole, count, n=2, axis=axis, largest=0, sorted=1)
    if bad is not None:
        good = b.op("ReduceSum", b.cast(b.op("Not", bad), "int64"), b.ints(axis), keepdims=1)
    else:
        good = b.op("ReduceSum", b.op("ConstantOfShape", b.shape(name), value=helper.make_tensor(
            "one", 7, [1], [1])), b.ints(axis), keepdims=1)  # fmt: skip
    one = b.const(1, np.int64)
    middle = b.op("Max", b.op("Div", b.op("Sub", good, one), b.const(2, np.int64)),
                  b.const(0, np.int64))  # fmt: skip
    found = b.op("GatherElements", values, middle, axis=axis)
    if bad is not None:
        none = b.op("Equal", good, b.const(0, np.int64))
        found = b.op("Where", none, b.scalar(math.nan, dtype), found)
    if dim is None:
        return b.op("Reshape", found, b.const(np.zeros(0, np.int64)))
    place = b.op("GatherElements", places, middle, axis=axis)
    if a.get("keepdim"):
        return [found, place]
    return [b.op("Squeeze", n, b.ints(axis)) for n in (found, place)]


@lowers("kron")
def _kron(b: Builder, a: Any) -> str:
    x, y = a.node.args
    dtype = a.out.dtype
    rank = max(len(x.sizes), len(y.sizes))
    if not rank:
        return str(b.op("Mul", b.of(x, dtype), b.of(y, dtype)))
    wide = []
    for v in (x, y):
        lead = list(range(rank - len(v.sizes)))
        name = b.of(v, dtype)
        wide.append(b.op("Unsqueeze", name, b.ints(*lead)) if lead else name)
    shape = b.op("Mul", *map(b.shape, wide))
    left = b.op("Unsqueeze", wide[0], b.ints(*range(1, 2 * rank, 2)))
    right = b.op("Unsqueeze", wide[1], b.ints(*range(0, 2 * rank, 2)))
    return str(b.op("Reshape", b.op("Mul", left, right), shape))


@lowers("mode")
def _mode(b: Builder, a: Any) -> list[str]:
    """The least of the commonest elements, and the last place where it stands."""
    x, dtype = a.input, a.input.dtype
    rank = len(x.sizes)
    if dtype not in (clew.float32, clew.float64, clew.int32, clew.int64):
        raise OnnxExporterError(f"onnx.export: mode() of {dtype.name}")
    if not rank:
        return [b.name(x), b.const(0, np.int64)]
    axis = a.get("dim", -1) % rank
    order = [*(d for d in range(rank) if d != axis), axis]
    name = b.op("Transpose", b.name(x), perm=order)
    same = b.op("Equal", b.op("Unsqueeze", name, b.ints(-1)), b.op("Unsqueeze", name, b.ints(-2)))
    counts = b.op("ReduceSum", b.cast(same, "int64"), b.ints(-1), keepdims=0)
    most = b.op("Equal", counts, b.op("ReduceMax", counts, b.ints(-1), keepdims=1))
    worst = math.inf if floating(dtype) else clew.iinfo(dtype).max
    value = b.op("ReduceMin", b.op("Where", most, name, b.scalar(worst, dtype)), b.ints(-1),
                 keepdims=1)  # fmt: skip
    hit = b.cast(b.op("Equal", name, value), "int32")
    place = b.op("ArgMax", hit, axis=-1, keepdims=1, select_last_index=1)
    found = []
    for n in (value, place):
        if a.get("keepdim"):
            found.append(b.op("Transpose", n, perm=[order.index(d) for d in range(rank)]))
        else:
            found.append(b.op("Squeeze", n, b.ints(-1)))
    return found
