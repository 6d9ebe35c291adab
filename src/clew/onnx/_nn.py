"""Layers in ONNX: convolutions, pools, norms, activations, attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._reductions import product, reduce
from clew.onnx._shape import rank


def listed(x: Any, n: int) -> list[Any]:
    """A number for each dim."""
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


def unbatched(b: Builder, x: Value, n: int, work: Any) -> str:
    """Runs ``work`` on a batch, of one where the input has none."""
    if rank(x) == n + 2:
        return str(work(b.name(x)))
    one = b.op("Unsqueeze", b.name(x), b.ints(0))
    return str(b.op("Squeeze", work(one), b.ints(0)))


@lowers("conv1d", "conv2d", "conv3d")
def _conv(b: Builder, a: Any) -> str:
    n = int(a.node.op[4])
    kernel = [int(s) for s in a.weight.sizes[2:]]
    stride, dilation = listed(a.stride, n), listed(a.dilation, n)
    more: dict[str, Any] = {}
    if isinstance(a.padding, str):
        if a.padding == "same":
            total = [d * (k - 1) for d, k in zip(dilation, kernel)]
            more["pads"] = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        more["pads"] = listed(a.padding, n) * 2
    rest = [b.name(a.bias)] if a.bias is not None else []
    return unbatched(b, a.input, n, lambda x: b.op(
        "Conv", x, b.name(a.weight), *rest, strides=stride, dilations=dilation, group=a.groups,
        kernel_shape=kernel, **more))  # fmt: skip


@lowers("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(b: Builder, a: Any) -> str:
    n = int(a.node.op[14])
    stride, before, more = (listed(x, n) for x in (a.stride, a.padding, a.output_padding))
    rest = [b.name(a.bias)] if a.bias is not None else []
    if any(m >= s for m, s in zip(more, stride)):
        # More than ONNX takes: cut less at the ends, add zeros there, and then the bias.
        cut = [min(p, m) for p, m in zip(before, more)]
        zeros = [0] * (2 + n) + [0, 0] + [m - c for m, c in zip(more, cut)]
        ends, more, rest = [p - c for p, c in zip(before, cut)], [0] * n, []
    else:
        ends, zeros = before, []

    def work(x: str) -> str:
        made = b.op(
            "ConvTranspose", x, b.name(a.weight), *rest, strides=stride,
            dilations=listed(a.dilation, n), group=a.groups, pads=[*before, *ends],
            output_padding=more, kernel_shape=[int(s) for s in a.weight.sizes[2:]])  # fmt: skip
        if zeros:
            made = b.op("Pad", made, b.ints(*zeros))
            if a.bias is not None:
                shape = b.ints(-1, *[1] * n)
                made = b.op("Add", made, b.op("Reshape", b.name(a.bias), shape))
        return str(made)

    return unbatched(b, a.input, n, work)


# ---- pools ----


@lowers("ops._max_pool1d", "ops._max_pool2d", "ops._max_pool3d")
def _max_pool(b: Builder, a: Any) -> Any:
    n = int(a.node.op[13])
    kernel = listed(a.kernel_size, n)
    strides = listed(kernel if a.stride is None or a.stride == [] else a.stride, n)
    both: list[Any] = []

    def work(x: str) -> str:
        got = b.op("MaxPool", x, n=2, kernel_shape=kernel, strides=strides,
                   pads=listed(a.padding, n) * 2, dilations=listed(a.dilation, n),
                   ceil_mode=int(a.ceil_mode))  # fmt: skip
        both.append(got[1])
        return str(got[0])

    values = unbatched(b, a.input, n, work)
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
    kernel = listed(a.kernel_size, n)
    strides = listed(kernel if a.stride is None or a.stride == [] else a.stride, n)
    padded = int(a.count_include_pad or divisor is not None)
    found = unbatched(b, a.input, n, lambda x: b.op(
        "AveragePool", x, kernel_shape=kernel, strides=strides, pads=listed(a.padding, n) * 2,
        ceil_mode=int(a.ceil_mode), count_include_pad=padded))  # fmt: skip
    if divisor is None:
        return found
    return str(b.op("Mul", found, b.scalar(math.prod(kernel) / divisor, a.input.dtype)))


@lowers("nn.functional.adaptive_avg_pool1d", "nn.functional.adaptive_avg_pool2d",
        "nn.functional.adaptive_avg_pool3d", "ops._adaptive_max_pool1d",
        "ops._adaptive_max_pool2d", "ops._adaptive_max_pool3d")  # fmt: skip
def _adaptive(b: Builder, a: Any) -> Any:
    n = int(a.node.op[-2])
    sizes = listed(a.output_size, n)
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
        return _greatest(b, a.input, sizes) if top else averages(b, a.input, sizes)
    kernel = [s // k for k, s in zip(sizes, spatial)]
    if not top:
        return unbatched(b, a.input, n, lambda x: b.op(
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


def averages(b: Builder, x: Value, sizes: list[Any]) -> str:
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
