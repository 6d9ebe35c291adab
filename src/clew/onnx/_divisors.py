"""Greatest common divisors in ONNX: Euclid's steps, until every remainder is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

import clew
from clew.onnx._lower import Builder, lowers

__all__: list[str] = []


@lowers("gcd")
def _gcd(b: Builder, a: Any) -> str:
    return b.cast(_divisor(b, *_whole(b, a)), a.out.dtype)


@lowers("lcm")
def _lcm(b: Builder, a: Any) -> str:
    x, y = _whole(b, a)
    zero, one = b.const(0, np.int64), b.const(1, np.int64)
    common = b.op("Max", _divisor(b, x, y), one)  # 0 where both are
    found = b.op("Mul", b.op("Div", x, common), y)
    either = b.op("Or", b.op("Equal", x, zero), b.op("Equal", y, zero))
    return b.cast(b.op("Where", either, zero, found), a.out.dtype)


def _whole(b: Builder, a: Any) -> tuple[str, str]:
    """Both operands without their signs, of one shape."""
    x, y = (b.op("Abs", b.of(v, clew.int64)) for v in (a.input, a.other))
    return b.op("Add", x, b.op("Sub", y, y)), b.op("Add", y, b.op("Sub", x, x))


def _divisor(b: Builder, x: str, y: str) -> str:
    zero = b.const(0, np.int64)

    def left(rest: str) -> str:
        """Whether a remainder is not 0; the dims of a maximum over nothing are none."""
        return str(b.op("Greater", b.op("ReduceSum", b.op("Sign", rest), keepdims=0), zero))

    def work() -> tuple[list[Any], list[Any]]:
        of = helper.make_tensor_value_info
        number, goes_on, p, q = (b.fresh(n) for n in ("round", "goes_on", "divisor", "rest"))
        done = b.op("Equal", q, zero)
        rest = b.op("Mod", p, b.op("Where", done, b.const(1, np.int64), q))
        rest = b.op("Where", done, zero, rest)
        kind = TensorProto.INT64
        given = [of(number, kind, []), of(goes_on, TensorProto.BOOL, []),
                 of(p, kind, None), of(q, kind, None)]  # fmt: skip
        after = [b.op("Identity", b.op("Where", done, p, q)), b.op("Identity", rest)]
        found = [of(left(rest), TensorProto.BOOL, []), *(of(n, kind, None) for n in after)]
        return given, found

    start = left(y)
    body = b.inner(work, "divisors")
    return str(b.op("Loop", "", start, x, y, n=2, body=body)[0])
