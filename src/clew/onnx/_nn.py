"""Layers in ONNX: convolutions, pools, norms, activations, attention, recurrence, losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._math import product, reduce
from clew.onnx._shape import rank


def _listed(x: Any, n: int) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) and len(x) > 1 else [
        x[0] if isinstance(x, (tuple, list)) else x
    ] * n  # fmt: skip


@lowers("nn.functional.linear")
def _linear(b: Builder, a: Any) -> str:
    x, w, bias = a.input, a.weight, a.bias
    if rank(w) == 1:
        found = product(b, b.name(x), b.name(w), rank(x), 1)
    elif rank(x) == 2 and bias is not None:
        return str(b.op("Gemm", b.name(x), b.name(w), b.name(bias), transB=1))
    else:
        found = b.op("MatMul", b.name(x), b.op("Transpose", b.name(w), perm=[1, 0]))
    return str(found if bias is None else b.op("Add", found, b.name(bias)))


@lowers("ops._embedding")
def _embedding(b: Builder, a: Any) -> str:
    result: str = b.op("Gather", b.name(a.weight), b.of(a.indices, clew.int64), axis=0)
    return result


@lowers("ops._embedding_bag")
def _embedding_bag(b: Builder, a: Any) -> str:
    """Sums of rows: bag k is of the indices from offsets[k] up to offsets[k + 1]."""
    dtype = a.weight.dtype
    index, edges = b.of(a.indices, clew.int64), b.of(a.offsets, clew.int64)
    rows = b.op("Gather", b.name(a.weight), index, axis=0)
    if a.get("factors") is not None:
        rows = b.op("Mul", rows, b.op("Unsqueeze", b.name(a.factors), b.ints(1)))
    first = b.op("Slice", edges, b.ints(0), b.ints(-1), b.ints(0))
    ends = b.op("Slice", edges, b.ints(1), b.ints(2**31), b.ints(0))
    places = b.op("Range", b.const(0, np.int64), b.op("Size", index), b.const(1, np.int64))
    in_bag = b.op("And", b.op("GreaterOrEqual", places, b.op("Unsqueeze", first, b.ints(1))),
                  b.op("Less", places, b.op("Unsqueeze", ends, b.ints(1))))  # fmt: skip
    total = b.op("MatMul", b.cast(in_bag, dtype), rows)
    if not a.get("mean"):
        return str(total)
    count = b.op("Max", b.op("Sub", ends, first), b.const(1, np.int64))
    return str(b.op("Div", total, b.op("Unsqueeze", b.cast(count, dtype), b.ints(1))))


@lowers("nn.functional.bilinear")
def _bilinear(b: Builder, a: Any) -> str:
    found = b.op("Einsum", b.name(a.input1), b.name(a.weight), b.name(a.input2),
                 equation="...i,oij,...j->...o")  # fmt: skip
    return str(found if a.bias is None else b.op("Add", found, b.name(a.bias)))


# ---- convolutions ----


def _unbatched(b: Builder, x: Value, n: int, work: Any) -> str:
    """Runs ``work`` on a batch, of one where the input has none."""
    if rank(x) == n + 2:
        return str(work(b.name(x)))
    one = b.op("Unsqueeze", b.name(x), b.ints(0))
    return str(b.op("Squeeze", work(one), b.ints(0)))


@lowers("conv1d", "conv2d", "conv3d")
def _conv(b: Builder, a: Any) -> str:
    n = int(a.node.op[4])
    kernel = [int(s) for s in a.weight.sizes[2:]]
    stride, dilation = _listed(a.stride, n), _listed(a.dilation, n)
    more: dict[str, Any] = {}
    if isinstance(a.padding, str):
        if a.padding == "same":
            total = [d * (k - 1) for d, k in zip(dilation, kernel)]
            more["pads"] = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        more["pads"] = _listed(a.padding, n) * 2
    rest = [b.name(a.bias)] if a.bias is not None else []
    return _unbatched(b, a.input, n, lambda x: b.op(
        "Conv", x, b.name(a.weight), *rest, strides=stride, dilations=dilation, group=a.groups,
        kernel_shape=kernel, **more))  # fmt: skip


@lowers("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(b: Builder, a: Any) -> str:
    n = int(a.node.op[14])
    rest = [b.name(a.bias)] if a.bias is not None else []
    return _unbatched(b, a.input, n, lambda x: b.op(
        "ConvTranspose", x, b.name(a.weight), *rest, strides=_listed(a.stride, n),
        dilations=_listed(a.dilation, n), group=a.groups, pads=_listed(a.padding, n) * 2,
        output_padding=_listed(a.output_padding, n),
        kernel_shape=[int(s) for s in a.weight.sizes[2:]]))  # fmt: skip


# ---- pools ----


@lowers("ops._max_pool1d", "ops._max_pool2d", "ops._max_pool3d")
def _max_pool(b: Builder, a: Any) -> Any:
    n = int(a.node.op[13])
    kernel = _listed(a.kernel_size, n)
    strides = _listed(kernel if a.stride is None or a.stride == [] else a.stride, n)
    both: list[Any] = []

    def work(x: str) -> str:
        got = b.op("MaxPool", x, n=2, kernel_shape=kernel, strides=strides,
                   pads=_listed(a.padding, n) * 2, dilations=_listed(a.dilation, n),
                   ceil_mode=int(a.ceil_mode))  # fmt: skip
        both.append(got[1])
        return str(got[0])

    values = _unbatched(b, a.input, n, work)
    # ONNX counts places over the whole tensor, clew within a plane.
    plane = b.const(1, np.int64)
    shape = b.op("Shape", b.name(a.input))
    plane = b.op("ReduceProd", b.op("Slice", shape, b.ints(-n), b.ints(2**62)), keepdims=0)
    places = b.op("Mod", both[0], plane)
    if rank(a.input) != n + 2:
        places = b.op("Squeeze", places, b.ints(0))
    return [values, places]


@lowers("nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
        "ops._avg_pool1d")  # fmt: skip
def _avg_pool(b: Builder, a: Any) -> str:
    n = int(a.node.op[-2])
    divisor = a.get("divisor_override")
    if divisor is not None and a.ceil_mode:
        raise OnnxExporterError("onnx.export: avg_pool() with divisor_override and ceil_mode")
    kernel = _listed(a.kernel_size, n)
    strides = _listed(kernel if a.stride is None or a.stride == [] else a.stride, n)
    padded = int(a.count_include_pad or divisor is not None)
    found = _unbatched(b, a.input, n, lambda x: b.op(
        "AveragePool", x, kernel_shape=kernel, strides=strides, pads=_listed(a.padding, n) * 2,
        ceil_mode=int(a.ceil_mode), count_include_pad=padded))  # fmt: skip
    if divisor is None:
        return found
    return str(b.op("Mul", found, b.scalar(math.prod(kernel) / divisor, a.input.dtype)))


@lowers("nn.functional.adaptive_avg_pool1d", "nn.functional.adaptive_avg_pool2d",
        "nn.functional.adaptive_avg_pool3d", "ops._adaptive_max_pool1d",
        "ops._adaptive_max_pool2d", "ops._adaptive_max_pool3d")  # fmt: skip
def _adaptive(b: Builder, a: Any) -> Any:
    n = int(a.node.op[-2])
    sizes = _listed(a.output_size, n)
    spatial = a.input.sizes[-n:]
    sizes = [s if k is None else k for k, s in zip(sizes, spatial)]
    top = "max" in a.node.op
    if all(k == 1 for k in sizes) and not top:
        axes = [rank(a.input) - n + d for d in range(n)]
        return reduce(b, "ReduceMean", b.name(a.input), axes, True)
    if all(k == 1 for k in sizes) and rank(a.input) == n + 2:
        flat = b.op("Reshape", b.name(a.input), b.ints(0, 0, -1))
        one = b.ints(*range(3, n + 2))
        places = b.op("ArgMax", flat, axis=2, keepdims=1)
        found = [b.op("ReduceMax", flat, b.ints(2), keepdims=1), places]
        return found if n == 1 else [b.op("Unsqueeze", f, one) for f in found]
    if any(s is None or k is None or isinstance(k, Value) or s % k for k, s in zip(sizes, spatial)):
        return _greatest(b, a.input, sizes) if top else _averages(b, a.input, sizes)
    kernel = [s // k for k, s in zip(sizes, spatial)]
    if not top:
        return _unbatched(b, a.input, n, lambda x: b.op(
            "AveragePool", x, kernel_shape=kernel, strides=kernel))  # fmt: skip
    if rank(a.input) != n + 2:
        raise OnnxExporterError(f"onnx.export: {a.node.op}() without a batch")
    values, places = b.op("MaxPool", b.name(a.input), n=2, kernel_shape=kernel, strides=kernel)
    return [values, b.op("Mod", places, b.const(math.prod(spatial), np.int64))]


def _parts(b: Builder, length: str, count: str) -> tuple[str, str, str]:
    """Where the parts of adaptive pooling begin and end, and which places lie in each."""
    one = b.const(1, np.int64)
    parts = b.op("Unsqueeze", b.op("Range", b.const(0, np.int64), count, one), b.ints(1))
    start = b.op("Div", b.op("Mul", parts, length), count)
    upper = b.op("Add", b.op("Mul", b.op("Add", parts, one), length), b.op("Sub", count, one))
    end = b.op("Div", upper, count)
    places = b.op("Range", b.const(0, np.int64), length, one)
    inside = b.op("And", b.op("GreaterOrEqual", places, start), b.op("Less", places, end))
    return start, end, inside


def _greatest(b: Builder, x: Value, sizes: list[Any]) -> list[str]:
    """Maxima of parts of any lengths, and their places: one mask of the plane for each part."""
    n = len(sizes)
    dims = range(rank(x) - n, rank(x))
    if rank(x) != n + 2:
        raise OnnxExporterError("onnx.export: adaptive_max_pool() without a batch")
    counts = [b.dim_of(x, d) if k is None else b.scalar(k, "int64") for k, d in zip(sizes, dims)]
    mask = b.const(np.ones((1, 1), np.bool_))
    for count, d in zip(counts, dims):
        inside = _parts(b, b.dim_of(x, d), count)[2]
        wide = b.op("And", b.op("Unsqueeze", mask, b.ints(1, 3)),
                    b.op("Unsqueeze", inside, b.ints(0, 2)))  # fmt: skip
        lines = b.op("Shape", wide)
        rows = b.op("ReduceProd", b.op("Slice", lines, b.ints(0), b.ints(2)), keepdims=1)
        mask = b.op("Reshape", wide, b.op("Concat", rows, b.ints(-1), axis=0))
    flat = b.op("Unsqueeze", b.op("Reshape", b.name(x), b.ints(0, 0, -1)), b.ints(2))
    masked = b.op("Where", mask, flat, b.scalar(float("-inf"), x.dtype))
    lead = b.op("Slice", b.op("Shape", b.name(x)), b.ints(0), b.ints(2))
    shape = b.op("Concat", lead, *(b.op("Unsqueeze", c, b.ints(0)) for c in counts), axis=0)
    values = b.op("ReduceMax", masked, b.ints(3), keepdims=0)
    places = b.op("ArgMax", masked, axis=3, keepdims=0)
    return [b.op("Reshape", found, shape) for found in (values, places)]


def _averages(b: Builder, x: Value, sizes: list[Any]) -> str:
    """Means of parts of any lengths, one dim after the other, as products with matrices."""
    n = len(sizes)
    name = b.name(x)
    for k, d in zip(sizes, range(rank(x) - n, rank(x))):
        if k is None:
            continue
        count = k if isinstance(k, str) else b.scalar(k, "int64")
        start, end, inside = _parts(b, b.dim_of(x, d), count)
        weight = b.op("Div", b.cast(inside, x.dtype), b.cast(b.op("Sub", end, start), x.dtype))
        order = [*range(d), *range(d + 1, rank(x)), d]
        last = b.op("Transpose", name, perm=order)
        last = b.op("MatMul", last, b.op("Transpose", weight, perm=[1, 0]))
        name = b.op("Transpose", last, perm=[order.index(i) for i in range(rank(x))])
    return name


# ---- norms ----


@lowers("nn.functional.batch_norm")
def _batch_norm(b: Builder, a: Any) -> str:
    if a.training or a.running_mean is None:
        if a.training and a.running_mean is not None:
            raise OnnxExporterError("onnx.export: batch_norm in training mode; call model.eval()")
        axes = [d for d in range(rank(a.input)) if d != 1]
        return _normalized(b, a, axes, _per_channel(a.input))
    channels = a.input.sizes[1]
    if channels is None:
        channels = a.running_mean.sizes[0]
    dtype = a.input.dtype.name
    weight = b.name(a.weight) if a.weight is not None else b.const(np.ones(channels, dtype))
    bias = b.name(a.bias) if a.bias is not None else b.const(np.zeros(channels, dtype))
    statistics = b.name(a.running_mean), b.name(a.running_var)
    result: str = b.op(
        "BatchNormalization", b.name(a.input), weight, bias, *statistics, epsilon=float(a.eps)
    )
    return result


def _per_channel(x: Value) -> list[int]:
    return [-1] + [1] * (rank(x) - 2)


def _normalized(b: Builder, a: Any, axes: list[int], shape: list[int] | None) -> str:
    x, dtype = b.name(a.input), a.input.dtype
    mean = reduce(b, "ReduceMean", x, axes, True)
    gap = b.op("Sub", x, mean)
    var = reduce(b, "ReduceMean", b.op("Mul", gap, gap), axes, True)
    found = b.op("Div", gap, b.op("Sqrt", b.op("Add", var, b.scalar(a.eps, dtype))))
    for key, kind in (("weight", "Mul"), ("bias", "Add")):
        part = a.get(key)
        if part is not None:
            name = b.name(part)
            if shape is not None:
                name = b.op("Reshape", name, b.ints(*shape))
            found = b.op(kind, found, name)
    return str(found)


@lowers("nn.functional.layer_norm")
def _layer_norm(b: Builder, a: Any) -> str:
    n = len(a.normalized_shape)
    if a.weight is None:
        axes = list(range(rank(a.input) - n, rank(a.input)))
        return _normalized(b, a, axes, None)
    rest = [b.name(a.bias)] if a.bias is not None else []
    result: str = b.op("LayerNormalization", b.name(a.input), b.name(a.weight), *rest,
                       axis=-n, epsilon=float(a.eps))  # fmt: skip
    return result


@lowers("nn.functional.rms_norm")
def _rms_norm(b: Builder, a: Any) -> str:
    x, dtype = b.name(a.input), a.input.dtype
    axes = list(range(rank(a.input) - len(a.normalized_shape), rank(a.input)))
    eps = clew.finfo(dtype).eps if a.eps is None else a.eps
    mean = reduce(b, "ReduceMean", b.op("Mul", x, x), axes, True)
    found = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, b.scalar(eps, dtype))))
    return str(found if a.weight is None else b.op("Mul", found, b.name(a.weight)))


@lowers("nn.functional.group_norm")
def _group_norm(b: Builder, a: Any) -> str:
    x = a.input
    shape = b.shape(b.name(x))
    grouped = b.op("Reshape", b.name(x), b.ints(0, a.num_groups, -1))
    dtype = x.dtype
    mean = reduce(b, "ReduceMean", grouped, [2], True)
    gap = b.op("Sub", grouped, mean)
    var = reduce(b, "ReduceMean", b.op("Mul", gap, gap), [2], True)
    found = b.op("Div", gap, b.op("Sqrt", b.op("Add", var, b.scalar(a.eps, dtype))))
    found = b.op("Reshape", found, shape, allowzero=1)
    for key, kind in (("weight", "Mul"), ("bias", "Add")):
        if a.get(key) is not None:
            found = b.op(kind, found, b.op("Reshape", b.name(a[key]), b.ints(*_per_channel(x))))
    return str(found)


# ---- activations ----


@lowers("softmax", "log_softmax", "nn.functional.softmin")
def _softmax(b: Builder, a: Any) -> str:
    name = b.of(a.input, a.out.dtype)
    if not rank(a.input):
        value = 0 if a.node.op == "log_softmax" else 1
        return b.scalar(value, a.out.dtype)
    if a.node.op.endswith("min"):
        name = b.op("Neg", name)
    kind = "LogSoftmax" if a.node.op == "log_softmax" else "Softmax"
    dim = a.dim if a.dim is not None else (0 if rank(a.input) in (0, 1, 3) else 1)
    result: str = b.op(kind, name, axis=dim % rank(a.input))
    return result


@lowers("nn.functional.gelu", "ops._gelu", "ops._gelu_tanh")
def _gelu(b: Builder, a: Any) -> str:
    tanh = a.get("approximate", "none") == "tanh" or a.node.op == "ops._gelu_tanh"
    x = b.name(a.input)
    if b.opset >= 20:
        return str(b.op("Gelu", x, approximate="tanh" if tanh else "none"))
    c = lambda v: b.scalar(v, a.input.dtype)  # noqa: E731
    if tanh:
        cube = b.op("Mul", b.op("Mul", x, x), x)
        inner = b.op("Add", x, b.op("Mul", cube, c(0.044715)))
        part = b.op("Tanh", b.op("Mul", inner, c(math.sqrt(2 / math.pi))))
    else:
        part = b.op("Erf", b.op("Mul", x, c(math.sqrt(0.5))))
    return str(b.op("Mul", b.op("Mul", x, c(0.5)), b.op("Add", part, c(1.0))))


@lowers("nn.functional.silu")
def _silu(b: Builder, a: Any) -> str:
    result: str = b.op("Mul", b.name(a.input), b.op("Sigmoid", b.name(a.input)))
    return result


@lowers("nn.functional.elu", "nn.functional.celu", "celu", "nn.functional.selu", "selu",
        "nn.functional.leaky_relu")  # fmt: skip
def _elu(b: Builder, a: Any) -> str:
    op = a.node.op.rpartition(".")[2]
    x = b.name(a.input)
    if op == "leaky_relu":
        return str(b.op("LeakyRelu", x, alpha=float(a.negative_slope)))
    if op == "selu":
        return str(b.op("Selu", x, alpha=1.6732632423543772, gamma=1.0507009873554805))
    return str(b.op(op.capitalize(), x, alpha=float(a.alpha)))


@lowers("nn.functional.prelu", "prelu", "ops._prelu")
def _prelu(b: Builder, a: Any) -> str:
    x, w = b.name(a.input), b.name(a.weight)
    n = rank(a.input)
    if n > 1 and a.weight.sizes != () and a.node.op != "ops._prelu":
        w = b.op("Reshape", w, b.ints(-1, *[1] * (n - 2)))
    zero = b.scalar(0, a.input.dtype)
    result: str = b.op("Where", b.op("Greater", x, zero), x, b.op("Mul", x, w))
    return result


@lowers("nn.functional.hardtanh", "nn.functional.relu6")
def _hardtanh(b: Builder, a: Any) -> str:
    low, high = (0, 6) if a.node.op.endswith("6") else (a.min_val, a.max_val)
    c = lambda v: b.scalar(v, a.input.dtype)  # noqa: E731
    result: str = b.op("Min", b.op("Max", b.name(a.input), c(low)), c(high))
    return result


@lowers("nn.functional.hardsigmoid")
def _hardsigmoid(b: Builder, a: Any) -> str:
    result: str = b.op("HardSigmoid", b.name(a.input), alpha=1 / 6, beta=0.5)
    return result


@lowers("nn.functional.softplus")
def _softplus(b: Builder, a: Any) -> str:
    x = b.name(a.input)
    c = lambda v: b.scalar(v, a.input.dtype)  # noqa: E731
    scaled = b.op("Mul", x, c(a.beta))
    soft = b.op("Div", b.op("Softplus", scaled), c(a.beta))
    result: str = b.op("Where", b.op("Greater", scaled, c(a.threshold)), x, soft)
    return result


@lowers("nn.functional.logsigmoid")
def _logsigmoid(b: Builder, a: Any) -> str:
    result: str = b.op("Neg", b.op("Softplus", b.op("Neg", b.name(a.input))))
    return result


@lowers(
    "nn.functional.tanhshrink", "nn.functional.hardshrink", "hardshrink",
    "nn.functional.softshrink", "ops._softshrink", "nn.functional.threshold", "threshold",
)  # fmt: skip
def _shrink(b: Builder, a: Any) -> str:
    x = b.name(a.input)
    c = lambda v: b.scalar(v, a.input.dtype)  # noqa: E731
    op = a.node.op
    if op.endswith("tanhshrink"):
        return str(b.op("Sub", x, b.op("Tanh", x)))
    if op.endswith("threshold"):
        return str(b.op("Where", b.op("Greater", x, c(a.threshold)), x, c(a.value)))
    size = a.get("lambd", 0.5)
    outside = b.op("Or", b.op("Greater", x, c(size)), b.op("Less", x, c(-size)))
    if "hard" in op:
        return str(b.op("Where", outside, x, c(0)))
    return str(b.op("Shrink", x, lambd=float(size), bias=float(size)))


@lowers("nn.functional.glu")
def _glu(b: Builder, a: Any) -> str:
    halves = b.op("Split", b.name(a.input), n=2, axis=a.dim % rank(a.input), num_outputs=2)
    result: str = b.op("Mul", halves[0], b.op("Sigmoid", halves[1]))
    return result


# ---- attention ----


@lowers("nn.functional.scaled_dot_product_attention")
def _attention(b: Builder, a: Any) -> str:
    if a.dropout_p:
        raise OnnxExporterError("onnx.export: attention with dropout; call model.eval()")
    q, k, v = b.name(a.query), b.name(a.key), b.name(a.value)
    dtype = a.query.dtype
    if a.get("enable_gqa"):
        heads, few = a.query.sizes[-3], a.key.sizes[-3]
        if heads is None or few is None:
            raise OnnxExporterError("onnx.export: enable_gqa with a varying number of heads")
        k, v = (_repeated(b, t, x, heads // few) for t, x in ((k, a.key), (v, a.value)))
    size = a.query.sizes[-1]
    if a.scale is not None:
        scale = b.scalar(a.scale, dtype)
    elif size is not None:
        scale = b.scalar(1 / math.sqrt(size), dtype)
    else:
        width = b.cast(b.dim_of(a.query, rank(a.query) - 1), dtype)
        scale = b.op("Reciprocal", b.op("Sqrt", width))
    n = rank(a.key)
    perm = [*range(n - 2), n - 1, n - 2]
    scores = b.op("MatMul", b.op("Mul", q, scale), b.op("Transpose", k, perm=perm))
    low = b.scalar(-math.inf, dtype)
    if a.is_causal:
        rows = b.dim_of(a.query, rank(a.query) - 2)
        columns = b.dim_of(a.key, n - 2)
        shape = b.op("Concat", *[b.op("Unsqueeze", s, b.ints(0)) for s in (rows, columns)], axis=0)
        seen = b.op("Trilu", b.op("Expand", b.const(1, np.int64), shape), upper=0)
        scores = b.op("Where", b.op("Equal", seen, b.const(1, np.int64)), scores, low)
    if a.attn_mask is not None:
        mask = b.name(a.attn_mask)
        if a.attn_mask.dtype == clew.bool:
            scores = b.op("Where", mask, scores, low)
        else:
            scores = b.op("Add", scores, mask)
    weights = b.op("Softmax", scores, axis=-1)
    if a.attn_mask is not None or a.is_causal:  # rows in which nothing is seen give zeros
        zero = b.scalar(0, dtype)
        weights = b.op("Where", b.op("IsNaN", weights), zero, weights)
    result: str = b.op("MatMul", weights, v)
    return result


def _repeated(b: Builder, name: str, x: Value, times: int) -> str:
    n = rank(x)
    wide = b.op("Unsqueeze", name, b.ints(n - 2))
    counts = [1] * (n + 1)
    counts[n - 2] = times
    tiled = b.op("Tile", wide, b.ints(*counts))
    shape = b.op("Shape", name)
    heads = b.op("Mul", b.op("Slice", shape, b.ints(n - 3), b.ints(n - 2)), b.ints(times))
    target = b.op("Concat", b.op("Slice", shape, b.ints(0), b.ints(n - 3)), heads,
                  b.op("Slice", shape, b.ints(n - 2), b.ints(2**62)), axis=0)  # fmt: skip
    result: str = b.op("Reshape", tiled, target)
    return result


# ---- recurrence ----


@lowers("ops._rnn")
def _rnn(b: Builder, a: Any) -> list[str]:
    kind = a.cell
    if a.dropout or a.proj_size or a.batch_sizes is not None:
        raise OnnxExporterError(
            "onnx.export: recurrent layers with dropout, proj_size or packed sequences"
        )
    tensors = list(a.tensors)
    directions = 2 if a.bidirectional else 1
    each = 4 if a.biases else 2
    lstm = _CELLS[kind] == "LSTM"
    given = len(tensors) - a.layers * directions * each
    states, weights = tensors[:given], tensors[given:]
    batched = rank(a.input) == 3
    x = b.name(a.input)
    if not batched:
        x = b.op("Unsqueeze", x, b.ints(1))
    elif a.batch_first:
        x = b.op("Transpose", x, perm=[1, 0, 2])
    ends: list[list[str]] = [[], []]
    for layer in range(a.layers):
        initial = []
        for s in states:
            name = b.name(s) if batched else b.op("Unsqueeze", b.name(s), b.ints(1))
            initial.append(b.op("Slice", name, b.ints(layer * directions),
                                b.ints((layer + 1) * directions), b.ints(0)))  # fmt: skip
        start = layer * directions * each
        parts = [weights[start + d * each : start + (d + 1) * each] for d in range(directions)]
        stack = lambda names: (  # noqa: E731
            b.op("Unsqueeze", names[0], b.ints(0)) if len(names) == 1 else b.op(
                "Concat", *[b.op("Unsqueeze", n, b.ints(0)) for n in names], axis=0))  # fmt: skip
        h = a.hidden_size
        w = stack([_gates(b, b.name(p[0]), kind, h) for p in parts])
        r = stack([_gates(b, b.name(p[1]), kind, h) for p in parts])
        bias = ""
        if a.biases:
            bias = stack([
                b.op("Concat", *[_gates(b, b.name(p[k]), kind, h) for k in (2, 3)], axis=0)
                for p in parts
            ])  # fmt: skip
        more: dict[str, Any] = {"hidden_size": h}
        if directions == 2:
            more["direction"] = "bidirectional"
        if kind in _ACTIVATIONS:
            more["activations"] = [_ACTIVATIONS[kind]] * directions
        if _CELLS[kind] == "GRU":
            more["linear_before_reset"] = 1
        inputs = [x, w, r, bias, "", *initial]
        while inputs and not inputs[-1]:
            inputs.pop()
        got = b.op(_CELLS[kind], *inputs, n=3 if lstm else 2, **more)
        # time, direction, batch, hidden -> time, batch, direction * hidden
        x = b.op("Reshape", b.op("Transpose", got[0], perm=[0, 2, 1, 3]),
                 b.ints(0, 0, directions * h))  # fmt: skip
        for k, end in enumerate(got[1:]):
            ends[k].append(end)
    finals = [
        (e[0] if len(e) == 1 else b.op("Concat", *e, axis=0)) for e in ends if e
    ]  # fmt: skip
    if not batched:
        x = b.op("Squeeze", x, b.ints(1))
        finals = [b.op("Squeeze", f, b.ints(1)) for f in finals]
    elif a.batch_first:
        x = b.op("Transpose", x, perm=[1, 0, 2])
    found = [x, *finals]
    return found + found[-1:] * (len(a.node.outputs) - len(found))


_CELLS = {0: "LSTM", 1: "GRU", 2: "RNN", 3: "RNN"}
_ACTIVATIONS = {2: "Tanh", 3: "Relu"}


def _gates(b: Builder, name: str, kind: int, hidden: int) -> str:
    """Rows in ONNX's order of gates."""
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2]}.get(_CELLS[kind])
    if order is None:
        return name
    parts = [b.op("Slice", name, b.ints(k * hidden), b.ints((k + 1) * hidden), b.ints(0))
             for k in order]  # fmt: skip
    result: str = b.op("Concat", *parts, axis=0)
    return result


@lowers("ops._lstm_cell", "ops._gru_cell", "ops._rnn_cell")
def _cell(b: Builder, a: Any) -> Any:
    x = b.name(a.input)
    hidden = a.w_hh.sizes[1]
    shape = b.op("Concat", b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(-1)),
                 b.ints(hidden), axis=0)  # fmt: skip
    zeros = lambda: b.op("Expand", b.scalar(0, a.input.dtype), shape)  # noqa: E731
    h = b.name(a.hx) if a.hx is not None else zeros()

    def gate(name: str, w: Value, bias: Any) -> str:
        made = b.op("MatMul", name, b.op("Transpose", b.name(w), perm=[1, 0]))
        return str(made if bias is None else b.op("Add", made, b.name(bias)))

    left, right = gate(x, a.w_ih, a.b_ih), gate(h, a.w_hh, a.b_hh)
    if a.node.op == "ops._rnn_cell":
        return b.op("Relu" if a.relu else "Tanh", b.op("Add", left, right))
    if a.node.op == "ops._gru_cell":
        l3, r3 = (b.op("Split", s, n=3, axis=-1, num_outputs=3) for s in (left, right))
        r = b.op("Sigmoid", b.op("Add", l3[0], r3[0]))
        z = b.op("Sigmoid", b.op("Add", l3[1], r3[1]))
        n = b.op("Tanh", b.op("Add", l3[2], b.op("Mul", r, r3[2])))
        return b.op("Add", n, b.op("Mul", z, b.op("Sub", h, n)))
    c = b.name(a.cx) if a.cx is not None else zeros()
    i, f, g, o = b.op("Split", b.op("Add", left, right), n=4, axis=-1, num_outputs=4)
    c = b.op("Add", b.op("Mul", b.op("Sigmoid", f), c),
             b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", g)))  # fmt: skip
    return [b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c)), c]


# ---- padding and resizing ----


@lowers("nn.functional.pad", "ops._constant_pad", "ops._pad_mode")
def _pad(b: Builder, a: Any) -> str:
    x = a.input
    n = rank(x)
    pad = list(a.pad)
    mode = a.get("mode", "constant")
    before: list[Any] = [0] * n
    after: list[Any] = [0] * n
    for k in range(len(pad) // 2):
        before[n - 1 - k], after[n - 1 - k] = pad[2 * k], pad[2 * k + 1]
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    inputs = [b.name(x), b.vector([*before, *after])]
    if mode == "constant":
        value = a.get("value")
        inputs.append(b.scalar(0 if value is None else value, x.dtype))
    result: str = b.op("Pad", *inputs, mode=modes[mode])
    return result


def _nearest(b: Builder, x: Value, sizes: list[str], steps: list[Any], exact: bool) -> str:
    """The nearest elements, whose places are computed in float32."""
    name = b.name(x)
    for d, (size, step) in enumerate(zip(sizes, steps), start=2):
        length = b.dim_of(x, d)
        if step is None:
            step = b.op("Div", b.cast(length, "float64"), b.cast(size, "float64"))
            step = b.cast(step, "float32")
        line = b.op("Range", b.const(0, np.int64), size, b.const(1, np.int64))
        line = b.cast(line, "float32")
        if exact:
            line = b.op("Add", line, b.const(np.float32(0.5)))
        places = b.cast(b.op("Floor", b.op("Mul", line, step)), "int64")
        last = b.op("Sub", length, b.const(1, np.int64))
        name = b.op("Gather", name, b.op("Min", places, last), axis=d)
    return name


@lowers("nn.functional.interpolate")
def _interpolate(b: Builder, a: Any) -> str:
    names = ("input", "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor",
             "antialias")  # fmt: skip
    given = dict(zip(names, a.node.args)) | a.node.kwargs
    x, mode = given["input"], given.get("mode", "nearest")
    n = rank(x) - 2
    name = b.name(x)
    modes = {"nearest": "nearest", "linear": "linear", "bilinear": "linear",
             "trilinear": "linear", "bicubic": "cubic"}  # fmt: skip
    if mode not in (*modes, "nearest-exact", "area") or given.get("antialias"):
        raise OnnxExporterError(f"onnx.export: interpolate() with mode {mode!r} or antialias")
    size, factor = given.get("size"), given.get("scale_factor")
    whole = size is None and all(float(f).is_integer() for f in _listed(factor, n))
    if mode == "area" or (mode.startswith("nearest") and not whole):
        # Rounding decides; runtimes differ, and in a file the places are computed as in eager.
        if size is not None:
            sizes = [b.scalar(k, "int64") for k in _listed(size, n)]
        else:
            sizes = [
                b.cast(b.op("Floor", b.op("Mul", b.cast(b.dim_of(x, 2 + d), "float64"),
                                          b.const(float(f), np.float64))), "int64")
                for d, f in enumerate(_listed(factor, n))
            ]  # fmt: skip
        if mode == "area":
            return _averages(b, x, sizes)
        steps = [None] * n if size is not None or given.get("recompute_scale_factor") else [
            b.const(np.float32(1.0 / float(f))) for f in _listed(factor, n)
        ]  # fmt: skip
        return _nearest(b, x, sizes, steps, mode == "nearest-exact")
    more: dict[str, Any] = {"mode": modes.get(mode, "nearest")}
    if mode.startswith("nearest"):
        exact = mode == "nearest-exact"
        more["coordinate_transformation_mode"] = "half_pixel" if exact else "asymmetric"
        more["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
    else:
        aligned = bool(given.get("align_corners"))
        more["coordinate_transformation_mode"] = (
            "align_corners" if aligned else "pytorch_half_pixel"
        )
        if mode == "bicubic":
            more["cubic_coeff_a"] = -0.75
            more["coordinate_transformation_mode"] = "align_corners" if aligned else "half_pixel"
    if size is not None:
        shape = b.op("Shape", name)
        sizes = b.op("Concat", b.op("Slice", shape, b.ints(0), b.ints(2)),
                     b.vector(_listed(size, n)), axis=0)  # fmt: skip
        return str(b.op("Resize", name, "", "", sizes, **more))
    scales = [1.0, 1.0, *map(float, _listed(factor, n))]
    return str(b.op("Resize", name, "", b.const(np.array(scales, np.float32)), **more))


@lowers("nn.functional.affine_grid")
def _affine_grid(b: Builder, a: Any) -> str:
    theta, size = argument(a, 0, "theta", None), argument(a, 1, "size", None)
    aligned = bool(argument(a, 2, "align_corners", False))
    n = len(size) - 2
    dtype = theta.dtype
    name = b.name(theta)
    columns = b.op("Split", name, b.ints(*[1] * (n + 1)), n=n + 1, axis=2)
    wide = [b.op("Reshape", c, b.ints(0, *[1] * n, n)) for c in columns]  # (N, 1, 1, n)
    total = wide[n]
    one = b.scalar(1, dtype)
    for d in range(n):
        length = b.scalar(size[2 + d], "int64")
        line = b.op("Range", b.const(0, np.int64), length, b.const(1, np.int64))
        line, count = b.cast(line, dtype), b.cast(length, dtype)
        twice = b.op("Add", line, line)
        if aligned:
            last = b.op("Sub", count, one)
            places = b.op("Sub", b.op("Div", twice, b.op("Max", last, one)), one)
            # The only place along a dim of size 1 is its middle.
            places = b.op("Where", b.op("Greater", last, b.scalar(0, dtype)), places, twice)
        else:
            places = b.op("Sub", b.op("Div", b.op("Add", twice, one), count), one)
        shape = [1] * (n + 2)
        shape[1 + d] = -1
        part = b.op("Mul", wide[n - 1 - d], b.op("Reshape", places, b.ints(*shape)))
        total = b.op("Add", total, part)
    return str(total)


@lowers("nn.functional.grid_sample")
def _grid_sample(b: Builder, a: Any) -> str:
    x, grid = argument(a, 0, "input", None), argument(a, 1, "grid", None)
    if rank(x) != 4 and b.opset < 20:
        raise OnnxExporterError("onnx.export: grid_sample() of volumes needs opset 20")
    mode = argument(a, 2, "mode", "bilinear")
    if b.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    result: str = b.op(
        "GridSample", b.name(x), b.name(grid), mode=mode,
        padding_mode=argument(a, 3, "padding_mode", "zeros"),
        align_corners=int(bool(argument(a, 4, "align_corners", False))),
    )  # fmt: skip
    return result


@lowers("nn.functional.unfold")
def _unfold(b: Builder, a: Any) -> str:
    """A convolution whose filters pick one element each."""
    channels = a.input.sizes[-3]
    if channels is None:
        raise OnnxExporterError("onnx.export: unfold() of varying channels")
    kernel = [int(k) for k in _listed(a.kernel_size, 2)]
    count = math.prod(kernel)
    one = np.eye(count, dtype=a.input.dtype.name).reshape(count, 1, *kernel)

    def work(x: str) -> str:
        made = b.op(
            "Conv", x, b.const(np.tile(one, (channels, 1, 1, 1))), group=channels,
            kernel_shape=kernel, strides=_listed(a.stride, 2), dilations=_listed(a.dilation, 2),
            pads=_listed(a.padding, 2) * 2,
        )  # fmt: skip
        return str(b.op("Reshape", made, b.ints(0, 0, -1)))

    return _unbatched(b, a.input, 2, work)


@lowers("convolution")
def _convolution(b: Builder, a: Any) -> str:
    n = rank(a.weight) - 2
    rest = [b.name(a.bias)] if a.bias is not None else []
    more: dict[str, Any] = {"output_padding": _listed(a.output_padding, n)} if a.transposed else {}
    result: str = b.op(
        "ConvTranspose" if a.transposed else "Conv", b.name(a.input), b.name(a.weight), *rest,
        strides=_listed(a.stride, n), dilations=_listed(a.dilation, n), group=a.groups,
        pads=_listed(a.padding, n) * 2, kernel_shape=[int(s) for s in a.weight.sizes[2:]], **more,
    )  # fmt: skip
    return result


@lowers("nn.functional.fold")
def _fold(b: Builder, a: Any) -> str:
    return _unbatched(b, a.input, 1, lambda x: b.op(
        "Col2Im", x, b.vector(_listed(a.output_size, 2)), b.ints(*_listed(a.kernel_size, 2)),
        dilations=_listed(a.dilation, 2), pads=_listed(a.padding, 2) * 2,
        strides=_listed(a.stride, 2),
    ))  # fmt: skip


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
    if a.target.dtype != clew.int64 or a.get("label_smoothing"):
        raise OnnxExporterError("onnx.export: cross_entropy() with probabilities or smoothing")
    weight = [b.name(a.weight)] if a.weight is not None else []
    kind = "SoftmaxCrossEntropyLoss" if "cross" in a.node.op else "NegativeLogLikelihoodLoss"
    x, target = b.name(a.input), b.name(a.target)
    if rank(a.input) == 1:
        x, target = b.op("Unsqueeze", x, b.ints(0)), b.op("Unsqueeze", target, b.ints(0))
    found = b.op(kind, x, target, *weight, reduction=a.reduction, ignore_index=a.ignore_index)
    if rank(a.input) == 1 and a.reduction == "none":
        found = b.op("Squeeze", found, b.ints(0))
    zero = b.scalar(0, a.input.dtype)  # what only backward reads
    return [found, *[zero] * (len(a.node.outputs) - 1)]
