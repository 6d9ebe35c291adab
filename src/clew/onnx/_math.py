"""Elementwise operations in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import _KINDS, Builder, lowers, promoted

_FLOATING = (clew.float16, clew.bfloat16, clew.float32, clew.float64)


def floating(dtype: Any) -> bool:
    """Whether a dtype is of floating numbers."""
    return dtype in _FLOATING


# ---- one tensor ----

_UNARY = {
    "abs": "Abs", "absolute": "Abs", "neg": "Neg", "negative": "Neg", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "arcsin": "Asin",
    "acos": "Acos", "arccos": "Acos", "atan": "Atan", "arctan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "asinh": "Asinh", "arcsinh": "Asinh", "acosh": "Acosh", "arccosh": "Acosh",
    "atanh": "Atanh", "arctanh": "Atanh", "tanh": "Tanh", "nn.functional.tanh": "Tanh",
    "sigmoid": "Sigmoid", "nn.functional.sigmoid": "Sigmoid", "special.expit": "Sigmoid",
    "erf": "Erf", "special.erf": "Erf", "ceil": "Ceil", "floor": "Floor", "sign": "Sign",
    "reciprocal": "Reciprocal", "relu": "Relu", "nn.functional.relu": "Relu",
    "nn.functional.softsign": "Softsign", "isnan": "IsNaN", "nn.functional.mish": "Mish",
    "nn.functional.hardswish": "HardSwish", "logical_not": "Not", "sgn": "Sign",
}  # fmt: skip
_AS_FLOAT = {"Asinh", "Acosh", "Atanh", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tan", "Mish"}


def _unary(b: Builder, a: Any) -> str:
    kind = _UNARY[a.node.op]
    x = a.input
    if kind == "Not":
        return b.op("Not", b.of(x, clew.bool))
    if kind == "IsNaN":
        name = b.of(x, x.dtype if floating(x.dtype) else clew.float32)
        return b.op("IsNaN", name)
    if kind in ("Ceil", "Floor") and not floating(x.dtype):
        return b.name(x)
    if kind == "Relu" and not floating(x.dtype):
        return b.op("Max", b.name(x), b.scalar(0, x.dtype))
    name = b.of(x, a.out.dtype)
    if kind in _AS_FLOAT and a.out.dtype != clew.float32:
        return b.cast(b.op(kind, b.cast(name, "float32")), a.out.dtype)
    result: str = b.op(kind, name)
    return result


for _name in _UNARY:
    lowers(_name)(_unary)


def _composed(b: Builder, a: Any, formula: Any) -> str:
    """A formula of the input and a function that makes constants of its dtype."""
    dtype = a.out.dtype
    result: str = formula(b.of(a.input, dtype), lambda v: b.scalar(v, dtype))
    return result


def _formula(*names: str) -> Any:
    def register(formula: Any) -> Any:
        lowers(*names)(lambda b, a: _composed(b, a, lambda x, c: formula(b, a, x, c)))
        return formula

    return register


@_formula("rsqrt")
def _rsqrt(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Reciprocal", b.op("Sqrt", x))


@_formula("square")
def _square(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Mul", x, x)


@_formula("exp2", "special.exp2")
def _exp2(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Exp", b.op("Mul", x, c(math.log(2))))


@_formula("expm1", "special.expm1")
def _expm1(b: Builder, a: Any, x: str, c: Any) -> str:
    # (e^h - e^-h) e^h with h = x/2 keeps the digits of small x.
    h = b.op("Mul", x, c(0.5))
    small = b.op("Mul", b.op("Exp", h), b.op("Mul", c(2.0), _sinh(b, h)))
    return b.op("Where", b.op("Less", b.op("Abs", x), c(0.5)), small,
                b.op("Sub", b.op("Exp", x), c(1.0)))  # fmt: skip


def _sinh(b: Builder, h: str) -> str:
    result: str = b.op("Sinh", h)
    return result


@_formula("log1p", "special.log1p")
def _log1p(b: Builder, a: Any, x: str, c: Any) -> str:
    one = c(1.0)
    u = b.op("Add", x, one)
    d = b.op("Sub", u, one)
    near = b.op("Equal", d, c(0.0))
    ratio = b.op("Div", b.op("Mul", b.op("Log", u), x), b.op("Where", near, one, d))
    good = b.op("Where", near, x, ratio)
    return b.op("Where", b.op("IsInf", u), u, good)


@_formula("log2")
def _log2(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Div", b.op("Log", x), c(math.log(2)))


@_formula("log10")
def _log10(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Div", b.op("Log", x), c(math.log(10)))


@_formula("erfc", "special.erfc")
def _erfc(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Sub", c(1.0), b.op("Erf", x))


@_formula("special.ndtr")
def _ndtr(b: Builder, a: Any, x: str, c: Any) -> str:
    erf = b.op("Erf", b.op("Mul", x, c(math.sqrt(0.5))))
    return b.op("Mul", b.op("Add", erf, c(1.0)), c(0.5))


@_formula("trunc", "fix")
def _trunc(b: Builder, a: Any, x: str, c: Any) -> str:
    if not floating(a.out.dtype):
        return x
    return b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x)))


@_formula("frac")
def _frac(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Sub", x, _trunc(b, a, x, c))


@_formula("round", "special.round")
def _round(b: Builder, a: Any, x: str, c: Any) -> str:
    if not floating(a.out.dtype):
        return x
    digits = a.get("decimals", 0)
    if not digits:
        return b.op("Round", x)
    scale = c(10.0 ** abs(digits))
    up, down = ("Mul", "Div") if digits > 0 else ("Div", "Mul")
    return b.op(down, b.op("Round", b.op(up, x, scale)), scale)


@_formula("deg2rad")
def _deg2rad(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Mul", x, c(math.pi / 180))


@_formula("rad2deg")
def _rad2deg(b: Builder, a: Any, x: str, c: Any) -> str:
    return b.op("Mul", x, c(180 / math.pi))


@_formula("sinc", "special.sinc")
def _sinc(b: Builder, a: Any, x: str, c: Any) -> str:
    y = b.op("Mul", x, c(math.pi))
    zero = b.op("Equal", y, c(0.0))
    safe = b.op("Where", zero, c(1.0), y)
    return b.op("Where", zero, c(1.0), b.op("Div", b.op("Sin", safe), safe))


@_formula("logit", "special.logit", "ops._logit")
def _logit(b: Builder, a: Any, x: str, c: Any) -> str:
    eps = a.get("eps")
    if eps is not None:
        x = b.op("Min", b.op("Max", x, c(eps)), c(1 - eps))
    return b.op("Log", b.op("Div", x, b.op("Sub", c(1.0), x)))


@_formula("special.entr")
def _entr(b: Builder, a: Any, x: str, c: Any) -> str:
    zero = b.op("Equal", x, c(0.0))
    value = b.op("Neg", b.op("Mul", x, b.op("Log", b.op("Where", zero, c(1.0), x))))
    return b.op("Where", b.op("Less", x, c(0.0)), c(-math.inf), value)


@_formula("nan_to_num", "ops._nan_to_num")
def _nan_to_num(b: Builder, a: Any, x: str, c: Any) -> str:
    dtype = a.out.dtype
    if not floating(dtype):
        return x
    limits = clew.finfo(dtype)
    nan, top, low = a.get("nan"), a.get("posinf"), a.get("neginf")
    x = b.op("Where", b.op("IsNaN", x), c(0.0 if nan is None else nan), x)
    up = b.op("IsInf", x, detect_negative=0)
    down = b.op("IsInf", x, detect_positive=0)
    x = b.op("Where", up, c(limits.max if top is None else top), x)
    return b.op("Where", down, c(limits.min if low is None else low), x)


@lowers("isinf", "isposinf", "isneginf", "isfinite")
def _isinf(b: Builder, a: Any) -> str:
    x = b.of(a.input, a.input.dtype if floating(a.input.dtype) else clew.float32)
    op = a.node.op
    inf: str = b.op(
        "IsInf", x, detect_positive=int(op != "isneginf"), detect_negative=int(op != "isposinf")
    )
    if op != "isfinite":
        return inf
    result: str = b.op("Not", b.op("Or", inf, b.op("IsNaN", x)))
    return result


@lowers("signbit")
def _signbit(b: Builder, a: Any) -> str:
    x = b.name(a.input)
    zero = b.scalar(0, a.input.dtype)
    if not floating(a.input.dtype):
        return b.op("Less", x, zero) if a.input.dtype != clew.bool else b.op("And", x, b.op(
            "Not", x))  # fmt: skip
    inverse = b.op("Less", b.op("Reciprocal", x), zero)  # tells -0 from 0
    result: str = b.op("Or", b.op("Less", x, zero), b.op("And", b.op("Equal", x, zero), inverse))
    return result


@lowers("isreal")
def _isreal(b: Builder, a: Any) -> str:
    shape = b.shape(b.name(a.input))
    result: str = b.op("Expand", b.const(True, np.bool_), shape)
    return result


@lowers("clone", "Tensor.clone", "Tensor.detach", "Tensor.contiguous", "alias", "positive",
        "resolve_conj", "resolve_neg", "Tensor.cpu", "conj_physical", "ops.clone",
        "ops.contiguous", "real", "conj", "nn.functional.alpha_dropout", "alpha_dropout",
        "feature_dropout", "nn.functional.feature_alpha_dropout")  # fmt: skip
def _same(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    if "dropout" in a.node.op and a.get("training", True) and a.get("p", 0.5):
        raise OnnxExporterError(f"onnx.export: {a.node.op} in training mode; call model.eval()")
    return b.name(x) if isinstance(x, Value) else b.scalar(x, _KINDS[a.out.kind])


@lowers("dropout", "nn.functional.dropout", "nn.functional.dropout1d",
        "nn.functional.dropout2d", "nn.functional.dropout3d")  # fmt: skip
def _dropout(b: Builder, a: Any) -> str:
    if a.get("training", True) and a.get("p", 0.5):
        raise OnnxExporterError(f"onnx.export: {a.node.op} in training mode; call model.eval()")
    return b.name(a.input)


@lowers("Tensor.to", "Tensor.type", "Tensor.type_as", "ops._to_dtype",
        *(f"Tensor.{n}" for n in ("float double half bfloat16 int long short char byte bool "
                                  "cfloat cdouble").split()))  # fmt: skip
def _to(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    name = b.name(x)
    if x.dtype == a.out.dtype:
        return name
    if floating(x.dtype) and not floating(a.out.dtype) and a.out.dtype != clew.bool:
        name = b.op("Mul", b.op("Sign", name), b.op("Floor", b.op("Abs", name)))
    return b.cast(name, a.out.dtype)


# ---- two tensors ----


@lowers("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide", "rsub")
def _arithmetic(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    op = a.node.op
    x, y = a.input, a.other
    if op == "rsub":
        x, y, op = y, x, "sub"
    if a.get("rounding_mode") is not None:
        return _divided(b, a, a.rounding_mode)
    left, right = b.of(x, dtype), b.of(y, dtype)
    alpha = a.get("alpha", 1)
    if not (type(alpha) is int and alpha == 1):
        right = b.op("Mul", right, b.scalar(alpha, dtype))
    kind = {"add": "Add", "sub": "Sub", "subtract": "Sub", "mul": "Mul", "multiply": "Mul"}.get(
        op, "Div"
    )
    if dtype == clew.bool:
        return b.op({"Add": "Or", "Mul": "And"}[kind], left, right)
    return b.op(kind, left, right)


def _divided(b: Builder, a: Any, mode: str) -> str:
    dtype = a.out.dtype
    x, y = b.of(a.input, dtype), b.of(a.other, dtype)
    if floating(dtype):
        quotient = b.op("Div", x, y)
        if mode == "floor":
            return b.op("Floor", quotient)
        return b.op("Mul", b.op("Sign", quotient), b.op("Floor", b.op("Abs", quotient)))
    if mode == "trunc":
        return b.op("Div", x, y)
    return b.op("Div", b.op("Sub", x, b.op("Mod", x, y)), y)


@lowers("floor_divide", "ops._div_floor")
def _floor_divide(b: Builder, a: Any) -> str:
    return _divided(b, a, "floor")


@lowers("ops._div_trunc")
def _trunc_divide(b: Builder, a: Any) -> str:
    return _divided(b, a, "trunc")


@lowers("remainder", "fmod")
def _remainder(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    x, y = b.of(a.input, dtype), b.of(a.other, dtype)
    if a.node.op == "fmod":
        return b.op("Mod", x, y, fmod=1)
    if not floating(dtype):
        return b.op("Mod", x, y)
    # The sign of the divisor, from the exact remainder with the sign of the dividend.
    zero = b.scalar(0, dtype)
    r = b.op("Mod", x, y, fmod=1)
    other = b.op("And", b.op("Not", b.op("Equal", r, zero)),
                 b.op("Xor", b.op("Less", r, zero), b.op("Less", y, zero)))  # fmt: skip
    return b.op("Where", other, b.op("Add", r, y), r)


@lowers("pow", "float_power")
def _pow(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    y = a.exponent
    if not isinstance(y, Value) and y == 2 and isinstance(a.input, Value):
        x = b.of(a.input, dtype)
        return b.op("Mul", x, x)
    if not isinstance(y, Value) and y == 0.5:
        return b.op("Sqrt", b.of(a.input, dtype))
    return b.op("Pow", b.of(a.input, dtype), b.of(y, dtype))


_COMPARE = {
    "eq": "Equal", "ne": "Equal", "not_equal": "Equal", "lt": "Less", "less": "Less",
    "le": "LessOrEqual", "less_equal": "LessOrEqual", "gt": "Greater", "greater": "Greater",
    "ge": "GreaterOrEqual", "greater_equal": "GreaterOrEqual",
}  # fmt: skip


@lowers(*_COMPARE)
def _compare(b: Builder, a: Any) -> str:
    dtype = promoted(a.input, a.other)
    if dtype == clew.bool and not a.node.op.startswith(("eq", "ne", "not")):
        dtype = clew.int32
    found: str = b.op(_COMPARE[a.node.op], b.of(a.input, dtype), b.of(a.other, dtype))
    return b.op("Not", found) if a.node.op in ("ne", "not_equal") else found


@lowers("logical_and", "logical_or", "logical_xor")
def _logical(b: Builder, a: Any) -> str:
    kind = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}[a.node.op]
    result: str = b.op(kind, b.of(a.input, clew.bool), b.of(a.other, clew.bool))
    return result


@lowers("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
        "bitwise_left_shift", "bitwise_right_shift")  # fmt: skip
def _bits(b: Builder, a: Any) -> str:
    what = a.node.op[8:]
    dtype = a.out.dtype
    x = b.of(a.input, dtype)
    if what == "not":
        return b.op("Not", x) if dtype == clew.bool else b.op("BitwiseNot", x)
    y = b.of(a.other, dtype)
    if what.endswith("shift"):
        if dtype in (clew.int8, clew.int16, clew.int32, clew.int64):
            power = b.cast(b.op("Pow", b.const(2.0, np.float64), b.cast(y, "float64")), dtype)
            if what == "left_shift":
                return b.op("Mul", x, power)
            return b.op("Div", b.op("Sub", x, b.op("Mod", x, power)), power)
        return b.op("BitShift", x, y, direction="LEFT" if what == "left_shift" else "RIGHT")
    if dtype == clew.bool:
        return b.op({"and": "And", "or": "Or", "xor": "Xor"}[what], x, y)
    return b.op(f"Bitwise{what.capitalize()}", x, y)


@lowers("maximum", "minimum", "fmax", "fmin")
def _larger(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    x, y = b.of(a.input, dtype), b.of(a.other, dtype)
    kind = "Max" if "max" in a.node.op else "Min"
    if a.node.op in ("fmax", "fmin") and floating(dtype):
        x, y = (b.op("Where", b.op("IsNaN", x), y, x), b.op("Where", b.op("IsNaN", y), x, y))
    if dtype == clew.bool:
        return b.op("Or" if kind == "Max" else "And", x, y)
    return b.op(kind, x, y)


@lowers("atan2", "arctan2")
def _atan2(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    y, x = b.of(a.input, dtype), b.of(a.other, dtype)
    c = lambda v: b.scalar(v, dtype)  # noqa: E731
    zero = c(0.0)
    at_zero = b.op("Equal", x, zero)
    base = b.op("Atan", b.op("Div", y, b.op("Where", at_zero, c(1.0), x)))
    up = b.op("GreaterOrEqual", y, zero)
    left = b.op("Where", up, b.op("Add", base, c(math.pi)), b.op("Sub", base, c(math.pi)))
    found = b.op("Where", b.op("Less", x, zero), left, base)
    vertical = b.op("Mul", b.op("Sign", y), c(math.pi / 2))
    result: str = b.op("Where", at_zero, vertical, found)
    return result


@lowers("hypot", "logaddexp", "logaddexp2", "copysign", "xlogy", "special.xlogy",
        "special.xlog1py", "heaviside", "ldexp")  # fmt: skip
def _pairs(b: Builder, a: Any) -> str:
    dtype, op = a.out.dtype, a.node.op
    x = b.of(a.input, dtype)
    y = b.of(a["values"] if op == "heaviside" else a.other, dtype)
    c = lambda v: b.scalar(v, dtype)  # noqa: E731
    if op == "hypot":
        found = b.op("Sqrt", b.op("Add", b.op("Mul", x, x), b.op("Mul", y, y)))
    elif op == "ldexp":
        found = b.op("Mul", x, b.op("Pow", c(2.0), y))
    elif op == "heaviside":
        positive = b.op("Where", b.op("Greater", x, c(0.0)), c(1.0), c(0.0))
        found = b.op("Where", b.op("Equal", x, c(0.0)), y, positive)
    elif op == "copysign":
        negative = b.op("Or", b.op("Less", y, c(0.0)), b.op("Less", b.op("Reciprocal", y), c(0.0)))
        size = b.op("Abs", x)
        found = b.op("Where", negative, b.op("Neg", size), size)
    elif op.startswith("logaddexp"):
        scale = math.log(2) if op.endswith("2") else 1.0
        top = b.op("Max", x, y)
        gap = b.op("Mul", b.op("Neg", b.op("Abs", b.op("Sub", x, y))), c(scale))
        rest = b.op("Log", b.op("Add", c(1.0), b.op("Exp", gap)))
        found = b.op("Add", top, b.op("Div", rest, c(scale)))
    else:
        zero = b.op("And", b.op("Equal", x, c(0.0)), b.op("Not", b.op("IsNaN", y)))
        inner = b.op("Add", y, c(1.0)) if op.endswith("1py") else y
        found = b.op("Where", zero, c(0.0), b.op("Mul", x, b.op("Log", inner)))
    return str(found)


@lowers("where", "ops._where")
def _where(b: Builder, a: Any) -> Any:
    condition = a.get("condition")
    if condition is None:
        raise OnnxExporterError("onnx.export: where() with a scalar first")
    if a.get("input") is None and a.get("other") is None:
        nz = b.op("NonZero", b.name(condition))
        return [
            b.op("Gather", nz, b.const(k, np.int64), axis=0) for k in range(len(a.node.outputs))
        ]
    dtype = a.out.dtype
    return b.op("Where", b.of(condition, clew.bool), b.of(a.input, dtype), b.of(a.other, dtype))


@lowers("masked_fill")
def _masked_fill(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    result: str = b.op("Where", b.name(a.mask), b.of(a.value, dtype), b.name(a.input))
    return result


@lowers("clamp", "clip", "clamp_min", "clamp_max", "ops._clamp", "ops._clamp_between")
def _clamp(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    x = b.of(a.input, dtype)
    for key, kind in (("min", "Max"), ("max", "Min")):
        bound = a.get(key)
        if bound is not None:
            x = b.op(kind, x, b.of(bound, dtype))
    return x


@lowers("lerp")
def _lerp(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    x, y = b.name(a.input), b.name(a.end)
    result: str = b.op("Add", x, b.op("Mul", b.of(a.weight, dtype), b.op("Sub", y, x)))
    return result


@lowers("addcmul", "addcdiv")
def _addcmul(b: Builder, a: Any) -> str:
    dtype = a.out.dtype
    kind = "Mul" if a.node.op == "addcmul" else "Div"
    part = b.op(kind, b.of(a.tensor1, dtype), b.of(a.tensor2, dtype))
    part = b.op("Mul", part, b.scalar(a.get("value", 1), dtype))
    result: str = b.op("Add", b.of(a.input, dtype), part)
    return result


@lowers("isclose")
def _isclose(b: Builder, a: Any) -> str:
    x, y = b.name(a.input), b.name(a.other)
    dtype = a.input.dtype
    bound = b.op("Add", b.scalar(a.atol, dtype), b.op("Mul", b.scalar(a.rtol, dtype), b.op(
        "Abs", y)))  # fmt: skip
    near = b.op("LessOrEqual", b.op("Abs", b.op("Sub", x, y)), bound)
    finite = b.op("Not", b.op("Or", b.op("IsInf", x), b.op("IsInf", y)))
    found = b.op("Or", b.op("Equal", x, y), b.op("And", near, finite))
    if a.get("equal_nan"):
        found = b.op("Or", found, b.op("And", b.op("IsNaN", x), b.op("IsNaN", y)))
    return str(found)
