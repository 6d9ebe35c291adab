"""Numbers of a program in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew.export._ir import Value
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers

# ---- numbers ----

_NUMBER = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "mod": "Mod", "eq": "Equal", "lt": "Less",
    "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "min": "Min", "max": "Max",
}  # fmt: skip


def _kind(x: Any) -> str:
    return x.kind if isinstance(x, Value) else type(x).__name__


def _number(b: Builder, a: Any) -> str:
    name = a.node.op[3:]
    args = a.node.args
    kinds = {_kind(x) for x in args}
    out = {"int": "int64", "float": "float64", "bool": "bool"}[a.out.kind]
    if name in ("both", "either", "not", "and", "or", "xor") and kinds == {"bool"}:
        parts = [b.condition(x) for x in args]
        if name == "not":
            return b.op("Not", parts[0])
        return b.op({"both": "And", "and": "And", "xor": "Xor"}.get(name, "Or"), *parts)
    if name in ("int", "float", "bool"):
        return b.scalar(args[0], out)
    common = "float64" if "float" in (*kinds, a.out.kind) or name == "truediv" else "int64"
    if kinds == {"bool"} and name in ("eq", "ne"):
        common = "bool"
    parts = [b.scalar(x, common) for x in args]
    if name == "ne":
        return b.op("Not", b.op("Equal", *parts))
    if name == "truediv":
        return b.op("Div", *parts)
    if name == "floordiv":
        if common == "float64":
            return b.op("Floor", b.op("Div", *parts))
        return b.op("Div", b.op("Sub", parts[0], b.op("Mod", *parts)), parts[1])
    if name == "mod" and common == "float64":
        whole = b.op("Floor", b.op("Div", *parts))
        return b.op("Sub", parts[0], b.op("Mul", whole, parts[1]))
    if name == "pow":
        return b.op("Pow", *parts)
    if name in ("lshift", "rshift"):
        power = b.op("Pow", b.const(2, np.int64), parts[1])
        if name == "lshift":
            return b.op("Mul", parts[0], power)
        return b.op("Div", b.op("Sub", parts[0], b.op("Mod", parts[0], power)), power)
    if name in _NUMBER:
        return b.op(_NUMBER[name], *parts)
    if name in ("neg", "abs"):
        return b.op(name.capitalize(), parts[0])
    if name == "pos":
        return parts[0]
    if name in ("and", "or", "xor"):
        return b.op(f"Bitwise{name.capitalize()}", *parts)
    if name in ("math.isnan", "math.isinf"):
        return b.op(f"Is{'NaN' if name == 'math.isnan' else 'Inf'}", b.scalar(args[0], "float64"))
    if len(args) == 1 and name in (
        "round", "math.floor", "math.ceil", "math.trunc", "math.isqrt"
    ):  # fmt: skip
        x = b.scalar(args[0], "float64")
        kind = {"round": "Round", "math.ceil": "Ceil"}.get(name, "Floor")
        if name == "math.isqrt":
            x = b.op("Sqrt", x)
        return b.cast(x if name == "math.trunc" else b.op(kind, x), out)
    if name.startswith("math."):
        x = b.cast(b.scalar(args[0], "float64"), "float32")
        what = name[5:]
        if what in ("log2", "log10"):
            base = b.const(math.log(2 if what == "log2" else 10), np.float32)
            return b.cast(b.op("Div", b.op("Log", x), base), "float64")
        if what in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "fabs"):
            kind = {"fabs": "Abs"}.get(what, what.capitalize())
            if kind in ("Sqrt", "Log", "Exp", "Abs"):
                return b.op(kind, b.scalar(args[0], "float64"))
            return b.cast(b.op(kind, x), "float64")
        if what == "pow":
            return b.op("Pow", *[b.scalar(p, "float64") for p in args])
    raise OnnxExporterError(f"onnx.export: ONNX has no way to write {name} of numbers")


def _register_numbers() -> None:
    from clew.export._names import NUMBERS

    for name in NUMBERS:
        lowers(f"py.{name}")(_number)


_register_numbers()


@lowers("size")
def _size(b: Builder, a: Any) -> str:
    x, d = a.node.args
    return b.dim_of(x, d)


@lowers("numel")
def _numel(b: Builder, a: Any) -> str:
    result: str = b.op("Size", b.name(a.node.args[0]))
    return result


@lowers("item")
def _item(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    out = {"int": "int64", "float": "float64", "bool": "bool"}[a.out.kind]
    name = b.name(x)
    if x.sizes:
        name = b.op("Reshape", name, b.const(np.zeros(0, np.int64)))
    return name if x.dtype.name == out else b.cast(name, out)
