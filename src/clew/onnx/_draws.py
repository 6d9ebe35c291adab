"""Random draws in ONNX: other numbers than clew's, of the same distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers

__all__ = ["DRAWS"]

# Calls whose results differ from run to run.
DRAWS = frozenset(
    """
    rand randn rand_like randn_like randint randint_like multinomial bernoulli normal ops._normal
    Tensor.uniform_ Tensor.normal_ Tensor.random_ Tensor.bernoulli_ Tensor.exponential_
    """.split()
)


def argument(a: Any, position: int, name: str, default: Any) -> Any:
    """An argument of a call that has no signature in the table; the first is the tensor."""
    args, kwargs = a.node.args, a.node.kwargs
    return args[position] if len(args) > position else kwargs.get(name, default)


def noise(b: Builder, like: str, dtype: Any, kind: str = "Uniform") -> str:
    """Numbers from [0, 1), or normal ones, for each element of a tensor."""
    if dtype not in (clew.float16, clew.float32, clew.float64):
        return b.cast(noise(b, like, clew.float32, kind), dtype)
    result: str = b.op(f"Random{kind}Like", like, dtype=b.element(dtype))
    return result


@lowers("Tensor.uniform")
def _uniform(b: Builder, a: Any) -> str:
    low, high = argument(a, 1, "from", 0.0), argument(a, 2, "to", 1.0)
    dtype = a.out.dtype
    width = b.op("Sub", b.scalar(high, dtype), b.scalar(low, dtype))
    scaled = b.op("Mul", noise(b, b.name(a.node.args[0]), dtype), width)
    return str(b.op("Add", scaled, b.scalar(low, dtype)))


@lowers("Tensor.normal")
def _normal_in_place(b: Builder, a: Any) -> str:
    mean, std = argument(a, 1, "mean", 0.0), argument(a, 2, "std", 1.0)
    dtype = a.out.dtype
    drawn = noise(b, b.name(a.node.args[0]), dtype, "Normal")
    return str(b.op("Add", b.op("Mul", drawn, b.scalar(std, dtype)), b.scalar(mean, dtype)))


@lowers("ops._normal")
def _normal(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    mean, std = b.of(a.input, dtype), b.of(a.std, dtype)
    both = b.op("Add", mean, std)  # of the shape that the two have together
    return str(b.op("Add", b.op("Mul", noise(b, both, dtype, "Normal"), std), mean))


@lowers("normal")
def _normal_of(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    mean, std = argument(a, 0, "mean", 0.0), argument(a, 1, "std", 1.0)
    size = argument(a, 2, "size", None)
    if size is None:
        both = b.op("Add", b.of(mean, dtype), b.of(std, dtype))
    else:
        shape = b.vector(size) if size else b.const(np.zeros(0, np.int64))
        both = b.op("Expand", b.scalar(0, dtype), shape)
    scaled = b.op("Mul", noise(b, both, dtype, "Normal"), b.of(std, dtype))
    return str(b.op("Add", scaled, b.of(mean, dtype)))


@lowers("Tensor.exponential")
def _exponential(b: Builder, a: Any) -> str:
    rate, dtype = argument(a, 1, "lambd", 1.0), a.out.dtype
    rest = b.op("Sub", b.scalar(1, dtype), noise(b, b.name(a.node.args[0]), dtype))
    return str(b.op("Div", b.op("Neg", b.op("Log", rest)), b.scalar(rate, dtype)))


def _whole(b: Builder, like: str, low: Any, high: Any, dtype: Any) -> str:
    """Whole numbers from [low, high)."""
    first, end = b.scalar(low, "float64"), b.scalar(high, "float64")
    scaled = b.op("Mul", noise(b, like, clew.float64), b.op("Sub", end, first))
    return b.cast(b.op("Floor", b.op("Add", scaled, first)), dtype)


@lowers("Tensor.random")
def _random(b: Builder, a: Any) -> str:
    low, high = argument(a, 1, "from", 0), argument(a, 2, "to", None)
    dtype = a.out.dtype
    if high is None and len(a.node.args) == 2:
        low, high = 0, low
    if high is None:
        bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "int64": 63}
        bits |= {"uint8": 8, "int8": 7, "int16": 15, "int32": 31, "bool": 1}
        high = 2 ** bits[dtype.name] + (dtype.is_floating_point and low == 0)
    if isinstance(high, int) and high > 2**53:
        raise OnnxExporterError(
            "onnx.export: random_() up to 2^63, which a float64 cannot tell apart; give `to`"
        )
    return _whole(b, b.name(a.node.args[0]), low, high, dtype)


@lowers("randint", "randint_like")
def _randint(b: Builder, a: Any) -> str:
    like = a.node.op == "randint_like"
    numbers = list(a.node.args[1:] if like else a.node.args)
    size = a.node.kwargs.get("size")
    if not like and size is None:
        size = numbers.pop()
    low = a.node.kwargs.get("low", numbers[0] if len(numbers) > 1 else 0)
    high = a.node.kwargs.get("high", numbers[-1] if numbers else None)
    if like:
        base = b.name(a.node.args[0])
    else:
        shape = b.vector(size) if size else b.const(np.zeros(0, np.int64))
        base = b.op("Expand", b.scalar(0, "float64"), shape)
    return _whole(b, base, low, high, a.out.dtype)


@lowers("bernoulli", "Tensor.bernoulli")
def _bernoulli(b: Builder, a: Any) -> str:
    x, dtype = a.node.args[0], a.out.dtype
    own = a.node.op == "bernoulli"
    p = a.get("p") if own else argument(a, 1, "p", 0.5)
    kind = dtype if dtype in (clew.float32, clew.float64) else clew.float32
    chance = b.of(x if p is None else p, kind)
    return b.cast(b.op("Less", noise(b, b.name(x), kind), chance), dtype)


@lowers("multinomial")
def _multinomial(b: Builder, a: Any) -> str:
    """A race: the category of the least exponential number over its weight comes first."""
    weights = b.of(a.input, clew.float32)
    shape = b.shape(weights)
    count = b.op("Unsqueeze", b.scalar(a.num_samples, "int64"), b.ints(0))
    if a.replacement:
        before = b.op("Slice", shape, b.ints(0), b.ints(-1), b.ints(0))
        last = b.op("Slice", shape, b.ints(-1), b.ints(2**31), b.ints(0))
        races = b.op("Concat", before, count, last, axis=0)
        weights = b.op("Expand", b.op("Unsqueeze", weights, b.ints(-2)), races)
    rest = b.op("Sub", b.scalar(1, "float32"), noise(b, weights, clew.float32))
    times = b.op("Div", b.op("Neg", b.op("Log", rest)), weights)
    runs = b.op("Greater", weights, b.scalar(0, "float32"))
    times = b.op("Where", runs, times, b.scalar(math.inf, "float32"))
    if a.replacement:
        return str(b.op("ArgMin", times, axis=-1, keepdims=0))
    return str(b.op("TopK", times, count, n=2, axis=-1, largest=0, sorted=1)[1])
