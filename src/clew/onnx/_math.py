"""Elementwise operations, reductions, products and numbers in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._draws import argument
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
    raise OnnxExporterError("onnx.export: tensordot(); write it as einsum or matmul")


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
