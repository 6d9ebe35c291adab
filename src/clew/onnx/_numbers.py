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
    if name == "round":
        return _rounded(b, a, *args)
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


def _rounded(b: Builder, a: Any, x: Any, digits: Any) -> str:
    """round(x, digits), as Python does it: by the number's exact value, and a tie to the even."""
    if isinstance(digits, Value) or abs(digits) > 15:
        raise OnnxExporterError("onnx.export: round() to digits that vary, or to more than 15")
    if a.out.kind == "int":
        x = b.scalar(x, "int64")
        if digits >= 0:
            return str(x)
        step, two = b.const(10**-digits, np.int64), b.const(2, np.int64)
        left = b.op("Mod", x, step)
        whole = b.op("Div", b.op("Sub", x, left), step)
        twice = b.op("Sub", b.op("Mul", left, two), step)
        odd = b.cast(b.op("Mod", whole, two), "bool")
        zero = b.const(0, np.int64)
        up = b.op("Or", b.op("Greater", twice, zero),
                  b.op("And", b.op("Equal", twice, zero), odd))  # fmt: skip
        return str(b.op("Mul", b.op("Add", whole, b.cast(up, "int64")), step))
    x = b.scalar(x, "float64")
    number = lambda v: b.const(float(v), np.float64)  # noqa: E731
    step = number(10 ** abs(digits))
    scaled = b.op("Mul" if digits >= 0 else "Div", x, step)
    below = b.op("Floor", scaled)
    # What the product or the quotient lost decides where it looks like a tie.
    lost = (
        _product_error(b, x, step, scaled)
        if digits >= 0
        else b.op("Sub", x, b.op("Mul", scaled, step))
    )
    beyond = b.op("Sub", b.op("Sub", scaled, below), number(0.5))
    tie = b.op("Equal", beyond, number(0))
    side = b.op("Where", tie, lost, beyond)
    odd = b.op("Sub", below, b.op("Mul", b.op("Floor", b.op("Div", below, number(2))), number(2)))
    up = b.op("Or", b.op("Greater", side, number(0)),
              b.op("And", b.op("Equal", side, number(0)), b.cast(odd, "bool")))  # fmt: skip
    near = b.op("Add", below, b.cast(up, "float64"))
    found = b.op("Div" if digits >= 0 else "Mul", near, step)
    if digits < 0:
        return str(found)
    small = b.op("Less", b.op("Abs", scaled), number(2.0**52))
    return str(b.op("Where", small, found, x))  # larger ones have no such digits


def _product_error(b: Builder, x: str, y: str, product: str) -> str:
    """Exactly x * y - product: of Dekker's halves."""

    def halves(z: str) -> tuple[str, str]:
        wide = b.op("Mul", z, b.const(134217729.0, np.float64))
        high = b.op("Sub", wide, b.op("Sub", wide, z))
        return high, b.op("Sub", z, high)

    (a, c), (d, e) = halves(x), halves(y)
    found = b.op("Sub", b.op("Mul", a, d), product)
    for p, q in ((a, e), (c, d), (c, e)):
        found = b.op("Add", found, b.op("Mul", p, q))
    return str(found)


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
