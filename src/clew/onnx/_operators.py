"""ONNX's operators, written with clew's operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew.onnx._errors import OnnxExporterError

__all__ = ["OPERATORS", "dtype_of", "operator"]

F = clew.nn.functional
OPERATORS: dict[str, Callable[..., Any]] = {}
_DTYPES = {
    1: clew.float32, 2: clew.uint8, 3: clew.int8, 4: clew.uint16, 5: clew.int16, 6: clew.int32,
    7: clew.int64, 9: clew.bool, 10: clew.float16, 11: clew.float64, 12: clew.uint32,
    13: clew.uint64, 14: clew.complex64, 15: clew.complex128, 16: clew.bfloat16,
}  # fmt: skip


def dtype_of(number: int) -> Any:
    """A dtype by ONNX's number."""
    if number not in _DTYPES:
        raise OnnxExporterError(f"onnx.load: elements of type {number} are not read")
    return _DTYPES[number]


def operator(*names: str) -> Callable[[Any], Any]:
    """A decorator: the function runs these operators."""

    def register(function: Any) -> Any:
        for name in names:
            OPERATORS[name] = function
        return function

    return register


def ints(x: Any) -> list[int]:
    """A vector of ints as a list."""
    return [] if x is None else [int(v) for v in x.reshape(-1).tolist()]


def _simple(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, env, *x: function(*x)


_SIMPLE: dict[str, Callable[..., Any]] = {
    "Abs": clew.abs, "Neg": clew.neg, "Exp": clew.exp, "Log": clew.log, "Sqrt": clew.sqrt,
    "Sin": clew.sin, "Cos": clew.cos, "Tan": clew.tan, "Asin": clew.asin, "Acos": clew.acos,
    "Atan": clew.atan, "Sinh": clew.sinh, "Cosh": clew.cosh, "Asinh": clew.asinh,
    "Acosh": clew.acosh, "Atanh": clew.atanh, "Tanh": clew.tanh, "Sigmoid": clew.sigmoid,
    "Erf": clew.erf, "Ceil": clew.ceil, "Floor": clew.floor, "Round": clew.round,
    "Sign": clew.sign, "Reciprocal": clew.reciprocal, "Relu": clew.relu, "Not": clew.logical_not,
    "Softplus": F.softplus, "Softsign": F.softsign, "Mish": F.mish, "HardSwish": F.hardswish,
    "IsNaN": clew.isnan, "Add": clew.add, "Sub": clew.sub, "Mul": clew.mul,
    "Pow": lambda x, y: clew.pow(x, y).to(x.dtype),
    "MatMul": clew.matmul, "Equal": clew.eq, "Less": clew.lt, "Greater": clew.gt,
    "LessOrEqual": clew.le, "GreaterOrEqual": clew.ge, "And": clew.logical_and,
    "Or": clew.logical_or, "Xor": clew.logical_xor, "BitwiseAnd": clew.bitwise_and,
    "BitwiseOr": clew.bitwise_or, "BitwiseXor": clew.bitwise_xor, "BitwiseNot": clew.bitwise_not,
    "Where": clew.where, "Identity": lambda x: x, "Det": lambda x: clew.linalg.det(x),
}  # fmt: skip
for _name, _function in _SIMPLE.items():
    OPERATORS[_name] = _simple(_function)


@operator("Div")
def _div(a: Any, env: Any, x: Tensor, y: Tensor) -> Tensor:
    return clew.div(x, y) if x.is_floating_point() else clew.div(x, y, rounding_mode="trunc")


@operator("Mod")
def _mod(a: Any, env: Any, x: Tensor, y: Tensor) -> Tensor:
    return clew.fmod(x, y) if a.get("fmod") else clew.remainder(x, y)


@operator("BitShift")
def _shift(a: Any, env: Any, x: Tensor, y: Tensor) -> Tensor:
    left = a["direction"] == "LEFT"
    return clew.bitwise_left_shift(x, y) if left else clew.bitwise_right_shift(x, y)


def _fold(name: str, function: Any, mean: bool = False) -> None:
    def run(a: Any, env: Any, *x: Tensor) -> Tensor:
        total = x[0]
        for y in x[1:]:
            total = function(total, y)
        return total / len(x) if mean else total

    OPERATORS[name] = run


_fold("Min", clew.minimum)
_fold("Max", clew.maximum)
_fold("Sum", clew.add)
_fold("Mean", clew.add, True)


@operator("IsInf")
def _isinf(a: Any, env: Any, x: Tensor) -> Tensor:
    up, down = a.get("detect_positive", 1), a.get("detect_negative", 1)
    if up and down:
        return clew.isinf(x)
    return clew.isposinf(x) if up else clew.isneginf(x) if down else clew.zeros_like(x).bool()


@operator("Clip")
def _clip(a: Any, env: Any, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    low = a.get("min", low)
    high = a.get("max", high)
    for bound, function in ((low, clew.maximum), (high, clew.minimum)):
        if bound is not None:
            x = function(x, clew.as_tensor(bound, dtype=x.dtype))
    return x


@operator("Cast", "CastLike")
def _cast(a: Any, env: Any, x: Tensor, like: Any = None) -> Tensor:
    return x.to(like.dtype if like is not None else dtype_of(a["to"]))


@operator("Dropout")
def _dropout(a: Any, env: Any, x: Tensor, ratio: Any = None, training: Any = None) -> Any:
    if training is not None and bool(training):
        p = 0.5 if ratio is None else float(ratio)
        return F.dropout(x, p, True), clew.ones_like(x).bool()
    return x, clew.ones_like(x).bool()


_ACTIVATIONS: dict[str, Any] = {
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Celu": lambda a, x: F.celu(x, a.get("alpha", 1.0)),
    "Selu": lambda a, x: (
        a.get("gamma", 1.0507009873554805) * F.elu(x, a.get("alpha", 1.6732632423543772))
    ),
    "Swish": lambda a, x: x * clew.sigmoid(a.get("alpha", 1.0) * x),
    "ThresholdedRelu": lambda a, x: F.threshold(x, a.get("alpha", 1.0), 0.0),
    "HardSigmoid": lambda a, x: (x * a.get("alpha", 0.2) + a.get("beta", 0.5)).clamp(0, 1),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")),
}
for _name, _function in _ACTIVATIONS.items():
    OPERATORS[_name] = lambda a, env, x, _f=_function: _f(a, x)


@operator("Shrink")
def _shrink(a: Any, env: Any, x: Tensor) -> Tensor:
    size, bias = a.get("lambd", 0.5), a.get("bias", 0.0)
    zero = clew.zeros_like(x)
    return clew.where(x > size, x - bias, clew.where(x < -size, x + bias, zero))


@operator("PRelu")
def _prelu(a: Any, env: Any, x: Tensor, slope: Tensor) -> Tensor:
    return clew.where(x > 0, x, x * slope)


def _soft(function: Any) -> Any:
    def run(a: Any, env: Any, x: Tensor) -> Tensor:
        axis = a.get("axis", -1 if a["_opset"] >= 13 else 1)
        if a["_opset"] >= 13:
            return function(x, axis)
        flat = x.reshape(math.prod(x.shape[:axis]), -1)
        return function(flat, 1).reshape(x.shape)

    return run


OPERATORS["Softmax"], OPERATORS["LogSoftmax"] = _soft(clew.softmax), _soft(clew.log_softmax)


# ---- reductions ----


def _reduction(function: Any) -> Any:
    def run(a: Any, env: Any, x: Tensor, axes: Any = None) -> Tensor:
        dims = ints(axes) if axes is not None else a.get("axes") or []
        if not dims:
            if a.get("noop_with_empty_axes"):
                return x
            dims = list(range(x.dim()))
        dims = [d % max(x.dim(), 1) for d in dims]
        return function(x, dims, bool(a.get("keepdims", 1))) if x.dim() else function(
            x.reshape(1), [0], False)  # fmt: skip

    return run


def _product(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for d in sorted(dims, reverse=True):
        x = x.prod(d, keepdim=keep)
    return x


for _name, _function in {
    "Sum": lambda x, d, k: x.sum(d, keepdim=k, dtype=x.dtype),
    "Mean": lambda x, d, k: x.mean(d, keepdim=k),
    "Max": lambda x, d, k: x.amax(d, keepdim=k),
    "Min": lambda x, d, k: x.amin(d, keepdim=k),
    "Prod": _product,
    "L1": lambda x, d, k: x.abs().sum(d, keepdim=k),
    "L2": lambda x, d, k: (x * x).sum(d, keepdim=k).sqrt(),
    "SumSquare": lambda x, d, k: (x * x).sum(d, keepdim=k),
    "LogSum": lambda x, d, k: x.sum(d, keepdim=k).log(),
    "LogSumExp": lambda x, d, k: x.logsumexp(d, keepdim=k),
}.items():
    OPERATORS[f"Reduce{_name}"] = _reduction(_function)


def _arg_of(top: bool) -> Any:
    def run(a: Any, env: Any, x: Tensor) -> Tensor:
        d, keep = a.get("axis", 0), bool(a.get("keepdims", 1))
        if a.get("select_last_index"):
            y = x.flip(d)
            found = (y.argmax if top else y.argmin)(d, keepdim=keep)
            return x.shape[d] - 1 - found
        return (x.argmax if top else x.argmin)(d, keepdim=keep)

    return run


OPERATORS["ArgMax"], OPERATORS["ArgMin"] = _arg_of(True), _arg_of(False)


@operator("CumSum")
def _cumsum(a: Any, env: Any, x: Tensor, axis: Tensor) -> Tensor:
    d = int(axis)
    if a.get("reverse"):
        x = x.flip(d)
    total = x.cumsum(d, dtype=x.dtype)
    if a.get("exclusive"):
        total = total - x
    return total.flip(d) if a.get("reverse") else total


@operator("Unique")
def _unique(a: Any, env: Any, x: Tensor) -> Any:
    if not a.get("sorted", 1):
        raise OnnxExporterError("onnx.load: Unique without sorted")
    axis = a.get("axis")
    values, inverse, counts = clew.unique(
        x, return_inverse=True, return_counts=True, dim=axis
    )  # fmt: skip
    line = inverse.reshape(-1)
    places = clew.arange(len(line))
    first = clew.full_like(counts, len(line)).scatter_reduce(0, line, places, "amin")
    return values, first, line, counts


@operator("TopK")
def _topk(a: Any, env: Any, x: Tensor, k: Tensor) -> Any:
    d = a.get("axis", -1)
    if a.get("sorted", 1) and int(k) == x.shape[d]:
        return tuple(x.sort(d, descending=bool(a.get("largest", 1)), stable=True))
    return tuple(x.topk(int(k), d, bool(a.get("largest", 1)), bool(a.get("sorted", 1))))


@operator("Einsum")
def _einsum(a: Any, env: Any, *x: Tensor) -> Tensor:
    return clew.einsum(a["equation"], *x)


@operator("Gemm")
def _gemm(a: Any, env: Any, x: Tensor, y: Tensor, z: Any = None) -> Tensor:
    if a.get("transA"):
        x = x.t()
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
    if a.get("transB") and alpha == 1 and beta == 1 and z is not None and z.dim() == 1:
        return F.linear(x, y, z) if z.shape[0] == y.shape[0] else x @ y.t() + z
    if a.get("transB"):
        y = y.t()
    found = x @ y
    found = found if alpha == 1 else found * alpha
    return found if z is None else found + (z if beta == 1 else z * beta)


# ---- control flow ----


@operator("If")
def _if(a: Any, env: Any, test: Tensor) -> Any:
    return a["then_branch" if bool(test) else "else_branch"].run(dict(env))


@operator("Loop")
def _loop(a: Any, env: Any, trip: Any, cond: Any, *carried: Any) -> Any:
    body = a["body"]
    limit = None if trip is None else int(trip)
    goes_on = True if cond is None else bool(cond)
    state = list(carried)
    rows: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - len(state))]
    done = 0
    while goes_on and (limit is None or done < limit):
        inner = dict(env)
        inner.update(zip(body.inputs, [clew.tensor(done), clew.tensor(True), *state]))
        first, *rest = body.run(inner)
        goes_on = bool(first)
        state, scanned = rest[: len(state)], rest[len(state) :]
        for r, s in zip(rows, scanned):
            r.append(s)
        done += 1
    first = 1 + len(state)
    return [
        *state, *(clew.stack(r) if r else body.no_rows(first + k) for k, r in enumerate(rows))
    ]  # fmt: skip


@operator("Scan")
def _scan(a: Any, env: Any, *args: Any) -> Any:
    body, count = a["body"], a["num_scan_inputs"]
    if any(a.get(k) for k in ("scan_input_axes", "scan_output_axes", "scan_input_directions",
                              "scan_output_directions")):  # fmt: skip
        raise OnnxExporterError("onnx.load: Scan along other axes or backwards is not read")
    state, scanned = list(args[: len(args) - count]), args[len(args) - count :]
    rows: list[list[Any]] = [[] for _ in range(len(body.outputs) - len(state))]
    for i in range(scanned[0].shape[0]):
        inner = dict(env)
        inner.update(zip(body.inputs, [*state, *(s[i] for s in scanned)]))
        got = body.run(inner)
        state = got[: len(state)]
        for r, s in zip(rows, got[len(state) :]):
            r.append(s)
    return [*state, *(clew.stack(r) for r in rows)]
