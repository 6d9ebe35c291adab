"""torchvision's operations on boxes: which to keep, how much two share, what their bins hold."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._torch.torchvision_ops.checks import need, need_kind


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of boxes, best first, that no better kept box overlaps by more than a share."""
    need(dets.dim() == 2, f"nms: boxes should be a 2d tensor; got {dets.dim()}D")
    need(dets.shape[1] == 4, f"nms: boxes should have 4 columns; got {dets.shape[1]}")
    need(scores.dim() == 1, f"nms: scores should be a 1d tensor; got {scores.dim()}D")
    need(len(dets) == len(scores), f"nms: got {len(dets)} boxes and the scores of {len(scores)}")
    need_kind("nms", dets, half=False)
    need(
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
        need(
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
    need(
        rois.shape[1] == 5,
        f"{name}: rois should have 5 columns, an image and a box; got {tuple(rois.shape)}",
    )
    need(
        input.dtype == rois.dtype,
        f"{name}: input and rois should have one dtype; got {input.dtype} and {rois.dtype}",
    )
    need_kind(name, input, half=True)
    if input.dim() != 4:
        raise IndexError(f"{name}: input should have 4 dimensions; got {input.dim()}")
    need(
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


def bin_means(
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
    return _own_channels(bin_means(input, rois, spatial_scale, bins, (h - 1, w - 1)))


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
