"""torchvision's compiled operations, written with clew's.

`torch.ops.load_library` calls `register()` in place of loading what was compiled for PyTorch.
"""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.library import _define, _Operation, _registry

__all__ = ["register"]


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of boxes, best first, that no better kept box overlaps by more than a share."""
    boxes = dets.detach().double().numpy()
    order = scores.detach().sort(descending=True, stable=True)[1].numpy()
    x1, y1, x2, y2 = boxes.T if len(boxes) else np.zeros((4, 0))
    areas = (x2 - x1) * (y2 - y1)
    alive = np.ones(len(boxes), dtype=bool)
    kept = []
    for at, i in enumerate(order):
        if not alive[i]:
            continue
        kept.append(i)
        rest = order[at + 1 :]
        rest = rest[alive[rest]]
        width = np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest])
        height = np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest])
        shared = width.clip(0) * height.clip(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = shared / (areas[i] + areas[rest] - shared)
        alive[rest[share > iou_threshold]] = False
    return clew.tensor(np.array(kept, dtype=np.int64))


def _means(start: Any, bin_size: Any, bins: int, length: int, ratio: int, extent: Any) -> Any:
    """The weight of each of `length` places in each bin: (boxes, bins, length).

    A bin's value is the mean of samples at even distances, each between two places; samples
    beyond the edge by more than one place count 0.
    """
    count = np.full(len(start), ratio) if ratio > 0 else np.ceil(extent / bins).astype(int)
    weights = np.zeros((len(start), bins, length))
    for k in range(len(start)):
        n = int(count[k])
        if n < 1:
            continue
        step = (np.arange(n) + 0.5) * bin_size[k] / n
        at = start[k] + np.arange(bins)[:, None] * bin_size[k] + step
        valid = (at >= -1.0) & (at <= length)
        at = at.clip(0)
        low = np.floor(at).astype(int)
        edge = low >= length - 1
        low = np.where(edge, length - 1, low)
        high = np.where(edge, length - 1, low + 1)
        share = np.where(edge, 0.0, at - low)
        rows = np.broadcast_to(np.arange(bins)[:, None], at.shape)
        np.add.at(weights[k], (rows, low), np.where(valid, 1 - share, 0) / n)
        np.add.at(weights[k], (rows, high), np.where(valid, share, 0) / n)
    return weights


def _pooled(input: Tensor, rois: Tensor, wy: Any, wx: Any) -> Tensor:
    """Sums over places with weights for rows and columns: (boxes, channels, bins, bins)."""
    images = rois.detach()[:, 0].long()
    wy, wx = (clew.tensor(w).to(input.dtype) for w in (wy, wx))
    parts, order = [], []
    for image in images.unique().tolist():
        chosen = (images == image).nonzero().reshape(-1)
        order.append(chosen)
        plane = input[int(image)]
        rows = clew.einsum("kih,chw->kciw", wy[chosen], plane)
        parts.append(clew.einsum("kciw,kjw->kcij", rows, wx[chosen]))
    if not parts:
        return input.new_zeros((0, input.shape[1], wy.shape[1], wx.shape[1]))
    return clew.cat(parts)[clew.cat(order).argsort()]


def _scaled(rois: Tensor, scale: float, offset: float) -> Any:
    box = rois.detach().double().numpy()[:, 1:] * scale - offset
    return box[:, 0], box[:, 1], box[:, 2], box[:, 3]


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Means of samples in the bins of boxes."""
    x1, y1, x2, y2 = _scaled(rois, spatial_scale, 0.5 if aligned else 0.0)
    width, height = x2 - x1, y2 - y1
    if not aligned:
        width, height = width.clip(1.0), height.clip(1.0)
    h, w = input.shape[-2:]
    wy = _means(y1, height / pooled_height, pooled_height, h, sampling_ratio, height)
    wx = _means(x1, width / pooled_width, pooled_width, w, sampling_ratio, width)
    return _pooled(input, rois, wy, wx)


def _own_channels(values: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Of each bin the channel that belongs to it, and that channel's number."""
    count, channels = values.shape[:2]
    out = channels // (height * width)
    apart = values.reshape(count, out, height, width, height, width)
    own = apart.diagonal(dim1=2, dim2=4).diagonal(dim1=2, dim2=3)
    mapping = clew.arange(channels, dtype=clew.int32).reshape(1, out, height, width)
    return own.contiguous(), mapping.expand(count, -1, -1, -1).contiguous()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """The same, each bin from a channel of its own."""
    values = roi_align(
        input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True
    )
    return _own_channels(values, pooled_height, pooled_width)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Means of the places in the bins of boxes, each from a channel of its own."""
    box = np.floor(rois.detach().double().numpy()[:, 1:] + 0.5)
    x1, y1 = box[:, 0] * spatial_scale, box[:, 1] * spatial_scale
    x2, y2 = (box[:, 2] + 1) * spatial_scale, (box[:, 3] + 1) * spatial_scale

    def weights(start: Any, end: Any, bins: int, length: int) -> Any:
        size = (end - start).clip(0.1) / bins
        found = np.zeros((len(start), bins, length))
        for k in range(len(start)):
            for i in range(bins):
                low = int(np.clip(math.floor(i * size[k] + start[k]), 0, length))
                high = int(np.clip(math.ceil((i + 1) * size[k] + start[k]), 0, length))
                if high > low:
                    found[k, i, low:high] = 1 / (high - low)
        return found

    h, w = input.shape[-2:]
    values = _pooled(
        input, rois, weights(y1, y2, pooled_height, h), weights(x1, x2, pooled_width, w)
    )
    return _own_channels(values, pooled_height, pooled_width)


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest places in the bins of boxes, and where they lie in their planes."""
    h, w = input.shape[-2:]
    box = rois.detach().double().numpy()
    corners = np.floor(box[:, 1:] * spatial_scale + 0.5).astype(int)
    values, places = [], []

    def bounds(start: int, end: int, bins: int, length: int) -> list[tuple[int, int]]:
        size = max(end - start + 1, 1) / bins
        low = [min(max(math.floor(i * size) + start, 0), length) for i in range(bins)]
        high = [min(max(math.ceil((i + 1) * size) + start, 0), length) for i in range(bins)]
        return list(zip(low, high))

    for (x1, y1, x2, y2), image in zip(corners.tolist(), box[:, 0].astype(int).tolist()):
        plane = input[image]
        for top, bottom in bounds(y1, y2, pooled_height, h):
            for left, right in bounds(x1, x2, pooled_width, w):
                if bottom <= top or right <= left:
                    values.append(plane.new_zeros(plane.shape[0]))
                    places.append(clew.full((plane.shape[0],), -1))
                    continue
                best, at = plane[:, top:bottom, left:right].flatten(1).max(1)
                across = right - left
                values.append(best)
                places.append((at // across + top) * w + at % across + left)
    shape = (len(corners), pooled_height, pooled_width, input.shape[1])
    if not values:
        empty = input.new_zeros((0, input.shape[1], pooled_height, pooled_width))
        return empty, empty.int()
    found = clew.stack(values).reshape(shape).permute(0, 3, 1, 2)
    where = clew.stack(places).reshape(shape).permute(0, 3, 1, 2)
    return found.contiguous(), where.int().contiguous()


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dil_h: int,
    dil_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose places are shifted by offsets."""
    n, channels, h, w = input.shape
    out_channels, _, kh, kw = weight.shape
    oh = (h + 2 * pad_h - dil_h * (kh - 1) - 1) // stride_h + 1
    ow = (w + 2 * pad_w - dil_w * (kw - 1) - 1) // stride_w + 1
    taps = kh * kw
    shifts = offset.reshape(n, offset_groups, taps, 2, oh, ow)
    kind = offset.dtype
    row = (clew.arange(oh, dtype=kind) * stride_h - pad_h).reshape(1, 1, 1, oh, 1)
    column = (clew.arange(ow, dtype=kind) * stride_w - pad_w).reshape(1, 1, 1, 1, ow)
    tap_row = (clew.arange(kh, dtype=kind) * dil_h).repeat_interleave(kw).reshape(1, 1, taps, 1, 1)
    tap_column = (clew.arange(kw, dtype=kind) * dil_w).repeat(kh).reshape(1, 1, taps, 1, 1)
    y = shifts[:, :, :, 0] + row + tap_row
    x = shifts[:, :, :, 1] + column + tap_column
    # From places to the -1 ... 1 of grid_sample, whose zeros beyond the edge are wanted here too.
    grid = clew.stack([x * (2 / max(w - 1, 1)) - 1, y * (2 / max(h - 1, 1)) - 1], -1).reshape(
        n * offset_groups, taps * oh, ow, 2
    )
    if h == 1 or w == 1:
        raise NotImplementedError("deform_conv2d: images of one row or column are not supported")
    planes = input.reshape(n * offset_groups, channels // offset_groups, h, w)
    samples = clew.nn.functional.grid_sample(planes, grid, align_corners=True)
    samples = samples.reshape(n, offset_groups, channels // offset_groups, taps, oh, ow)
    if use_mask:
        samples = samples * mask.reshape(n, offset_groups, 1, taps, oh, ow)
    columns = samples.reshape(n, groups, channels // groups * taps, oh * ow)
    factors = weight.reshape(groups, out_channels // groups, channels // groups * taps)
    out = clew.einsum("gok,ngkp->ngop", factors, columns).reshape(n, out_channels, oh, ow)
    return out + bias.reshape(1, -1, 1, 1)


# ---- images, through Pillow ----

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _open(data: Tensor) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(data.contiguous().numpy().tobytes()))


def _decode(data: Tensor, mode: int = 0, apply_exif_orientation: bool = False) -> Tensor:
    from PIL import ImageOps

    image = _open(data)
    if apply_exif_orientation:
        image = ImageOps.exif_transpose(image)
    if mode:
        image = image.convert(_MODES[mode])
    elif image.mode in ("P", "1", "CMYK", "YCbCr"):
        image = image.convert("RGB" if image.mode != "1" else "L")
    array = np.array(image)
    if array.ndim == 2:
        array = array[..., None]
    if array.dtype == np.int32:  # Pillow's form of 16 bits
        array = array.astype(np.uint16)
    return clew.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))


def _encode(data: Tensor, kind: str, **options: Any) -> Tensor:
    from PIL import Image

    array = data.numpy()
    if array.ndim != 3 or array.shape[0] not in (1, 3):
        raise RuntimeError(
            f"encode_{kind.lower()}: expected an image of 1 or 3 channels; got {tuple(data.shape)}"
        )
    array = array.transpose(1, 2, 0)
    image = Image.fromarray(array[..., 0] if array.shape[2] == 1 else np.ascontiguousarray(array))
    out = io.BytesIO()
    image.save(out, kind, **options)
    return clew.frombuffer(bytearray(out.getvalue()), dtype=clew.uint8)


def _read_file(filename: str) -> Tensor:
    with open(filename, "rb") as file:
        data = file.read()
    return clew.frombuffer(bytearray(data), dtype=clew.uint8) if data else clew.empty(0).byte()


def _write_file(filename: str, data: Tensor) -> None:
    with open(filename, "wb") as file:
        file.write(data.contiguous().numpy().tobytes())


_VISION = {
    "nms": nms,
    "roi_align": roi_align,
    "roi_pool": roi_pool,
    "ps_roi_align": ps_roi_align,
    "ps_roi_pool": ps_roi_pool,
    "deform_conv2d": deform_conv2d,
    "_cuda_version": lambda: -1,
}
_IMAGE = {
    "decode_image": _decode,
    "decode_jpeg": lambda data, mode=0, turn=False: _decode(data, mode, turn),
    "decode_png": lambda data, mode=0, turn=False: _decode(data, mode, turn),
    "decode_webp": lambda data, mode=0: _decode(data, mode),
    "decode_gif": lambda data: _decode(data, 3),
    "encode_jpeg": lambda data, quality: _encode(data, "JPEG", quality=quality, subsampling=2),
    "encode_png": lambda data, level: _encode(data, "PNG", compress_level=level),
    "read_file": _read_file,
    "write_file": _write_file,
    "_is_compiled_against_turbo": lambda: False,
    "_jpeg_version": lambda: -1,
}


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
    if space == "torchvision":  # gradients are those of the operations inside: no kernel of theirs
        pooled = ("deform_conv2d", "ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool")
        for short in [*(f"_{p}_backward" for p in pooled), "qnms", "qroi_align"]:
            full = f"torchvision::{short}"
            _registry.setdefault(full, _Operation(full, None))
    kernel: Any
    for short, kernel in kernels.items():
        full = f"{space}::{short}"
        if full not in _registry:
            _define(full, None)._kernel = kernel
    return True
