"""torchvision's compiled operations, written with clew's.

`torch.ops.load_library` calls `register()` in place of loading what was compiled for PyTorch. The
operations have gradients of their own; torchvision, which asks for gradients by the name of an
operation, finds those too.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew._ops.schema import Schema as _Schema
from clew._registered import _Operation, _registry
from clew._registering import _define
from clew._torch.torchvision_ops.boxes import (
    box_iou_rotated,
    nms,
    ps_roi_align,
    ps_roi_pool,
    roi_align,
    roi_pool,
)
from clew._torch.torchvision_ops.checks import need
from clew._torch.torchvision_ops.deform import deform_conv2d
from clew._torch.torchvision_ops.gradients import (
    deform_conv2d_backward,
    ps_roi_align_backward,
    ps_roi_pool_backward,
    ps_roi_pool_gradient,
    ps_roi_pool_kept,
    roi_align_backward,
    roi_pool_backward,
)
from clew._torch.torchvision_ops.images import (
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    read_file,
    write_file,
)
from clew.library import register_autograd

__all__ = ["register"]

_BOXES = "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_DEFORM = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_MAPPED = _BOXES.replace("float", "Tensor channel_mapping, float")
_VISION: dict[str, Callable[..., Any]] = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": nms,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor": box_iou_rotated,
    f"roi_align(Tensor input, {_BOXES}, int sampling_ratio, bool aligned) -> Tensor": roi_align,
    f"roi_pool(Tensor input, {_BOXES}) -> (Tensor, Tensor)": roi_pool,
    f"ps_roi_align(Tensor input, {_BOXES}, int sampling_ratio) -> (Tensor, Tensor)": ps_roi_align,
    f"ps_roi_pool(Tensor input, {_BOXES}) -> (Tensor, Tensor)": ps_roi_pool,
    f"deform_conv2d({_DEFORM}) -> Tensor": deform_conv2d,
    f"_roi_align_backward(Tensor grad, {_BOXES}, {_SIZES}, int sampling_ratio, bool aligned)"
    " -> Tensor": roi_align_backward,
    f"_roi_pool_backward(Tensor grad, {_BOXES.replace('float', 'Tensor argmax, float')}, {_SIZES})"
    " -> Tensor": roi_pool_backward,
    f"_ps_roi_align_backward(Tensor grad, {_MAPPED}, int sampling_ratio, {_SIZES})"
    " -> Tensor": ps_roi_align_backward,
    f"_ps_roi_pool_backward(Tensor grad, {_MAPPED}, {_SIZES}) -> Tensor": ps_roi_pool_backward,
    f"_deform_conv2d_backward(Tensor grad, {_DEFORM}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)": deform_conv2d_backward,
    "_cuda_version() -> int": lambda: -1,
}
_MODE = "int mode, bool apply_exif_orientation=False"
_IMAGE: dict[str, Callable[..., Any]] = {
    f"decode_image(Tensor data, {_MODE}) -> Tensor": decode_image,
    f"decode_jpeg(Tensor data, {_MODE}) -> Tensor": decode_jpeg,
    f"decode_png(Tensor data, {_MODE}) -> Tensor": decode_png,
    "decode_webp(Tensor encoded_data, int mode) -> Tensor": decode_webp,
    "decode_gif(Tensor _0) -> Tensor": decode_gif,
    "encode_jpeg(Tensor _0, int _1) -> Tensor": encode_jpeg,
    "encode_png(Tensor _0, int _1) -> Tensor": encode_png,
    "read_file(str _0) -> Tensor": read_file,
    "write_file(str _0, Tensor _1) -> ()": write_file,
    "_is_compiled_against_turbo() -> bool": lambda: False,
    "_jpeg_version() -> int": lambda: -1,
}


# Of a schema's types: the kinds of values, and their name.
_KINDS: dict[str, tuple[Any, str]] = {
    "Tensor": (Tensor, "a Tensor"),
    "SymInt": (numbers.Integral, "a whole number"),
    "int": (numbers.Integral, "a whole number"),
    "float": ((numbers.Real, Tensor), "a number"),
}


def _in_full(schema: _Schema, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel in the precision of its inputs, in autocast regions too; looks at their kinds."""

    @functools.wraps(kernel)
    def call(*args: Any) -> Any:
        for parameter, value in zip(schema.arguments, args):
            kind, words = _KINDS.get(parameter.type, (object, ""))
            need(
                isinstance(value, kind),
                f"{schema.name}: {parameter.name} should be {words}; got {type(value).__name__}",
            )
        if not clew.is_autocast_enabled("cpu"):
            return kernel(*args)
        with clew.autocast("cpu", enabled=False):
            return kernel(*args)

    return call


def _from_halves(operation: _Operation) -> Callable[..., Any]:
    """The operation for autocast regions: in float32, back in the dtype of its first tensor."""

    def call(*args: Any, **kwargs: Any) -> Any:
        args, _ = operation._schema.bind(args, kwargs)
        halves = (clew.float16, clew.bfloat16)
        cast = (v.float() if isinstance(v, Tensor) and v.dtype in halves else v for v in args)
        with clew.autocast("cpu", enabled=False):
            found = operation(*cast)
        return found.to(args[0].dtype) if found.is_floating_point() else found

    return call


def register(name: str) -> bool:
    """Adds the operations of one of torchvision's libraries; says whether clew has them.

    Args:
        name: the file's name.
    """
    if name.startswith("_C"):
        space, kernels = "torchvision", _VISION
    elif name.startswith("image"):
        space, kernels = "image", _IMAGE
    else:
        return False
    for text, kernel in kernels.items():
        schema = _Schema(text, space)
        full = f"{space}::{schema.name}"
        if full not in _registry:
            operation = _define(full, schema)
            operation._kernel = _in_full(schema, kernel)
            if kernel in (nms, roi_align):
                operation._in_autocast = _from_halves(operation)
            if kernel is ps_roi_pool:  # its gradient is not that of the operations inside
                register_autograd(full, ps_roi_pool_gradient, setup_context=ps_roi_pool_kept)
    if space == "torchvision":
        for short in ("qnms", "qroi_align"):
            _registry.setdefault(f"torchvision::{short}", _Operation(f"torchvision::{short}", None))
    return True
