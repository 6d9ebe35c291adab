"""torchvision's compiled operations on clew, beside the same sums written as loops."""

import math

import numpy as np
import pytest

import clew
from clew._torch import torchvision_ops

torchvision_ops.register("_C.so")
ops = clew.ops.torchvision


def tensor(values, grad=False):
    return clew.tensor(np.asarray(values, dtype=np.float64), requires_grad=grad)


def bilinear(plane, y, x):
    """A plane's value between places; 0 more than one place beyond its edge."""
    h, w = plane.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
    y, x = y - top, x - left
    above = plane[top, left] * (1 - x) + plane[top, right] * x
    return above * (1 - y) + (plane[bottom, left] * (1 - x) + plane[bottom, right] * x) * y


def mean_of_samples(plane, y, x, height, width, rows, columns):
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            total += bilinear(plane, y + (i + 0.5) * height / rows, x + (j + 0.5) * width / columns)
    return total


def aligned_loop(x, rois, scale, ph, pw, ratio, aligned, apart=False):
    channels = x.shape[1] // (ph * pw) if apart else x.shape[1]
    out = np.zeros((len(rois), channels, ph, pw))
    for k, (image, *box) in enumerate(rois):
        x1, y1, x2, y2 = np.array(box) * scale - (0.5 if aligned else 0)
        height, width = y2 - y1, x2 - x1
        if not aligned:
            height, width = max(height, 1), max(width, 1)
        rows = ratio if ratio > 0 else math.ceil(height / ph)
        columns = ratio if ratio > 0 else math.ceil(width / pw)
        height, width = height / ph, width / pw
        for c, i, j in np.ndindex(channels, ph, pw):
            plane = x[int(image), (c * ph + i) * pw + j if apart else c]
            at = (y1 + i * height, x1 + j * width)
            count = rows * columns if apart else max(rows * columns, 1)
            total = mean_of_samples(plane, *at, height, width, rows, columns)
            out[k, c, i, j] = total / count if count else math.nan
    return out


BOXES = [
    [0, 0.3, 0.2, 5.4, 4.1],
    [1, -3, -2, 2.5, 9],  # beyond the edges
    [1, 30, 30, 40, 40],  # outside
    [0, 2, 2, 2, 2],  # without a size
    [1, 4, 3, 1, 1.5],  # a negative size
    [0, 0, 0, 40, 21],  # many places in a bin
]


@pytest.mark.parametrize("ratio", [-1, 1, 3])
@pytest.mark.parametrize("aligned", [True, False])
def test_roi_align(ratio, aligned):
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 7))
    got = ops.roi_align(tensor(x), tensor(BOXES), 0.5, 2, 3, ratio, aligned)
    want = aligned_loop(x, BOXES, 0.5, 2, 3, ratio, aligned)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


@pytest.mark.parametrize("ratio", [-1, 1, 3])
def test_ps_roi_align(ratio):
    x = np.random.default_rng(1).standard_normal((2, 12, 6, 7))
    got, channels = ops.ps_roi_align(tensor(x), tensor(BOXES), 0.5, 2, 3, ratio)
    want = aligned_loop(x, BOXES, 0.5, 2, 3, ratio, True, apart=True)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    assert channels.dtype is clew.int32 and channels.shape == got.shape
    assert channels[0].flatten().tolist() == list(range(12))


def bins_of(first, last, extra, bins, limit):
    size = max(last - first + extra, 1) / bins
    for i in range(bins):
        low, high = math.floor(i * size) + first, math.ceil((i + 1) * size) + first
        yield min(max(low, 0), limit), min(max(high, 0), limit)


def away(value):
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


HALVES = [*BOXES, [0, -0.5, 0.5, 4.5, 5.5], [1, -5, -7, 5, 3]]


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pool(scale):
    x = np.random.default_rng(2).standard_normal((2, 3, 6, 7))
    got, places = ops.roi_pool(tensor(x), tensor(HALVES), scale, 2, 3)
    for k, (image, *box) in enumerate(HALVES):
        x1, y1, x2, y2 = (away(v * scale) for v in box)
        for i, (top, bottom) in enumerate(bins_of(y1, y2, 1, 2, 6)):
            for j, (left, right) in enumerate(bins_of(x1, x2, 1, 3, 7)):
                part = x[image, :, top:bottom, left:right]
                if part.size == 0:
                    assert got[k, :, i, j].tolist() == [0] * 3
                    assert places[k, :, i, j].tolist() == [-1] * 3
                    continue
                np.testing.assert_array_equal(got[k, :, i, j].numpy(), part.max((1, 2)))
                at = places[k, :, i, j].numpy()
                np.testing.assert_array_equal(
                    x[image].reshape(3, -1)[range(3), at], got[k, :, i, j]
                )


def test_roi_pool_of_ties_and_of_what_is_not_a_number():
    x = tensor([[[[1, 1], [math.nan, 1]], [[math.nan, -math.inf], [math.nan, math.nan]]]], True)
    values, places = ops.roi_pool(x, tensor([[0, 0, 0, 1, 1]]), 1.0, 1, 1)
    lowest = -3.4028234663852886e38
    assert values.flatten().tolist() == [1, lowest] and places.flatten().tolist() == [0, -1]
    values.sum().backward()
    assert x.grad.flatten().tolist() == [1] + [0] * 7


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_ps_roi_pool_and_its_gradient(scale):
    x = np.random.default_rng(3).standard_normal((2, 12, 6, 7))
    given = tensor(x, True)
    got, _ = ops.ps_roi_pool(given, tensor(HALVES), scale, 2, 3)
    g = np.random.default_rng(4).standard_normal(got.shape)
    want, grad = np.zeros(got.shape), np.zeros(x.shape)
    for k, (image, *box) in enumerate(HALVES):
        x1, y1, x2, y2 = (away(v * scale) for v in box)
        for edge in (1, 0):  # the value leaves out the last row and column, the gradient does not
            for i, (top, bottom) in enumerate(bins_of(y1, y2, 0, 2, 6 - edge)):
                for j, (left, right) in enumerate(bins_of(x1, x2, 0, 3, 7 - edge)):
                    for c in range(2):
                        at = (image, (c * 2 + i) * 3 + j, slice(top, bottom), slice(left, right))
                        if x[at].size and edge:
                            want[k, c, i, j] = x[at].mean()
                        elif x[at].size:
                            grad[at] += g[k, c, i, j] / x[at].size
    np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-12)
    got.backward(tensor(g))
    np.testing.assert_allclose(given.grad.numpy(), grad, atol=1e-12)


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "roi_pool"])
def test_gradients_of_boxes(name):
    """A linear function's gradient, times a direction, is the function of the direction."""
    r = np.random.default_rng(5)
    x, direction = tensor(r.standard_normal((2, 6, 6, 7)), True), r.standard_normal((2, 6, 6, 7))
    boxes = tensor([b for b in BOXES if b[3] > b[1]])
    options = {"roi_align": (0.5, 2, 3, -1, True), "ps_roi_align": (0.5, 2, 3, 2)}
    options = options.get(name, (0.5, 2, 3))
    out = getattr(ops, name)(x, boxes, *options)
    out, kept = out if isinstance(out, tuple) else (out, None)
    g = tensor(r.standard_normal(out.shape))
    (grad,) = clew.autograd.grad(out, x, g)
    if name == "roi_pool":
        images = boxes[:, 0].long().reshape(-1, 1, 1, 1)
        planes = direction.reshape(2, 6, 42)
        along = planes[images.numpy(), np.arange(6).reshape(1, 6, 1, 1), kept.numpy()]
        along = np.where(kept.numpy() >= 0, along, 0)
    else:
        along = getattr(ops, name)(tensor(direction), boxes, *options)
        along = (along[0] if kept is not None else along).numpy()
    assert (grad.numpy() * direction).sum() == pytest.approx((g.numpy() * along).sum())
    # The same by the name that torchvision asks for.
    rest = {"roi_align": (0.5, 2, 3, 2, 6, 6, 7, -1, True), "ps_roi_align": (0.5, 2, 3, 2)}
    rest = (*rest.get(name, (0.5, 2, 3)), *(() if name == "roi_align" else (2, 6, 6, 7)))
    asked = getattr(ops, f"_{name}_backward")
    found = asked(g, boxes, *(() if kept is None else (kept,)), *rest)
    np.testing.assert_allclose(found.numpy(), grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool"])
def test_no_boxes_and_no_channels(name):
    options = {"roi_align": (1.0, 2, 3, -1, True), "ps_roi_align": (1.0, 2, 3, -1)}
    options = options.get(name, (1.0, 2, 3))
    for shape, boxes in [((2, 6, 4, 4), 0), ((0, 6, 4, 4), 0), ((2, 0, 4, 4), 1)]:
        x = clew.ones(shape, requires_grad=True)
        out = getattr(ops, name)(x, clew.zeros(boxes, 5), *options)
        out = out[0] if isinstance(out, tuple) else out
        assert out.shape == (boxes, shape[1] // 6 if "ps" in name else shape[1], 2, 3)
        out.sum().backward()
        assert x.grad.tolist() == clew.zeros(shape).tolist()


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool"])
def test_what_boxes_refuse(name):
    options = {"roi_align": (1.0, 2, 3, -1, True), "ps_roi_align": (1.0, 2, 3, -1)}
    options = options.get(name, (1.0, 2, 3))
    f = getattr(ops, name)
    x, boxes = clew.ones(1, 6, 4, 4), clew.ones(1, 5) * 0
    with pytest.raises(RuntimeError, match="5 columns"):
        f(x, boxes[:, :4], *options)
    with pytest.raises(RuntimeError, match="one dtype"):
        f(x, boxes.double(), *options)
    with pytest.raises(NotImplementedError, match="int64"):
        f(x.long(), boxes.long(), *options)
    with pytest.raises(NotImplementedError, match="bfloat16"):
        f(x.bfloat16(), boxes.bfloat16(), *options)
    with pytest.raises(IndexError, match="4 dimensions"):
        f(x[0], boxes, *options)
    with pytest.raises(IndexError, match="among the 1"):
        f(x, boxes + 1, *options)
    if "ps" in name:
        with pytest.raises(RuntimeError, match="not a multiple"):
            f(x[:, :5], boxes, *options)


def deformed_loop(x, weight, offset, mask, bias, stride, pad, dilation, groups, offset_groups):
    n, channels, h, w = x.shape
    out_channels, each, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    out = np.zeros((n, out_channels, oh, ow)) + bias.reshape(1, -1, 1, 1)

    def place(plane, y, x):
        total, top, left = 0.0, math.floor(y), math.floor(x)
        for i, j in np.ndindex(2, 2):
            if 0 <= top + i < h and 0 <= left + j < w:
                share = (1 - abs(y - top - i)) * (1 - abs(x - left - j))
                total += share * plane[top + i, left + j]
        return total

    for b, o, c, i, j, p, q in np.ndindex(n, out_channels, each, kh, kw, oh, ow):
        channel = o // (out_channels // groups) * each + c
        tap = (channel // (channels // offset_groups) * kh + i) * kw + j
        dy, dx = offset[b, 2 * tap : 2 * tap + 2, p, q]
        y = p * stride[0] - pad[0] + i * dilation[0] + dy
        x_ = q * stride[1] - pad[1] + j * dilation[1] + dx
        value = place(x[b, channel], y, x_) * (1 if mask is None else mask[b, tap, p, q])
        out[b, o, p, q] += weight[o, c, i, j] * value
    return out


DEFORMED = [
    # images, channels, out, height, width, kernel, stride, padding, dilation, groups, of offsets
    (2, 4, 2, 5, 6, (3, 2), (1, 1), (1, 0), (1, 1), 2, 1, True),
    (1, 4, 4, 7, 6, (2, 3), (2, 1), (0, 2), (2, 1), 2, 4, True),
    (3, 2, 3, 4, 4, (3, 3), (1, 2), (2, 1), (1, 2), 1, 2, False),
    (1, 2, 2, 1, 5, (1, 3), (1, 1), (0, 1), (1, 1), 1, 1, True),  # one row
    (1, 1, 2, 1, 1, (1, 1), (1, 1), (1, 1), (1, 1), 1, 1, False),
    (0, 4, 2, 5, 6, (3, 2), (1, 1), (1, 0), (1, 1), 2, 1, True),  # no images
]


@pytest.mark.parametrize("case", DEFORMED)
@pytest.mark.parametrize("whole", [True, False])
def test_deform_conv2d(case, whole):
    n, channels, out, h, w, k, stride, pad, dilation, groups, offset_groups, use_mask = case
    r = np.random.default_rng(6)
    oh, ow = (
        (size + 2 * p - d * (taps - 1) - 1) // s + 1
        for size, p, d, taps, s in zip((h, w), pad, dilation, k, stride)
    )
    taps = offset_groups * k[0] * k[1]
    offset = r.standard_normal((n, 2 * taps, oh, ow)) * 2
    offset = np.round(offset) if whole else offset
    mask = r.standard_normal((n, taps, oh, ow)) if use_mask else None
    given = [
        r.standard_normal((n, channels, h, w)),
        r.standard_normal((out, channels // groups, *k)),
        offset,
        np.zeros((n, 1)) if mask is None else mask,
        r.standard_normal(out),
    ]
    tensors = [tensor(v, True) for v in given]
    options = (*stride, *pad, *dilation, groups, offset_groups, use_mask)
    got = ops.deform_conv2d(*tensors, *options)

    def loop(x, weight, offset, mask, bias):
        mask = mask if use_mask else None
        args = (stride, pad, dilation, groups, offset_groups)
        return deformed_loop(x, weight, offset, mask, bias, *args)

    np.testing.assert_allclose(got.detach().numpy(), loop(*given), atol=1e-12)
    g = r.standard_normal(got.shape)
    grads = clew.autograd.grad(got, tensors, tensor(g), allow_unused=True)
    for at, grad in enumerate(grads):
        if at == 3 and not use_mask:
            assert grad is None
            continue
        direction = r.standard_normal(given[at].shape)
        # At whole places the gradient of the offsets is the one towards larger places.
        low, step = (0.0, 1e-6) if whole and at == 2 else (-1e-6, 1e-6)
        direction = abs(direction) if whole and at == 2 else direction
        ends = [
            loop(*(v + direction * s if i == at else v for i, v in enumerate(given)))
            for s in (low, step)
        ]
        slope = ((ends[1] - ends[0]) * g).sum() / (step - low)
        assert (grad.numpy() * direction).sum() == pytest.approx(slope, rel=1e-4, abs=1e-4)
    asked = ops._deform_conv2d_backward(tensor(g), *tensors, *options)
    for grad, named in zip(grads, asked):
        want = np.zeros(named.shape) if grad is None else grad.numpy()
        np.testing.assert_allclose(named.numpy(), want, atol=1e-12)


def deform(x=(1, 2, 5, 5), w=(3, 2, 3, 3), offset=(1, 18, 3, 3), mask=(1, 9, 3, 3), b=(3,), **k):
    rest = {"stride": (1, 1), "pad": (0, 0), "dilation": (1, 1), "groups": (1, 1), **k}
    tensors = (clew.ones(shape) for shape in (x, w, offset, mask, b))
    return ops.deform_conv2d(*tensors, *(v for pair in rest.values() for v in pair), True)


def test_what_deform_conv2d_refuses():
    assert deform().shape == (1, 3, 3, 3)
    for given, words in [
        ({"x": (2, 5, 5)}, "input should have 4"),
        ({"w": (3, 2, 3)}, "weight should have 4"),
        ({"w": (3, 1, 3, 3)}, "do not go with a weight"),
        ({"w": (3, 2, 7, 7)}, "size"),
        ({"offset": (1, 17, 3, 3)}, "offset of shape"),
        ({"offset": (1, 18, 2, 3)}, "offset of shape"),
        ({"offset": (2, 18, 3, 3)}, "offset of shape"),
        ({"mask": (1, 8, 3, 3)}, "mask of shape"),
        ({"mask": (2, 9, 3, 3)}, "mask of shape"),
        ({"stride": (0, 1)}, "stride should be above 0"),
        ({"dilation": (1, 0)}, "dilation should be above 0"),
        ({"pad": (-1, 0)}, "padding is negative"),
        ({"groups": (0, 1)}, "groups"),
        ({"groups": (2, 1)}, "groups"),
        ({"groups": (1, 2)}, "offset of shape"),
        ({"b": (2,)}, "shape"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            deform(**given)


def test_an_infinite_offset_lies_outside():
    offset = np.zeros((1, 2, 1, 2))
    offset[0, 0, 0] = [math.inf, math.nan]
    ones = [tensor(np.ones(s)) for s in ((1, 1, 1, 2), (1, 1, 1, 1), (1, 0), (1,))]
    options = (1, 1, 0, 0, 1, 1, 1, 1, False)
    x, weight, mask, bias = ones
    got = ops.deform_conv2d(x, weight, tensor(offset), mask, bias, *options).flatten().tolist()
    assert got[0] == 1 and math.isnan(got[1])


# ---- nms ----


def kept_loop(boxes, scores, threshold):
    order = sorted(range(len(boxes)), key=lambda i: -scores[i])  # stable: equal scores in order
    kept = []
    for i in order:
        for j in kept:
            width = min(boxes[i][2], boxes[j][2]) - max(boxes[i][0], boxes[j][0])
            height = min(boxes[i][3], boxes[j][3]) - max(boxes[i][1], boxes[j][1])
            shared = max(width, 0) * max(height, 0)
            sizes = [(boxes[b][2] - boxes[b][0]) * (boxes[b][3] - boxes[b][1]) for b in (i, j)]
            if shared / (sum(sizes) - shared) > threshold:
                break
        else:
            kept.append(i)
    return kept


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 1.0])
def test_nms(threshold):
    r = np.random.default_rng(7)
    low = r.integers(0, 20, (60, 2)).astype(float)
    boxes = np.concatenate([low, low + r.integers(1, 20, (60, 2))], 1)
    scores = r.integers(0, 8, 60) / 8  # many are equal
    got = ops.nms(tensor(boxes), tensor(scores), threshold)
    assert got.dtype is clew.int64
    assert got.tolist() == kept_loop(boxes.tolist(), scores.tolist(), threshold)


def test_nms_compares_shares_in_the_precision_of_the_boxes():
    boxes = clew.tensor([[0, 0, 10, 10], [0, 0, 10, 9], [0, 0, 10, 3]])
    scores = clew.tensor([3, 2, 1])
    # 0.9 and 0.3 as float32 are above and below those numbers; as float64 they are equal.
    share = np.float32(90) / np.float32(100)
    assert float(share) < 0.9 and float(np.float32(30) / np.float32(100)) > 0.3
    for threshold, single, double in [(0.9, [0, 1, 2], [0, 1, 2]), (0.3, [0], [0, 2])]:
        assert ops.nms(boxes.float(), scores.float(), threshold).tolist() == single
        assert ops.nms(boxes.double(), scores.double(), threshold).tolist() == double


def test_nms_of_none_of_no_size_and_of_what_is_not_a_number():
    assert ops.nms(clew.zeros(0, 4), clew.zeros(0), 0.5).tolist() == []
    same = clew.ones(3, 4)
    assert ops.nms(same, clew.tensor([1.0, 3.0, 2.0]), 0.5).tolist() == [1, 2, 0]
    boxes = clew.tensor([[0, 0, 4, 4], [math.nan, 0, 4, 4], [0, 0, 4, 4], [0, 0, math.inf, 4]])
    scores = clew.tensor([1.0, 2.0, 0.5, math.nan])
    assert ops.nms(boxes, scores, clew.tensor(0.5)).tolist() == [3, 1, 0]


def test_what_nms_refuses():
    boxes, scores = clew.zeros(2, 4), clew.zeros(2)
    for given, words in [
        ((boxes[0], scores), "2d tensor"),
        ((boxes[:, :3], scores), "4 columns"),
        ((boxes, boxes), "1d tensor"),
        ((boxes, clew.zeros(3)), "2 boxes and the scores of 3"),
        ((boxes, scores.double()), "one dtype"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            ops.nms(*given, 0.5)
    for dtype in (clew.int64, clew.float16):
        with pytest.raises(NotImplementedError, match="nms: not implemented"):
            ops.nms(boxes.to(dtype), scores.to(dtype), 0.5)


# ---- all ----


def test_they_stay_in_full_precision_under_autocast():
    r = np.random.default_rng(8)
    tensors = [(1, 2, 5, 5), (3, 2, 3, 3), (1, 18, 3, 3), (1, 9, 3, 3), (3,)]
    tensors = [tensor(r.standard_normal(s)).float() for s in tensors]
    options = (1, 1, 0, 0, 1, 1, 1, 1, True)
    want = ops.deform_conv2d(*tensors, *options)
    with clew.autocast("cpu", dtype=clew.bfloat16):
        got = ops.deform_conv2d(*tensors, *options)
    assert got.dtype is clew.float32 and got.tolist() == want.tolist()


def test_they_have_the_schemas_of_torchvision():
    assert str(ops.nms.default._schema) == (
        "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    )
    assert [a.name for a in ops._ps_roi_align_backward.default._schema.arguments] == (
        "grad rois channel_mapping spatial_scale pooled_height pooled_width sampling_ratio "
        "batch_size channels height width".split()
    )
    assert ops.nms(dets=clew.ones(1, 4), scores=clew.ones(1), iou_threshold=0.5).tolist() == [0]


# ---- turned boxes ----


def overlap(first, second):
    kind = np.float64
    return ops.box_iou_rotated(
        clew.tensor(np.array(first, kind)), clew.tensor(np.array(second, kind))
    )


def test_shares_of_turned_boxes():
    square = [3, 4, 2, 2, 0]
    octagon = 8 * (math.sqrt(2) - 1)  # of two squares of side 2, one turned by an eighth
    got = overlap(
        [square],
        [
            square,
            [3, 4, 2, 2, 90],
            [3, 4, 2, 2, 45],
            [3, 4, 1, 1, 30],  # inside
            [4, 4, 2, 2, 0],  # half of it
            [5, 4, 2, 2, 0],  # beside it: they meet along an edge
            [4.5, 5.5, 2, 2, 180],  # a quarter of a quarter
            [30, 4, 2, 2, 10],
            [3, 4, 0, 2, 10],  # without a size
            [3, 4, 6, 1, -90],  # a cross
        ],
    )
    want = [1, 1, octagon / (8 - octagon), 0.25, 1 / 3, 0, 0.25 / 7.75, 0, 0, 2 / 8]
    assert got.dtype is clew.float32 and got.shape == (1, 10)
    np.testing.assert_allclose(got[0].numpy(), want, atol=1e-6)


def test_turned_boxes_of_a_slope():
    """Angles turn against the clock, on a page whose y points down."""
    got = overlap([[0, 0, 10, 1, 45]], [[3, -3, 1, 1, 45], [3, 3, 1, 1, 45]])
    np.testing.assert_allclose(got[0].numpy(), [0.1, 0], atol=1e-6)


def test_turned_boxes_beside_a_count_of_points():
    r = np.random.default_rng(9)
    first, second = (
        np.concatenate(
            [r.uniform(3, 7, (n, 2)), r.uniform(1, 6, (n, 2)), r.uniform(-9, 9, (n, 1)) * 20], 1
        )
        for n in (5, 7)
    )
    y, x = np.mgrid[-2:12:700j, -2:12:700j]

    def inside(box):
        a = math.radians(box[4])
        u = (x - box[0]) * math.cos(a) - (y - box[1]) * math.sin(a)
        v = (x - box[0]) * math.sin(a) + (y - box[1]) * math.cos(a)
        return (abs(u) <= box[2] / 2) & (abs(v) <= box[3] / 2)

    want = [
        [(inside(a) & inside(b)).sum() / (inside(a) | inside(b)).sum() for b in second]
        for a in first
    ]
    np.testing.assert_allclose(overlap(first, second).numpy(), want, atol=0.01)


def test_turned_boxes_of_none_and_what_is_refused():
    assert overlap(np.zeros((0, 5)), np.ones((3, 5))).shape == (0, 3)
    assert overlap(np.ones((2, 5)), np.zeros((0, 5))).shape == (2, 0)
    with pytest.raises(RuntimeError, match="5 columns"):
        overlap(np.ones((2, 4)), np.ones((2, 5)))


def test_nms_and_roi_align_take_halves_under_autocast():
    """Versions of torchvision before 0.28 leave it to their compiled part."""
    boxes = clew.tensor([[0, 0, 0, 4, 4], [0, 1, 1, 4, 4]]).bfloat16()
    x = clew.arange(36).reshape(1, 1, 6, 6).bfloat16().requires_grad_()
    with clew.autocast("cpu", dtype=clew.bfloat16):
        out = ops.roi_align(x, boxes, 1.0, 1, 1, 2, aligned=False)
        kept = ops.nms(boxes[:, 1:], clew.tensor([0.5, 1]).bfloat16(), iou_threshold=0.5)
    assert out.dtype is clew.bfloat16 and out.flatten().tolist() == [14, 17.5]
    assert kept.tolist() == [1]  # they share 9 of 16
    out.sum().backward()
    assert x.grad.dtype is clew.bfloat16 and x.grad.sum() == 2


def test_arguments_of_other_kinds_are_named():
    x, boxes = clew.ones(1, 1, 4, 4), clew.zeros(1, 5)
    for f, words in [
        (lambda: ops.nms([[0, 0, 1, 1]], clew.ones(1), 0.5), "nms: dets .* Tensor; got list"),
        (lambda: ops.nms(clew.ones(1, 4), None, 0.5), "nms: scores .* Tensor; got NoneType"),
        (lambda: ops.nms(clew.ones(1, 4), clew.ones(1), "a"), "iou_threshold .* number; got str"),
        (lambda: ops.roi_pool(x, boxes, 1.0, 2.5, 2), "pooled_height .* whole number; got float"),
        (lambda: ops.roi_align(x, boxes, 1.0, 2, 2, 2.0, True), "sampling_ratio .* got float"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            f()
    assert ops.roi_pool(x, boxes, 1, np.int64(2), 2)[0].shape == (1, 1, 2, 2)
