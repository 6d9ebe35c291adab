"""Padding, resizing and sampling of images in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew.export._ir import Value
from clew.onnx._draws import argument
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._nn import averages, listed, unbatched
from clew.onnx._shape import rank

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


def _scaled(b: Builder, x: Value, d: int, factor: Any) -> str:
    """A size times a factor."""
    product = b.op("Mul", b.cast(b.dim_of(x, 2 + d), "float64"), b.const(float(factor), np.float64))
    return str(b.cast(b.op("Floor", product), "int64"))


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
    whole = size is None and all(float(f).is_integer() for f in listed(factor, n))
    if mode == "area" or (mode.startswith("nearest") and not whole):
        # Rounding decides; runtimes differ, and in a file the places are computed as in eager.
        if size is not None:
            sizes = [b.scalar(k, "int64") for k in listed(size, n)]
        else:
            sizes = [_scaled(b, x, d, f) for d, f in enumerate(listed(factor, n))]
        if mode == "area":
            return averages(b, x, sizes)
        steps = [None] * n if size is not None or given.get("recompute_scale_factor") else [
            b.const(np.float32(1.0 / float(f))) for f in listed(factor, n)
        ]  # fmt: skip
        return _nearest(b, x, sizes, steps, mode == "nearest-exact")
    more: dict[str, Any] = {"mode": modes.get(mode, "nearest")}
    if mode.startswith("nearest"):
        exact = mode == "nearest-exact"
        more["coordinate_transformation_mode"] = "half_pixel" if exact else "asymmetric"
        more["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
    else:
        aligned = bool(given.get("align_corners"))
        # "pytorch_half_pixel" would take the first element where the size becomes 1.
        more["coordinate_transformation_mode"] = "align_corners" if aligned else "half_pixel"
        if mode == "bicubic":
            more["cubic_coeff_a"] = -0.75
    if size is not None:
        shape = b.op("Shape", name)
        sizes = b.op("Concat", b.op("Slice", shape, b.ints(0), b.ints(2)),
                     b.vector(listed(size, n)), axis=0)  # fmt: skip
        return str(b.op("Resize", name, "", "", sizes, **more))
    if given.get("recompute_scale_factor"):
        shape = b.op("Shape", name)
        ends = [_scaled(b, x, d, f) for d, f in enumerate(listed(factor, n))]
        first = b.op("Slice", shape, b.ints(0), b.ints(2))
        sizes = b.op("Concat", first, *(b.op("Unsqueeze", e, b.ints(0)) for e in ends), axis=0)
        return str(b.op("Resize", name, "", "", sizes, **more))
    scales = [1.0, 1.0, *map(float, listed(factor, n))]
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
    padding, places = argument(a, 3, "padding_mode", "zeros"), b.name(grid)
    nowhere = None
    if padding == "zeros":  # runtimes differ in what lies infinitely far outside, or nowhere
        far, nan = b.scalar(4, grid.dtype), b.op("IsNaN", places)
        if mode != "nearest":
            zero = b.scalar(0, grid.dtype)
            # An image's place at infinity is none either (infinity times 0), a volume's is outside.
            away = rank(x) == 4
            lost = b.op("Mul", places, zero) if away else b.op("Where", nan, places, zero)
            nowhere = b.op("Unsqueeze", b.op("ReduceSum", lost, b.ints(-1), keepdims=0), b.ints(1))
        places = b.op("Where", nan, far, places)
        places = b.op("Max", b.op("Min", places, far), b.op("Neg", far))
    result: str = b.op(
        "GridSample", b.name(x), places, mode=mode, padding_mode=padding,
        align_corners=int(bool(argument(a, 4, "align_corners", False))),
    )  # fmt: skip
    if nowhere is not None:
        result = b.op("Add", result, nowhere)
    return result


@lowers("nn.functional.unfold")
def _unfold(b: Builder, a: Any) -> str:
    """A convolution whose filters pick one element each."""
    channels = a.input.sizes[-3]
    if channels is None:
        raise OnnxExporterError("onnx.export: unfold() of varying channels")
    kernel = [int(k) for k in listed(a.kernel_size, 2)]
    count = math.prod(kernel)
    one = np.eye(count, dtype=a.input.dtype.name).reshape(count, 1, *kernel)

    def work(x: str) -> str:
        made = b.op(
            "Conv", x, b.const(np.tile(one, (channels, 1, 1, 1))), group=channels,
            kernel_shape=kernel, strides=listed(a.stride, 2), dilations=listed(a.dilation, 2),
            pads=listed(a.padding, 2) * 2,
        )  # fmt: skip
        return str(b.op("Reshape", made, b.ints(0, 0, -1)))

    return unbatched(b, a.input, 2, work)


@lowers("convolution")
def _convolution(b: Builder, a: Any) -> str:
    n = rank(a.weight) - 2
    rest = [b.name(a.bias)] if a.bias is not None else []
    more: dict[str, Any] = {"output_padding": listed(a.output_padding, n)} if a.transposed else {}
    result: str = b.op(
        "ConvTranspose" if a.transposed else "Conv", b.name(a.input), b.name(a.weight), *rest,
        strides=listed(a.stride, n), dilations=listed(a.dilation, n), group=a.groups,
        pads=listed(a.padding, n) * 2, kernel_shape=[int(s) for s in a.weight.sizes[2:]], **more,
    )  # fmt: skip
    return result


@lowers("nn.functional.fold")
def _fold(b: Builder, a: Any) -> str:
    return unbatched(b, a.input, 1, lambda x: b.op(
        "Col2Im", x, b.vector(listed(a.output_size, 2)), b.ints(*listed(a.kernel_size, 2)),
        dilations=listed(a.dilation, 2), pads=listed(a.padding, 2) * 2,
        strides=listed(a.stride, 2),
    ))  # fmt: skip
