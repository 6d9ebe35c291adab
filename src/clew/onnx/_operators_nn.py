"""ONNX's layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.onnx._errors import OnnxExporterError
from clew.onnx._operators import OPERATORS, ints, operator

F = clew.nn.functional


def _pads(a: Any, x: Tensor, n: int, kernel: list[int], strides: list[int],
          dilations: list[int]) -> list[tuple[int, int]]:  # fmt: skip
    """How far each spatial dim is padded, before and after."""
    auto = a.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            low = total // 2 if auto == "SAME_UPPER" else total - total // 2
            found.append((low, total - low))
        return found
    given = a.get("pads") or [0] * (2 * n)
    return list(zip(given[:n], given[n:]))


def _flat(pads: list[tuple[int, int]]) -> list[int]:
    return [v for pair in reversed(pads) for v in pair]


@operator("Conv")
def _conv(a: Any, env: Any, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    n = x.dim() - 2
    strides, dilations = a.get("strides") or [1] * n, a.get("dilations") or [1] * n
    pads = _pads(a, x, n, list(w.shape[2:]), strides, dilations)
    if any(p != q for p, q in pads):
        x = F.pad(x, _flat(pads))
        pads = [(0, 0)] * n
    function = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return function(x, w, bias, strides, [p for p, _ in pads], dilations, a.get("group", 1))


@operator("ConvTranspose")
def _conv_transpose(a: Any, env: Any, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    n = x.dim() - 2
    if a.get("output_shape") or a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise OnnxExporterError("onnx.load: ConvTranspose with output_shape or auto_pad")
    strides, dilations = a.get("strides") or [1] * n, a.get("dilations") or [1] * n
    pads = _pads(a, x, n, list(w.shape[2:]), strides, dilations)
    if any(p != q for p, q in pads):
        raise OnnxExporterError("onnx.load: ConvTranspose with uneven pads")
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    more = a.get("output_padding") or [0] * n
    return function(x, w, bias, strides, [p for p, _ in pads], more, a.get("group", 1), dilations)


@operator("MaxPool")
def _max_pool(a: Any, env: Any, x: Tensor) -> Any:
    n = x.dim() - 2
    kernel = a["kernel_shape"]
    strides, dilations = a.get("strides") or [1] * n, a.get("dilations") or [1] * n
    pads = _pads(a, x, n, kernel, strides, dilations)
    if a.get("storage_order"):
        raise OnnxExporterError("onnx.load: MaxPool with places counted by columns")
    if any(p != q or 2 * p > k for (p, q), k in zip(pads, kernel)):
        x, pads, before = F.pad(x, _flat(pads), value=-math.inf), [(0, 0)] * n, pads
    else:
        before = [(0, 0)] * n
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
    values, places = function(x, kernel, strides, [p for p, _ in pads], dilations,
                              bool(a.get("ceil_mode")), True)  # fmt: skip
    if a["_outputs"] < 2:
        return values
    # Places are those of the plane without what was padded here, and count on over all planes.
    own, unit = clew.zeros_like(places), 1
    for size, pad in zip(reversed(x.shape[2:]), reversed(before)):
        own = own + (places % size - pad[0]) * unit
        places, unit = places // size, unit * (size - sum(pad))
    planes = clew.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * n)
    return values, own + planes * unit


@operator("AveragePool")
def _average_pool(a: Any, env: Any, x: Tensor) -> Tensor:
    n = x.dim() - 2
    kernel = a["kernel_shape"]
    strides = a.get("strides") or [1] * n
    if any(d != 1 for d in a.get("dilations") or []):
        raise OnnxExporterError("onnx.load: AveragePool with dilations")
    pads = _pads(a, x, n, kernel, strides, [1] * n)
    whole = bool(a.get("count_include_pad"))
    ceil = bool(a.get("ceil_mode"))
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    if any(p != q or 2 * p > k for (p, q), k in zip(pads, kernel)):
        if whole and ceil:
            raise OnnxExporterError("onnx.load: AveragePool with uneven pads and ceil_mode")
        found = function(F.pad(x, _flat(pads)), kernel, strides, 0, ceil)
        if whole:
            return found
        inside = F.pad(clew.ones_like(x), _flat(pads))
        return found / function(inside, kernel, strides, 0, ceil)
    return function(x, kernel, strides, [p for p, _ in pads], ceil, whole)


@operator("LpPool")
def _lp_pool(a: Any, env: Any, x: Tensor) -> Tensor:
    p = a.get("p", 2)
    # A mean that counts all that is padded, times its number, is a sum.
    mean = _average_pool({**a, "count_include_pad": 1, "_outputs": 1}, env, x.abs() ** p)
    return (mean * math.prod(a["kernel_shape"])) ** (1 / p)


@operator("LRN")
def _lrn(a: Any, env: Any, x: Tensor) -> Tensor:
    size = a["size"]
    square = F.pad((x * x).movedim(1, -1), ((size - 1) // 2, size // 2))
    total = square.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    base = a.get("bias", 1.0) + a.get("alpha", 1e-4) / size * total
    return x / base ** a.get("beta", 0.75)


@operator("LpNormalization")
def _lp_normalization(a: Any, env: Any, x: Tensor) -> Tensor:
    norm = clew.linalg.vector_norm(x, a.get("p", 2), a.get("axis", -1), keepdim=True)
    return clew.where(norm == 0, clew.zeros_like(x), x / norm)


@operator("MeanVarianceNormalization")
def _mean_variance(a: Any, env: Any, x: Tensor) -> Tensor:
    axes = a.get("axes") or [0, 2, 3]
    mean, var = x.mean(axes, keepdim=True), x.var(axes, unbiased=False, keepdim=True)
    return (x - mean) / (var.sqrt() + 1e-9)


@operator("Hardmax")
def _hardmax(a: Any, env: Any, x: Tensor) -> Tensor:
    if a["_opset"] < 13:
        raise OnnxExporterError("onnx.load: Hardmax before version 13")
    axis = a.get("axis", -1)
    top = x.argmax(axis, keepdim=True)
    return clew.zeros_like(x).scatter(axis, top, 1)


@operator("AffineGrid")
def _affine_grid(a: Any, env: Any, theta: Tensor, size: Tensor) -> Tensor:
    return F.affine_grid(theta, ints(size), bool(a.get("align_corners")))


@operator("NonMaxSuppression")
def _suppressed(a: Any, env: Any, boxes: Tensor, scores: Tensor, most: Any = None,
                overlap: Any = None, least: Any = None) -> Tensor:  # fmt: skip
    limit = 0 if most is None else int(most)
    bound = 0.0 if overlap is None else float(overlap)
    found: list[list[int]] = []
    for batch in range(boxes.shape[0]):
        b = boxes[batch].detach().numpy().astype(np.float64)
        if a.get("center_point_box"):
            b = np.concatenate([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2], 1)
        low, high = np.minimum(b[:, :2], b[:, 2:]), np.maximum(b[:, :2], b[:, 2:])
        area = (high - low).prod(1)
        for kind in range(scores.shape[1]):
            s = scores[batch, kind].detach().numpy()
            left = [int(k) for k in np.argsort(-s, kind="stable")]
            if least is not None:
                left = [k for k in left if s[k] > float(least)]
            kept = 0
            while left and kept < limit:
                k = left.pop(0)
                kept += 1
                found.append([batch, kind, k])
                sides = np.minimum(high[k], high[left]) - np.maximum(low[k], low[left])
                shared = sides.clip(0).prod(1)
                whole = area[k] + area[left] - shared
                left = [j for j, s0, w in zip(left, shared, whole) if w <= 0 or s0 / w <= bound]
    return clew.tensor(found, dtype=clew.int64).reshape(-1, 3)


@operator("GlobalAveragePool")
def _global_average(a: Any, env: Any, x: Tensor) -> Tensor:
    return x.mean(list(range(2, x.dim())), keepdim=True)


@operator("GlobalMaxPool")
def _global_max(a: Any, env: Any, x: Tensor) -> Tensor:
    return x.amax(list(range(2, x.dim())), keepdim=True)


@operator("BatchNormalization")
def _batch_norm(a: Any, env: Any, x: Tensor, w: Tensor, b: Tensor, mean: Tensor,
                var: Tensor) -> Tensor:  # fmt: skip
    if a.get("training_mode"):
        raise OnnxExporterError("onnx.load: BatchNormalization in training mode")
    return F.batch_norm(x, mean.detach(), var.detach(), w, b, False, 0.0, a.get("epsilon", 1e-5))


@operator("InstanceNormalization")
def _instance_norm(a: Any, env: Any, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.instance_norm(x, weight=w, bias=b, eps=a.get("epsilon", 1e-5))


@operator("LayerNormalization")
def _layer_norm(a: Any, env: Any, x: Tensor, w: Tensor, b: Any = None) -> Any:
    axis = a.get("axis", -1) % x.dim()
    found = F.layer_norm(x, x.shape[axis:], w, b, a.get("epsilon", 1e-5))
    if a["_outputs"] < 2:
        return found
    dims = list(range(axis, x.dim()))
    mean, var = x.mean(dims, keepdim=True), x.var(dims, unbiased=False, keepdim=True)
    return found, mean, (var + a.get("epsilon", 1e-5)).rsqrt()


@operator("GroupNormalization")
def _group_norm(a: Any, env: Any, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    groups = a["num_groups"]
    if w.shape[0] != x.shape[1]:
        w, b = (t.repeat_interleave(x.shape[1] // groups) for t in (w, b))
    return F.group_norm(x, groups, w, b, a.get("epsilon", 1e-5))


@operator("RMSNormalization")
def _rms_norm(a: Any, env: Any, x: Tensor, w: Tensor) -> Tensor:
    axis = a.get("axis", -1) % x.dim()
    return F.rms_norm(x, x.shape[axis:], w, a.get("epsilon", 1e-5))


@operator("Col2Im")
def _col2im(a: Any, env: Any, x: Tensor, size: Tensor, block: Tensor) -> Tensor:
    n = 2
    pads = a.get("pads") or [0] * 4
    return F.fold(x, ints(size), ints(block), a.get("dilations") or [1] * n, pads[:n],
                  a.get("strides") or [1] * n)  # fmt: skip


@operator("GridSample")
def _grid_sample(a: Any, env: Any, x: Tensor, grid: Tensor) -> Tensor:
    mode = a.get("mode", "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return F.grid_sample(x, grid, mode, a.get("padding_mode", "zeros"),
                         bool(a.get("align_corners")))  # fmt: skip


def _places(length: int, out: int, factor: float | None, how: str) -> Any:
    """Where the elements of a resized line lie in the line, in float32 as runtimes compute it."""
    scale = np.float32(factor) if factor is not None else np.float32(out) / np.float32(length)
    i = np.arange(out, dtype=np.float32)
    half = np.float32(0.5)
    if how == "pytorch_half_pixel" and out == 1:
        return i * 0
    if how in ("half_pixel", "pytorch_half_pixel"):
        return (i + half) / scale - half
    if how == "half_pixel_symmetric":
        whole = scale * np.float32(length)
        start = np.float32(length) / 2 * (1 - np.float32(out) / whole)
        return start + (i + half) / scale - half
    if how == "asymmetric":
        return i / scale
    if how == "align_corners":
        return i * np.float32(length - 1) / np.float32(max(out - 1, 1))
    raise OnnxExporterError(f"onnx.load: Resize with {how!r}")


def _nearest(x: Tensor, d: int, at: Any, rounding: str) -> Tensor:
    """The nearest elements along one dim."""
    low = np.floor(at)
    part = at - low
    places = {
        "floor": low, "ceil": np.ceil(at), "round_prefer_floor": low + (part > 0.5),
        "round_prefer_ceil": low + (part >= 0.5),
    }.get(rounding)  # fmt: skip
    if places is None:
        raise OnnxExporterError(f"onnx.load: Resize with the rounding {rounding!r}")
    index = np.clip(places, 0, x.shape[d] - 1).astype(np.int64)
    return x.index_select(d, clew.tensor(index))


def _weighted(x: Tensor, d: int, at: Any, cubic: float | None, outside: bool) -> Tensor:
    """Sums of two or four neighbours along one dim, as a product with a matrix.

    Args:
        cubic: ONNX's cubic_coeff_a; None for two neighbours.
        outside: neighbours outside of the line count, as its ends.
    """
    low = np.floor(at).astype(np.int64)
    t = (at - low).astype(np.float64)
    if cubic is None:
        taps = {0: 1 - t, 1: t}
    else:
        near = lambda u: ((cubic + 2) * u - (cubic + 3)) * u * u + 1  # noqa: E731
        far = lambda u: ((cubic * u - 5 * cubic) * u + 8 * cubic) * u - 4 * cubic  # noqa: E731
        taps = {-1: far(t + 1), 0: near(t), 1: near(1 - t), 2: far(2 - t)}
    length = x.shape[d]
    matrix = np.zeros((len(at), length))
    for shift, weight in taps.items():
        place = low + shift
        if not outside:
            weight = np.where((place < 0) | (place >= length), 0, weight)
        np.add.at(matrix, (np.arange(len(at)), np.clip(place, 0, length - 1)), weight)
    if not outside:
        matrix /= matrix.sum(1, keepdims=True)
    product = x.movedim(d, -1) @ clew.tensor(matrix.T.copy(), dtype=x.dtype)
    return product.movedim(-1, d)


@operator("Resize")
def _resize(a: Any, env: Any, x: Tensor, roi: Any = None, scales: Any = None,
            sizes: Any = None) -> Tensor:  # fmt: skip
    if a.get("antialias") or a.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise OnnxExporterError("onnx.load: Resize with antialias or a kept aspect ratio")
    how = a.get("coordinate_transformation_mode", "half_pixel")
    mode = a.get("mode", "nearest")
    target = factors = None
    if sizes is not None and sizes.numel():
        target = ints(sizes)
    else:
        factors = [float(s) for s in scales.reshape(-1).tolist()]
    for k, d in enumerate(a.get("axes") or range(x.dim())):
        length = x.shape[d]
        factor = None if factors is None else factors[k]
        out = target[k] if target is not None else math.floor(length * (factor or 1))
        if out == length and factor in (None, 1.0):
            continue
        at = _places(length, out, factor, how)
        if mode == "nearest":
            x = _nearest(x, d, at, a.get("nearest_mode", "round_prefer_floor"))
        elif mode in ("linear", "cubic") and x.is_floating_point():
            cubic = a.get("cubic_coeff_a", -0.75) if mode == "cubic" else None
            x = _weighted(x, d, at, cubic, not a.get("exclude_outside"))
        else:
            raise OnnxExporterError(f"onnx.load: Resize of {x.dtype.name} with mode {mode!r}")
    return x


@operator("Upsample")
def _upsample(a: Any, env: Any, x: Tensor, scales: Any = None) -> Tensor:
    more = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    factors = clew.tensor(a["scales"]) if scales is None else scales
    return _resize({**a, **more}, env, x, None, factors)


def _loss_of(function: Any) -> Any:
    def run(a: Any, env: Any, x: Tensor, target: Tensor, w: Any = None) -> Any:
        found = function(x, target.long(), w, reduction=a.get("reduction", "mean"),
                         ignore_index=a.get("ignore_index", -100))  # fmt: skip
        return found if a["_outputs"] < 2 else (found, x.log_softmax(1))

    return run


OPERATORS["SoftmaxCrossEntropyLoss"] = _loss_of(F.cross_entropy)
OPERATORS["NegativeLogLikelihoodLoss"] = _loss_of(F.nll_loss)


def _recurrent_of(kind: str) -> Any:
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]

    def run(
        a: Any, env: Any, x: Tensor, w: Tensor, r: Tensor, bias: Any = None, lengths: Any = None,
        h0: Any = None, c0: Any = None, peep: Any = None,
    ) -> Any:  # fmt: skip
        if peep is not None or a.get("clip") or a.get("layout"):
            raise OnnxExporterError(f"onnx.load: {kind} with peepholes, clip or layout")
        if a.get("input_forget") or a.get("activation_alpha") or a.get("activation_beta"):
            raise OnnxExporterError(
                f"onnx.load: {kind} with input_forget or factors of activations"
            )
        hidden = a["hidden_size"]
        direction = a.get("direction", "forward")
        plain = {"RNN": "tanh", "LSTM": "sigmoid tanh tanh", "GRU": "sigmoid tanh"}[kind].split()
        acts = [s.lower() for s in a.get("activations") or plain]
        if kind != "RNN" and acts[: len(plain)] != plain:
            raise OnnxExporterError(f"onnx.load: {kind} with the activations {acts}")
        count = w.shape[0]
        outs, hs, cs = [], [], []
        for d in range(count):
            back = direction == "reverse" or d == 1
            shape = (x.shape[1], hidden)
            h = x.new_zeros(shape) if h0 is None else h0[d]
            c = x.new_zeros(shape) if c0 is None else c0[d]
            wb, rb = (
                (x.new_zeros(gates * hidden),) * 2 if bias is None else bias[d].chunk(2)
            )  # fmt: skip
            steps = []
            for t in reversed(range(x.shape[0])) if back else range(x.shape[0]):
                before = h, c
                left, right = F.linear(x[t], w[d], wb), F.linear(h, r[d], rb)
                if kind == "LSTM":
                    i, o, f, g = (left + right).chunk(4, -1)
                    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                    h = o.sigmoid() * c.tanh()
                elif kind == "GRU":
                    (lz, lr, lh), (rz, rr, rh) = left.chunk(3, -1), right.chunk(3, -1)
                    z, reset = (lz + rz).sigmoid(), (lr + rr).sigmoid()
                    if a.get("linear_before_reset"):
                        n = (lh + reset * rh).tanh()
                    else:
                        n = (lh + F.linear(reset * h, r[d][2 * hidden :], rb[2 * hidden :])).tanh()
                    h = (1 - z) * n + z * h
                else:
                    h = left + right
                    h = h.relu() if acts[d if len(acts) > 1 else 0] == "relu" else h.tanh()
                if lengths is None:
                    steps.append(h)
                    continue
                live = (lengths > t).unsqueeze(1)  # the states of ended sequences stay
                steps.append(h.where(live, 0))
                h, c = h.where(live, before[0]), c.where(live, before[1])
            if back:
                steps = steps[::-1]
            outs.append(clew.stack(steps))
            hs.append(h)
            cs.append(c)
        made = [clew.stack(outs, 1), clew.stack(hs)]
        return [*made, clew.stack(cs)] if kind == "LSTM" else made

    return run


for _kind in ("RNN", "LSTM", "GRU"):
    OPERATORS[_kind] = _recurrent_of(_kind)
