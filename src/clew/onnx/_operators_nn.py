"""ONNX's layers."""

from __future__ import annotations

import math
from typing import Any

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
    if any(p != q for p, q in pads):
        x, pads = F.pad(x, _flat(pads), value=-math.inf), [(0, 0)] * n
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
    values, places = function(x, kernel, strides, [p for p, _ in pads], dilations,
                              bool(a.get("ceil_mode")), True)  # fmt: skip
    planes = clew.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * n)
    return values, places + planes * math.prod(x.shape[2:])


@operator("AveragePool")
def _average_pool(a: Any, env: Any, x: Tensor) -> Tensor:
    n = x.dim() - 2
    kernel = a["kernel_shape"]
    strides = a.get("strides") or [1] * n
    if any(d != 1 for d in a.get("dilations") or []):
        raise OnnxExporterError("onnx.load: AveragePool with dilations")
    pads = _pads(a, x, n, kernel, strides, [1] * n)
    whole = bool(a.get("count_include_pad"))
    if any(p != q for p, q in pads):
        if not whole:
            raise OnnxExporterError("onnx.load: AveragePool with uneven pads")
        x, pads = F.pad(x, _flat(pads)), [(0, 0)] * n
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    return function(x, kernel, strides, [p for p, _ in pads], bool(a.get("ceil_mode")), whole)


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
def _layer_norm(a: Any, env: Any, x: Tensor, w: Tensor, b: Any = None) -> Tensor:
    axis = a.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], w, b, a.get("epsilon", 1e-5))


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


@operator("Resize")
def _resize(a: Any, env: Any, x: Tensor, roi: Any = None, scales: Any = None,
            sizes: Any = None) -> Tensor:  # fmt: skip
    how = a.get("coordinate_transformation_mode", "half_pixel")
    mode = a.get("mode", "nearest")
    n = x.dim() - 2
    given: dict[str, Any] = {}
    if sizes is not None:
        target = ints(sizes)
        given["size"] = target[-n:]
    else:
        factors = [float(s) for s in scales.reshape(-1).tolist()]
        given["scale_factor"] = factors[-n:]
    if a.get("antialias") or a.get("axes"):
        raise OnnxExporterError("onnx.load: Resize with antialias or axes")
    if mode == "nearest":
        rounding = a.get("nearest_mode", "round_prefer_floor")
        if how == "asymmetric" and rounding == "floor":
            return F.interpolate(x, mode="nearest", **given)
        if how in ("half_pixel", "pytorch_half_pixel") and rounding == "round_prefer_ceil":
            return F.interpolate(x, mode="nearest-exact", **given)
    elif mode == "linear" and how in ("pytorch_half_pixel", "half_pixel", "align_corners"):
        names = ("linear", "bilinear", "trilinear")
        return F.interpolate(x, mode=names[n - 1], align_corners=how == "align_corners", **given)
    elif mode == "cubic" and how in ("half_pixel", "align_corners", "pytorch_half_pixel"):
        return F.interpolate(x, mode="bicubic", align_corners=how == "align_corners", **given)
    raise OnnxExporterError(f"onnx.load: Resize with mode {mode!r} and {how!r}")


def _loss_of(function: Any) -> Any:
    def run(a: Any, env: Any, x: Tensor, target: Tensor, w: Any = None) -> Tensor:
        return function(x, target.long(), w, reduction=a.get("reduction", "mean"),
                        ignore_index=a.get("ignore_index", -100))  # fmt: skip

    return run


OPERATORS["SoftmaxCrossEntropyLoss"] = _loss_of(F.cross_entropy)
OPERATORS["NegativeLogLikelihoodLoss"] = _loss_of(F.nll_loss)


def _recurrent_of(kind: str) -> Any:
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]

    def run(
        a: Any, env: Any, x: Tensor, w: Tensor, r: Tensor, bias: Any = None, lengths: Any = None,
        h0: Any = None, c0: Any = None, peep: Any = None,
    ) -> Any:  # fmt: skip
        if lengths is not None or peep is not None or a.get("clip") or a.get("layout"):
            raise OnnxExporterError(f"onnx.load: {kind} with lengths, peepholes, clip or layout")
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
                steps.append(h)
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
