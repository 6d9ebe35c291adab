"""torchvision's compiled operations, written with clew's.

`torch.ops.load_library` calls `register()` in place of loading what was compiled for PyTorch. The
operations have gradients of their own; torchvision, which asks for gradients by the name of an
operation, finds those too.
"""

from __future__ import annotations

import functools
import io
import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.library import _define, _Operation, _registry, _Schema, register_autograd

__all__ = ["register"]


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def _need_kind(name: str, tensor: Tensor, half: bool) -> None:
    """Raises for data that the operation is not for."""
    kinds = (clew.float32, clew.float64, clew.float16) if half else (clew.float32, clew.float64)
    if tensor.dtype not in kinds:
        raise NotImplementedError(f"{name}: not implemented for {tensor.dtype}")


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of boxes, best first, that no better kept box overlaps by more than a share."""
    _need(dets.dim() == 2, f"nms: boxes should be a 2d tensor; got {dets.dim()}D")
    _need(dets.shape[1] == 4, f"nms: boxes should have 4 columns; got {dets.shape[1]}")
    _need(scores.dim() == 1, f"nms: scores should be a 1d tensor; got {scores.dim()}D")
    _need(len(dets) == len(scores), f"nms: got {len(dets)} boxes and the scores of {len(scores)}")
    _need_kind("nms", dets, half=False)
    _need(
        dets.dtype == scores.dtype,
        f"nms: boxes and scores should have one dtype; got {dets.dtype} and {scores.dtype}",
    )
    # In the boxes' own precision: whether a share is over the threshold may hang on its last bit.
    x1, y1, x2, y2 = np.ascontiguousarray(dets.detach().numpy().T)
    rest = scores.detach().sort(descending=True, stable=True)[1].numpy()
    kept, limit = [], float(iou_threshold)
    with np.errstate(all="ignore"):  # boxes without a size, or not finite, overlap nothing
        areas = (x2 - x1) * (y2 - y1)
        while len(rest):
            best, rest = rest[0], rest[1:]
            kept.append(best)
            width = np.minimum(x2[best], x2[rest]) - np.maximum(x1[best], x1[rest])
            height = np.minimum(y2[best], y2[rest]) - np.maximum(y1[best], y1[rest])
            shared = width.clip(0) * height.clip(0)
            share = shared / (areas[best] + areas[rest] - shared)
            rest = rest[~(share.astype(np.float64) > limit)]
    return clew.tensor(np.array(kept, dtype=np.int64))


def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """How much of what two boxes cover both do, for boxes turned by an angle.

    What two rectangles share is a convex polygon. Its corners are corners of one that lie in the
    other, and places where two edges cross.
    """
    for boxes in (boxes1, boxes2):
        _need(
            boxes.dim() == 2 and boxes.shape[1] == 5,
            f"box_iou_rotated: boxes should have 5 columns; got {tuple(boxes.shape)}",
        )
    first, second = (b.detach().double().numpy() for b in (boxes1, boxes2))
    shape = (len(first), len(second))
    first = np.repeat(first, shape[1], 0)
    second = np.tile(second, (shape[0], 1))
    # Around the middle of the two, so that far boxes lose no digits.
    middle = (first[:, :2] + second[:, :2]) / 2

    def corners(box: Any) -> tuple[Any, Any]:
        """The corners in order, and the two directions of the edges."""
        angle = np.deg2rad(box[:, 4])
        across = np.stack([np.cos(angle), -np.sin(angle)], -1) * box[:, 2:3]
        down = np.stack([np.sin(angle), np.cos(angle)], -1) * box[:, 3:4]
        signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) / 2
        center = (box[:, :2] - middle)[:, None]
        edges = np.stack([across, down], 1)
        return center + signs @ edges, edges

    def within(points: Any, box: Any, edges: Any) -> Any:
        """Which points lie in a box, or on its edge."""
        from_center = points - (box[:, :2] - middle)[:, None]
        along = from_center @ edges.transpose(0, 2, 1)
        half = (edges**2).sum(-1)[:, None] / 2
        return (abs(along) <= half * (1 + 1e-9) + 1e-14).all(-1)

    p, p_edges = corners(first)
    q, q_edges = corners(second)
    # Edges p + s * a and q + t * b cross where s and t are in 0 ... 1.
    a, b = (np.roll(v, -1, 1) - v for v in (p, q))
    a, b, apart = a[:, :, None], b[:, None], q[:, None] - p[:, :, None]

    def cross(u: Any, v: Any) -> Any:
        return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]

    turn = cross(a, b)
    some = abs(turn) > 1e-14
    safe = np.where(some, turn, 1.0)
    s, t = cross(apart, b) / safe, cross(apart, a) / safe
    meet = some & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    points = np.concatenate([p, q, (p[:, :, None] + s[..., None] * a).reshape(-1, 16, 2)], 1)
    inside = [within(p, second, q_edges), within(q, first, p_edges)]
    valid = np.concatenate([*inside, meet.reshape(-1, 16)], 1)
    count = valid.sum(1, keepdims=True)
    center = (points * valid[..., None]).sum(1) / count.clip(1)
    points = points - center[:, None]
    # In order around their center; what is no corner repeats the first one.
    angle = np.where(valid, np.arctan2(points[..., 1], points[..., 0]), np.inf)
    order = angle.argsort(1)
    points = np.take_along_axis(points, order[..., None], 1)
    points = np.where(np.arange(24)[:, None] < count[..., None], points, points[:, :1])
    shared = abs(cross(points, np.roll(points, -1, 1)).sum(1)) / 2
    areas = first[:, 2] * first[:, 3], second[:, 2] * second[:, 3]
    real = (count[:, 0] > 2) & (areas[0] >= 1e-14) & (areas[1] >= 1e-14)
    shared = np.where(real, shared, 0.0)
    share = shared / np.where(real, areas[0] + areas[1] - shared, 1.0)
    return clew.tensor(share.reshape(shape)).float()


# ---- boxes: the mean or the largest value in each bin of a box ----


def _checked(
    name: str, input: Tensor, rois: Tensor, pooled_height: int, pooled_width: int, apart: bool
) -> tuple[Any, Any]:
    """The boxes' images and corners; raises for tensors that do not go together.

    Args:
        name: of the operation.
        input: images.
        rois: number of an image, x1, y1, x2, y2 of each box.
        pooled_height: how many bins a box has along its height.
        pooled_width: along its width.
        apart: whether each bin has channels of its own.
    """
    _need(
        rois.shape[1] == 5,
        f"{name}: rois should have 5 columns, an image and a box; got {tuple(rois.shape)}",
    )
    _need(
        input.dtype == rois.dtype,
        f"{name}: input and rois should have one dtype; got {input.dtype} and {rois.dtype}",
    )
    _need_kind(name, input, half=True)
    if input.dim() != 4:
        raise IndexError(f"{name}: input should have 4 dimensions; got {input.dim()}")
    _need(
        not apart or input.shape[1] % (pooled_height * pooled_width) == 0,
        f"{name}: the channels, {input.shape[1]}, are not a multiple of the bins, "
        f"{pooled_height} * {pooled_width}",
    )
    data = rois.detach().numpy()
    images = data[:, 0].astype(np.int64)
    if ((images < 0) | (images >= input.shape[0])).any():
        raise IndexError(f"{name}: rois name an image that is not among the {input.shape[0]}")
    return images, data[:, 1:]


def _nothing(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros that depend on a tensor: its gradient is 0, not absent."""
    return like.new_zeros(shape) + like.reshape(like.numel())[:0].sum()


def _planes(input: Tensor, images: Any, bins: tuple[int, int], apart: bool) -> tuple[Tensor, Any]:
    """The input as a table with a row for each place; where a bin's plane begins in it.

    Args:
        input: images.
        images: which of them each box is of.
        bins: how many along the height and the width.
        apart: whether each bin has channels of its own.
    """
    n, channels, h, w = input.shape
    if not apart:
        table = input.permute(0, 2, 3, 1).reshape(n * h * w, channels)
        return table, np.broadcast_to(images[:, None, None] * (h * w), (len(images), *bins))
    own = channels // (bins[0] * bins[1])
    table = input.reshape(n, own, *bins, h, w).permute(0, 2, 3, 4, 5, 1)
    table = table.reshape(n * bins[0] * bins[1] * h * w, own)
    number = np.arange(bins[0] * bins[1]).reshape(1, *bins)
    return table, (images[:, None, None] * (bins[0] * bins[1]) + number) * (h * w)


def _samples(start: Any, size: Any, bins: int, count: int, length: int) -> tuple[Any, Any, Any]:
    """The two places that each sample lies between, their weights, and whether it counts.

    A bin's samples lie at even distances. One beyond the edge by more than a place counts 0.

    Args:
        start: where each box begins.
        size: of a bin of each box.
        bins: of a box.
        count: samples of a bin.
        length: how many places there are.

    Returns:
        Places and weights (boxes, bins, count, 2); whether it counts (boxes, bins, count).
    """
    kind = start.dtype
    start, size = start[:, None, None], size[:, None, None]
    steps = np.arange(count, dtype=kind) + kind.type(0.5)
    at = start + np.arange(bins, dtype=kind)[:, None] * size + steps * size / kind.type(count)
    inside = (at >= -1) & (at <= length)
    at = np.where(inside, at, kind.type(0)).clip(0)
    low = np.minimum(np.floor(at).astype(np.int64), length - 1)
    last = low == length - 1
    share = np.where(last, kind.type(0), at - low.astype(kind))
    places = np.stack([low, np.where(last, low, low + 1)], -1)
    return places, np.stack([1 - share, share], -1), inside


def _sampled(
    input: Tensor, images: Any, corners: Any, bins: tuple[int, int], ratio: int, apart: bool
) -> tuple[Tensor, Any]:
    """The sums of the samples in each bin, (boxes, bins, bins, channels); how many they are.

    Args:
        input: images.
        images: which of them each box is of.
        corners: x1, y1, width and height of the boxes.
        bins: how many along the height and the width.
        ratio: samples of a bin along each side; below 1 as many as it has places.
        apart: whether each bin has channels of its own.
    """
    h, w = input.shape[2:]
    x1, y1, width, height = corners
    table, first = _planes(input, images, bins, apart)
    sizes = height / height.dtype.type(bins[0]), width / width.dtype.type(bins[1])
    if ratio > 0:
        counts = np.full((len(images), 2), ratio)
    else:
        with np.errstate(invalid="ignore"):
            counts = np.stack([np.ceil(s) for s in sizes], 1)
        counts = np.where(np.isfinite(counts), counts, 0).astype(np.int64)
    parts, order = [], []
    for rows, columns in np.unique(counts, axis=0).tolist():
        chosen = np.flatnonzero((counts == (rows, columns)).all(1))
        order.append(chosen)
        if rows < 1 or columns < 1:
            parts.append(_nothing(table, (len(chosen), *bins, table.shape[1])))
            continue
        y, wy, in_y = _samples(y1[chosen], sizes[0][chosen], bins[0], rows, h)
        x, wx, in_x = _samples(x1[chosen], sizes[1][chosen], bins[1], columns, w)
        # (boxes, bins, bins, rows, columns, the two rows and the two columns around a sample)
        inside = (in_y[:, :, None, :, None] & in_x[:, None, :, None, :])[..., None, None]
        at = y[:, :, None, :, None, :, None] * w + x[:, None, :, None, :, None, :]
        at = np.where(inside, at, 0) + first[chosen][..., None, None, None, None]
        weights = wy[:, :, None, :, None, :, None] * wx[:, None, :, None, :, None, :]
        weights = np.where(inside, weights, weights.dtype.type(0))
        sums = clew.nn.functional.embedding_bag(
            clew.from_numpy(at.reshape(-1)),
            table,
            clew.arange(0, at.size, 4 * rows * columns),
            mode="sum",
            per_sample_weights=clew.from_numpy(weights.reshape(-1)),
        )
        parts.append(sums.reshape(len(chosen), *bins, table.shape[1]))
    if not parts:
        return _nothing(table, (0, *bins, table.shape[1])), counts.prod(1)
    found = parts[0] if len(parts) == 1 else clew.cat(parts)[np.concatenate(order).argsort()]
    return found, counts.prod(1)


def _per_box(values: Any, like: Tensor) -> Tensor:
    return clew.tensor(values).to(like.dtype).reshape(-1, 1, 1, 1)


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
    images, box = _checked("roi_align", input, rois, pooled_height, pooled_width, False)
    kind = box.dtype
    x1, y1, x2, y2 = (box * kind.type(spatial_scale) - kind.type(0.5 if aligned else 0)).T
    width, height = x2 - x1, y2 - y1
    if not aligned:
        width, height = width.clip(1), height.clip(1)
    bins = (pooled_height, pooled_width)
    sums, count = _sampled(input, images, (x1, y1, width, height), bins, sampling_ratio, False)
    return (sums / _per_box(count.clip(1), sums)).permute(0, 3, 1, 2).contiguous()


def _own_channels(values: Tensor) -> tuple[Tensor, Tensor]:
    """Channels first, and of each bin the channel that it was taken from."""
    boxes, height, width, channels = values.shape
    mapping = clew.arange(channels * height * width, dtype=clew.int32)
    mapping = mapping.reshape(1, channels, height, width).expand(boxes, -1, -1, -1)
    return values.permute(0, 3, 1, 2).contiguous(), mapping.contiguous()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """The same, each bin from a channel of its own; a bin without samples is not a number."""
    images, box = _checked("ps_roi_align", input, rois, pooled_height, pooled_width, True)
    kind = box.dtype
    x1, y1, x2, y2 = (box * kind.type(spatial_scale) - kind.type(0.5)).T
    bins = (pooled_height, pooled_width)
    corners = (x1, y1, x2 - x1, y2 - y1)
    sums, count = _sampled(input, images, corners, bins, sampling_ratio, True)
    return _own_channels(sums / _per_box(count, sums))


def _edges(
    box: Any, scale: float, extra: int, bins: tuple[int, int], limits: tuple[int, int]
) -> tuple[Any, Any, Any, Any]:
    """First and last (excluded) row, first and last column of each bin: (boxes, bins).

    Args:
        box: x1, y1, x2, y2.
        scale: of the boxes.
        extra: 1 where a box's last place belongs to it.
        bins: how many along the height and the width.
        limits: which bins do not go beyond.
    """
    kind = box.dtype
    scaled = box * kind.type(scale)
    whole = np.trunc(scaled)  # halves are rounded away from zero
    whole = np.where(abs(scaled - whole) >= 0.5, whole + np.sign(scaled), whole).astype(np.int64)

    def along(first: Any, last: Any, count: int, limit: int) -> tuple[Any, Any]:
        size = np.maximum(last - first + extra, 1).astype(kind)[:, None] / kind.type(count)
        step = np.arange(count, dtype=kind)
        low = np.floor(step * size).astype(np.int64) + first[:, None]
        high = np.ceil((step + kind.type(1)) * size).astype(np.int64) + first[:, None]
        return low.clip(0, limit), high.clip(0, limit)

    x1, y1, x2, y2 = whole.T
    return *along(y1, y2, bins[0], limits[0]), *along(x1, x2, bins[1], limits[1])


def _bin_means(
    input: Tensor, rois: Tensor, scale: float, bins: tuple[int, int], limits: tuple[int, int]
) -> Tensor:
    """Means of the places in the bins of boxes, each from channels of its own."""
    images, box = _checked("ps_roi_pool", input, rois, *bins, True)
    table, first = _planes(input, images, bins, True)
    top, bottom, left, right = _edges(box, scale, 0, bins, limits)
    widths = np.broadcast_to((right - left).clip(0)[:, None, :], first.shape).reshape(-1)
    heights = np.broadcast_to((bottom - top).clip(0)[:, :, None], first.shape).reshape(-1)
    areas = widths * heights
    begins = areas.cumsum() - areas
    # One entry for each place of each bin: the bin, and which of the bin's places it is.
    bin_of = np.repeat(np.arange(len(areas)), areas)
    rank = np.arange(len(bin_of)) - begins[bin_of]
    row = np.broadcast_to(top[:, :, None], first.shape).reshape(-1)[bin_of]
    column = np.broadcast_to(left[:, None, :], first.shape).reshape(-1)[bin_of]
    row, column = row + rank // widths[bin_of], column + rank % widths[bin_of]
    at = first.reshape(-1)[bin_of] + row * input.shape[3] + column
    sums = clew.nn.functional.embedding_bag(
        clew.from_numpy(at), table, clew.from_numpy(begins), mode="sum"
    )
    means = sums / clew.tensor(areas.clip(1)).to(sums.dtype)[:, None]
    return means.reshape(*first.shape, table.shape[1])


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Means of the places in the bins of boxes, each from a channel of its own.

    As in torchvision, the last row and the last column belong to no bin, and the gradient is that
    of bins which they belong to.
    """
    h, w = input.shape[-2:]
    bins = (pooled_height, pooled_width)
    return _own_channels(_bin_means(input, rois, spatial_scale, bins, (h - 1, w - 1)))


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest places in the bins of boxes, and where they lie in their planes."""
    images, box = _checked("roi_pool", input, rois, pooled_height, pooled_width, False)
    channels, h, w = input.shape[1:]
    bins = (pooled_height, pooled_width)
    top, bottom, left, right = _edges(box, spatial_scale, 1, bins, (h, w))
    if input.numel() == 0:
        shape = (len(images), channels, *bins)
        return _nothing(input, shape), clew.zeros(shape, dtype=clew.int32)
    planes = input.detach().numpy()
    # What is not above the lowest number, such as nan, is never the largest.
    lowest = np.float32(np.finfo(np.float32).min).astype(planes.dtype)
    planes = np.where(planes > lowest, planes, -planes.dtype.type(np.inf))
    places = np.full((len(images), channels, *bins), -1, dtype=np.int64)
    rows, columns = np.stack([top, bottom], -1).tolist(), np.stack([left, right], -1).tolist()
    for k, image in enumerate(images.tolist()):
        for i, (y1, y2) in enumerate(rows[k]):
            for j, (x1, x2) in enumerate(columns[k]):
                part = planes[image, :, y1:y2, x1:x2]
                if part.size:
                    best = part.reshape(channels, -1).argmax(1)
                    row, column = np.divmod(best, x2 - x1)
                    places[k, :, i, j] = (y1 + row) * w + x1 + column
    first = (images[:, None] * channels + np.arange(channels)) * (h * w)
    at = first[:, :, None, None] + places.clip(0)
    empty = places < 0
    places[planes.reshape(-1)[at] == -np.inf] = -1
    filling = np.where(empty, lowest.dtype.type(0), lowest)
    taken = input.reshape(-1)[clew.from_numpy(at)]
    values = clew.where(clew.from_numpy(places >= 0), taken, clew.tensor(filling))
    return values, clew.from_numpy(places.astype(np.int32))


# ---- a convolution whose places are shifted ----


def _around(at: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """The two places that each position lies between, which exist, and their weights: (..., 2)."""
    low = at.detach().floor()
    share = at - low
    places = clew.stack([low, low + 1], -1)
    there = (places >= 0) & (places < length)
    # An infinite position lies outside; one that is not a number makes the sum none either.
    outside = ((at < -1) | (at >= length)).unsqueeze(-1)
    weights = clew.where(outside, 0, clew.stack([1 - share, share], -1))
    return clew.where(there, places, 0).long(), there, weights


def _check_deform(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, options: tuple[Any, ...]
) -> tuple[int, int]:
    """The height and width of the result; raises for tensors that do not go together."""
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups, offset_groups, use_mask = options
    tensors = {"input": input, "offset": offset, "weight": weight}
    if use_mask:
        tensors["mask"] = mask
    for name, t in tensors.items():
        _need(t.dim() == 4, f"deform_conv2d: {name} should have 4 dimensions; got {t.dim()}")
        _need(
            t.dtype == input.dtype,
            f"deform_conv2d: {name} should be {input.dtype}, as the input; got {t.dtype}",
        )
    _need_kind("deform_conv2d", input, half=True)
    n, channels, h, w = input.shape
    kh, kw = weight.shape[2:]
    pairs = {"kernel": (kh, kw), "stride": (stride_h, stride_w), "dilation": (dil_h, dil_w)}
    for name, pair in pairs.items():
        _need(min(pair) > 0, f"deform_conv2d: the {name} should be above 0; got {pair}")
    _need(min(pad_h, pad_w) >= 0, f"deform_conv2d: the padding is negative: {(pad_h, pad_w)}")
    _need(
        min(groups, offset_groups) > 0
        and weight.shape[1] * groups == channels
        and weight.shape[0] % groups == 0
        and channels % offset_groups == 0,
        f"deform_conv2d: {channels} channels, {groups} groups and {offset_groups} groups of "
        f"offsets do not go with a weight of shape {tuple(weight.shape)}",
    )
    oh = (h + 2 * pad_h - dil_h * (kh - 1) - 1) // stride_h + 1
    ow = (w + 2 * pad_w - dil_w * (kw - 1) - 1) // stride_w + 1
    _need(min(oh, ow) > 0, f"deform_conv2d: the result would be of size {(oh, ow)}")
    shape = (n, 2 * offset_groups * kh * kw, oh, ow)
    _need(
        tuple(offset.shape) == shape,
        f"deform_conv2d: expected an offset of shape {shape}; got {tuple(offset.shape)}",
    )
    shape = (n, offset_groups * kh * kw, oh, ow)
    if use_mask:
        _need(
            tuple(mask.shape) == shape,
            f"deform_conv2d: expected a mask of shape {shape}; got {tuple(mask.shape)}",
        )
    _need(mask.shape[0] == n, f"deform_conv2d: a mask of {mask.shape[0]} for {n} images")
    return oh, ow


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
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose places are shifted by offsets."""
    places = (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    options = (*places, groups, offset_groups, use_mask)
    oh, ow = _check_deform(input, weight, offset, mask, options)
    n, channels, h, w = input.shape
    out_channels, _, kh, kw = weight.shape
    taps, kind = kh * kw, offset.dtype
    shifts = offset.reshape(n * offset_groups, kh, kw, 2, oh, ow)
    row = (clew.arange(oh) * stride_h - pad_h).reshape(1, 1, 1, oh, 1)
    column = (clew.arange(ow) * stride_w - pad_w).reshape(1, 1, 1, 1, ow)
    row = row + (clew.arange(kh) * dilation_h).reshape(1, kh, 1, 1, 1)
    column = column + (clew.arange(kw) * dilation_w).reshape(1, 1, kw, 1, 1)
    y, in_y, wy = _around(shifts[:, :, :, 0] + row.to(kind), h)
    x, in_x, wx = _around(shifts[:, :, :, 1] + column.to(kind), w)
    weights = wy.unsqueeze(-1) * wx.unsqueeze(-2)
    if use_mask:
        weights = weights * mask.reshape(n * offset_groups, kh, kw, oh, ow, 1, 1)
    # Each place that a tap sees is a weighted sum of the four around it; those beyond the edge
    # are the table's last row.
    each = channels // offset_groups
    table = input.reshape(n * offset_groups, each, h * w).permute(0, 2, 1)
    table = clew.cat([table.reshape(n * offset_groups * h * w, each), input.new_zeros((1, each))])
    plane = clew.arange(n * offset_groups).reshape(n * offset_groups, 1, 1, 1, 1, 1, 1)
    at = (plane * h + y.unsqueeze(-1)) * w + x.unsqueeze(-2)
    at = clew.where(in_y.unsqueeze(-1) & in_x.unsqueeze(-2), at, len(table) - 1)
    samples = clew.nn.functional.embedding_bag(
        at.reshape(at.numel()),
        table,
        clew.arange(0, at.numel(), 4),
        mode="sum",
        per_sample_weights=weights.reshape(at.numel()),
    )
    samples = samples.reshape(n, offset_groups, taps, oh * ow, each).permute(0, 1, 4, 2, 3)
    columns = samples.reshape(n, groups, channels // groups * taps, oh * ow)
    factors = weight.reshape(groups, out_channels // groups, channels // groups * taps)
    out = (factors @ columns).reshape(n, out_channels, oh, ow)
    return out + bias.reshape(1, out_channels, 1, 1)


# ---- gradients, which torchvision asks for by name ----


def _pulled(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of a function's inputs."""
    with clew.enable_grad():
        fresh = [t.detach().requires_grad_() for t in inputs]
        found = clew.autograd.grad(function(*fresh), fresh, grad, allow_unused=True)
    return tuple(clew.zeros_like(t) if g is None else g for g, t in zip(found, fresh))


def _roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    options = (spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
    zeros = grad.new_zeros((batch_size, channels, height, width))
    return _pulled(lambda x: roi_align(x, rois, *options), [zeros], grad)[0]


def _ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    options = (spatial_scale, pooled_height, pooled_width, sampling_ratio)
    zeros = grad.new_zeros((batch_size, channels, height, width))
    return _pulled(lambda x: ps_roi_align(x, rois, *options)[0], [zeros], grad)[0]


def _ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    bins, limits = (pooled_height, pooled_width), (height, width)
    zeros = grad.new_zeros((batch_size, channels, height, width))

    def means(x: Tensor) -> Tensor:
        return _bin_means(x, rois, spatial_scale, bins, limits).permute(0, 3, 1, 2)

    return _pulled(means, [zeros], grad)[0]


def _roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    images = rois.detach()[:, 0].long().reshape(-1, 1, 1, 1)
    plane = images * channels + clew.arange(channels).reshape(1, -1, 1, 1)
    at = plane * (height * width) + argmax
    found = argmax >= 0
    total = grad.new_zeros(batch_size * channels * height * width)
    total = total.index_put((at[found],), grad[found], accumulate=True)
    return total.reshape(batch_size, channels, height, width)


def _deform_conv2d_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    *options: Any,
) -> tuple[Tensor, ...]:
    inputs = [input, weight, offset, mask, bias]
    return _pulled(lambda *given: deform_conv2d(*given, *options), inputs, grad)


def _ps_roi_pool_kept(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1], output[1])
    ctx.options, ctx.shape = inputs[2:], inputs[0].shape


def _ps_roi_pool_gradient(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    found = _ps_roi_pool_backward(grad, *ctx.saved_tensors, *ctx.options, *ctx.shape)
    return (found, *[None] * 4)


# ---- images, through Pillow ----

_UNCHANGED, _GRAY, _GRAY_ALPHA, _RGB, _RGB_ALPHA = range(5)


def _open(data: Tensor, *kinds: str) -> Any:
    """The image of a file's bytes, which must be of one of some kinds."""
    from PIL import Image

    _need(data.dtype is clew.uint8, f"decode: expected bytes, as uint8; got {data.dtype}")
    _need(
        data.dim() == 1 and data.numel() > 0,
        f"decode: expected bytes, in one dimension; got {tuple(data.shape)}",
    )
    try:
        image = Image.open(io.BytesIO(data.contiguous().numpy().tobytes()))
    except OSError as error:
        raise RuntimeError(f"decode: not a whole image, {' or '.join(kinds)}: {error}") from error
    _need(image.format in kinds, f"decode: expected {' or '.join(kinds)}; got {image.format}")
    return image


def _upright(image: Any, turn: bool) -> Any:
    """The image, turned as its camera says if that is wanted; a broken file raises."""
    from PIL import ImageOps

    try:
        image.load()
    except OSError as error:
        raise RuntimeError(f"decode: {image.format}: {error}") from error
    return ImageOps.exif_transpose(image) if turn else image


def _channels_first(image: Any) -> Any:
    array = np.array(image)
    return array.transpose(2, 0, 1) if array.ndim == 3 else array[None]


def _result(array: Any) -> Tensor:
    return clew.from_numpy(np.ascontiguousarray(array))


def _gray_of(color: Any) -> Any:
    """Red, green and blue as libpng weighs them: in parts of 32768, rounded down."""
    parts = np.array([9794, 19234, 3740], dtype=np.int64).reshape(3, 1, 1)
    return ((color.astype(np.int64) * parts).sum(0, keepdims=True) >> 15).astype(color.dtype)


def _decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    image = _open(data, "PNG")
    depth, kind = (int(data[i]) for i in (24, 25))  # of the header, which comes first
    if depth == 16 and kind != 0:
        raise NotImplementedError("decode_png: colors or opacity of 16 bits are not supported")
    image = _upright(image, apply_exif_orientation)
    if image.mode == "P" and mode != _UNCHANGED:
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    array = _channels_first(image)
    if array.dtype == np.int32:  # an older Pillow's form of 16 bits
        array = array.astype(np.uint16)
    if mode == _UNCHANGED:
        return _result(array)
    color, opacity = array, np.full_like(array[:1], np.iinfo(array.dtype).max)
    if len(array) % 2 == 0:
        color, opacity = array[:-1], array[-1:]
    if mode in (_GRAY, _GRAY_ALPHA) and len(color) == 3:
        color = _gray_of(color)
    elif mode in (_RGB, _RGB_ALPHA) and len(color) == 1:
        color = color.repeat(3, 0)
    return _result(np.concatenate([color, opacity]) if mode in (_GRAY_ALPHA, _RGB_ALPHA) else color)


def _decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    image = _open(data, "JPEG", "MPO")
    _need(
        mode in (_UNCHANGED, _GRAY, _RGB),
        "decode_jpeg: the mode should be UNCHANGED, GRAY or RGB: a JPEG has no opacity",
    )
    if mode == _GRAY and image.mode == "RGB":
        image.draft("L", image.size)  # the brightness, which the file keeps apart
    image = _upright(image, apply_exif_orientation)
    if mode != _UNCHANGED:
        image = image.convert("L" if mode == _GRAY else "RGB")
    array = _channels_first(image)
    return _result(255 - array if image.mode == "CMYK" else array)  # Pillow turns inks over


def _decode_webp(encoded_data: Tensor, mode: int) -> Tensor:
    image = _upright(_open(encoded_data, "WEBP"), False)
    if mode in (_GRAY, _GRAY_ALPHA):
        warnings.warn(
            "decode_webp: there is no mode without colors; the image has them", stacklevel=2
        )
    elif mode != _UNCHANGED:
        image = image.convert("RGB" if mode == _RGB else "RGBA")
    return _result(_channels_first(image))


def _decode_gif(data: Tensor) -> Tensor:
    from PIL import ImageSequence

    image = _open(data, "GIF")
    try:
        frames = [np.array(f.convert("RGB")) for f in ImageSequence.Iterator(image)]
    except OSError as error:
        raise RuntimeError(f"decode_gif: {error}") from error
    found = np.stack(frames).transpose(0, 3, 1, 2)
    return _result(found[0] if len(found) == 1 else found)


def _decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    kind = _open(data, "PNG", "JPEG", "MPO", "WEBP", "GIF").format
    if kind == "GIF":
        return _decode_gif(data)
    if kind == "WEBP":
        return _decode_webp(data, mode)
    decode = _decode_png if kind == "PNG" else _decode_jpeg
    return decode(data, mode, apply_exif_orientation)


def _encode(data: Tensor, kind: str, **options: Any) -> Tensor:
    from PIL import Image

    name = f"encode_{kind.lower()}"
    _need(data.dtype is clew.uint8, f"{name}: expected an image of uint8; got {data.dtype}")
    _need(
        data.dim() == 3 and data.shape[0] in (1, 3),
        f"{name}: expected an image of 1 or 3 channels; got {tuple(data.shape)}",
    )
    array = np.ascontiguousarray(data.numpy().transpose(1, 2, 0))
    image = Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)
    out = io.BytesIO()
    image.save(out, kind, **options)
    return clew.frombuffer(bytearray(out.getvalue()), dtype=clew.uint8)


def _encode_jpeg(data: Tensor, quality: int) -> Tensor:
    _need(1 <= quality <= 100, f"encode_jpeg: the quality should be 1 to 100; got {quality}")
    return _encode(data, "JPEG", quality=quality, subsampling=2)


def _encode_png(data: Tensor, level: int) -> Tensor:
    _need(0 <= level <= 9, f"encode_png: the level should be 0 to 9; got {level}")
    return _encode(data, "PNG", compress_level=level)


def _read_file(filename: str) -> Tensor:
    try:
        with open(filename, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RuntimeError(f"read_file: {error}") from error
    return clew.frombuffer(bytearray(data), dtype=clew.uint8) if data else clew.empty(0).byte()


def _write_file(filename: str, data: Tensor) -> None:
    _need(data.dtype is clew.uint8, f"write_file: expected bytes, as uint8; got {data.dtype}")
    _need(data.dim() == 1, f"write_file: expected one dimension; got {tuple(data.shape)}")
    try:
        with open(filename, "wb") as file:
            file.write(data.contiguous().numpy().tobytes())
    except OSError as error:
        raise RuntimeError(f"write_file: {error}") from error


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
    " -> Tensor": _roi_align_backward,
    f"_roi_pool_backward(Tensor grad, {_BOXES.replace('float', 'Tensor argmax, float')}, {_SIZES})"
    " -> Tensor": _roi_pool_backward,
    f"_ps_roi_align_backward(Tensor grad, {_MAPPED}, int sampling_ratio, {_SIZES})"
    " -> Tensor": _ps_roi_align_backward,
    f"_ps_roi_pool_backward(Tensor grad, {_MAPPED}, {_SIZES}) -> Tensor": _ps_roi_pool_backward,
    f"_deform_conv2d_backward(Tensor grad, {_DEFORM}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)": _deform_conv2d_backward,
    "_cuda_version() -> int": lambda: -1,
}
_MODE = "int mode, bool apply_exif_orientation=False"
_IMAGE: dict[str, Callable[..., Any]] = {
    f"decode_image(Tensor data, {_MODE}) -> Tensor": _decode_image,
    f"decode_jpeg(Tensor data, {_MODE}) -> Tensor": _decode_jpeg,
    f"decode_png(Tensor data, {_MODE}) -> Tensor": _decode_png,
    "decode_webp(Tensor encoded_data, int mode) -> Tensor": _decode_webp,
    "decode_gif(Tensor _0) -> Tensor": _decode_gif,
    "encode_jpeg(Tensor _0, int _1) -> Tensor": _encode_jpeg,
    "encode_png(Tensor _0, int _1) -> Tensor": _encode_png,
    "read_file(str _0) -> Tensor": _read_file,
    "write_file(str _0, Tensor _1) -> ()": _write_file,
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
            _need(
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
        schema = _Schema(text)
        full = f"{space}::{schema.name}"
        if full not in _registry:
            operation = _define(full, schema)
            operation._kernel = _in_full(schema, kernel)
            if kernel in (nms, roi_align):
                operation._in_autocast = _from_halves(operation)
            if kernel is ps_roi_pool:  # its gradient is not that of the operations inside
                register_autograd(full, _ps_roi_pool_gradient, setup_context=_ps_roi_pool_kept)
    if space == "torchvision":
        for short in ("qnms", "qroi_align"):
            _registry.setdefault(f"torchvision::{short}", _Operation(f"torchvision::{short}", None))
    return True
