"""Losses in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._reductions import reduce
from clew.onnx._shape import rank

# ---- losses ----


@lowers("ops._mse_loss", "ops._smooth_l1_loss", "ops._huber_loss", "ops._distance")
def _distance(b: Builder, a: Any) -> str:
    gap = b.op("Sub", b.name(a.input), b.name(a.target))
    found = b.op("Mul", gap, gap)
    if a.node.op != "ops._mse_loss":
        dtype = clew.result_type(*(clew.empty(0, dtype=t.dtype) for t in (a.input, a.target)))
        edge, half, line = float(a.edge), float(a.half), float(a.line)
        size = b.op("Abs", gap)
        if math.isinf(edge):
            found = b.op("Mul", found, b.scalar(half, dtype))
        else:
            straight = b.op("Mul", b.op("Sub", size, b.scalar(edge / 2, dtype)),
                            b.scalar(line, dtype))  # fmt: skip
            near = b.op("Less", size, b.scalar(edge, dtype))
            found = b.op("Where", near, b.op("Mul", found, b.scalar(half, dtype)), straight)
    if a.node.op == "ops._distance":
        return str(found)
    axes = list(range(rank(a.input)))
    return reduce(b, "ReduceMean" if a["mean"] else "ReduceSum", found, axes, False)


@lowers("ops._cross_entropy", "ops._nll_loss")
def _cross_entropy(b: Builder, a: Any) -> Any:
    if a.target.dtype != clew.int64:
        raise OnnxExporterError("onnx.export: cross_entropy() with probabilities")
    weight = [b.name(a.weight)] if a.weight is not None else []
    kind = "SoftmaxCrossEntropyLoss" if "cross" in a.node.op else "NegativeLogLikelihoodLoss"
    x, target = b.name(a.input), b.name(a.target)
    if rank(a.input) == 1:
        x, target = b.op("Unsqueeze", x, b.ints(0)), b.op("Unsqueeze", target, b.ints(0))
    found = b.op(kind, x, target, *weight, reduction=a.reduction, ignore_index=a.ignore_index)
    if a.get("label_smoothing"):
        found = _smoothed(b, a, x, target, found)
    if rank(a.input) == 1 and a.reduction == "none":
        found = b.op("Squeeze", found, b.ints(0))
    zero = b.scalar(0, a.input.dtype)  # what only backward reads
    return [found, *[zero] * (len(a.node.outputs) - 1)]


def _smoothed(b: Builder, a: Any, x: str, target: str, found: str) -> str:
    """Cross entropy in which a part of the target is spread evenly over the classes.

    Args:
        x: the scores, classes in dim 1.
        target: of each row.
        found: the loss without smoothing.
    """
    dtype, part = a.input.dtype, a.label_smoothing
    even = b.op("Neg", b.op("LogSoftmax", x, axis=1))
    if a.weight is not None:
        shape = b.ints(1, -1, *[1] * (rank(a.input) - 2))
        even = b.op("Mul", even, b.op("Reshape", b.name(a.weight), shape))
    zero = b.scalar(0, dtype)
    even = b.op("ReduceSum", even, b.ints(1), keepdims=0)
    ignored = b.op("Equal", target, b.const(a.ignore_index, np.int64))
    even = b.op("Where", ignored, zero, even)
    if a.reduction != "none":
        even = b.op("ReduceSum", even, keepdims=0)
    if a.reduction == "mean":
        counts = b.scalar(1, dtype)
        if a.weight is not None:
            safe = b.op("Where", ignored, b.const(0, np.int64), target)
            counts = b.op("Gather", b.name(a.weight), safe)
        counts = b.op("Where", ignored, zero, counts)
        even = b.op("Div", even, b.op("ReduceSum", counts, keepdims=0))
    size = b.op("Squeeze", b.op("Shape", x, start=1, end=2), b.ints(0))
    share = b.op("Div", b.scalar(part, dtype), b.cast(size, dtype))
    kept = b.op("Mul", b.scalar(1 - part, dtype), found)
    return str(b.op("Add", kept, b.op("Mul", share, even)))
