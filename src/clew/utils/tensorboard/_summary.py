"""Numbers, pictures, sounds and texts as TensorBoard's messages."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import Tensor, bfloat16
from clew._base.provenance import user_level

__all__ = [
    "array",
    "as_image",
    "audio",
    "grid",
    "hparams",
    "image",
    "layout",
    "pr_curve",
    "raw_histogram",
    "scalar",
    "tensor",
    "text",
]


def protos() -> Any:
    """The package's message types; explains how to get it when it is not installed."""
    try:
        from tensorboard.compat.proto import summary_pb2
    except ImportError as e:
        raise ImportError(
            "clew.utils.tensorboard needs the tensorboard package: pip install tensorboard "
            "(or clew[tensorboard])"
        ) from e
    return summary_pb2


def array(x: Any) -> np.ndarray:
    """Any tensor, array, list or number as a NumPy array."""
    if isinstance(x, Tensor):
        x = x.detach()
        return (x.float() if x.dtype is bfloat16 else x).numpy()
    return (
        np.asarray([x.detach().item() if isinstance(x, Tensor) else x for x in x])
        if (isinstance(x, (list, tuple)) and any(isinstance(v, Tensor) for v in x))
        else np.asarray(x)
    )


def _one(x: Any, what: str) -> float:
    values = array(x)
    if values.size != 1:
        raise ValueError(f"{what}: expected one number; got shape {values.shape}")
    return float(values.reshape(()).item().real if values.dtype.kind == "c" else values.item())


def _tensor_proto(dtype: str, shape: Sequence[int], **content: Any) -> Any:
    from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2, types_pb2

    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=n) for n in shape]
    return tensor_pb2.TensorProto(
        dtype=types_pb2.DataType.Value(dtype),
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims),
        **content,
    )


def _metadata(plugin: str, content: bytes = b"", **more: Any) -> Any:
    p = protos()
    data = p.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return p.SummaryMetadata(plugin_data=data, **more)


def _value(**fields: Any) -> Any:
    p = protos()
    return p.Summary(value=[p.Summary.Value(**fields)])


def scalar(tag: str, value: Any, new_style: bool = False, double: bool = False) -> Any:
    number = _one(value, "add_scalar")
    if not new_style and not double:
        return _value(tag=tag, simple_value=number)
    kind, field = ("DT_DOUBLE", "double_val") if double else ("DT_FLOAT", "float_val")
    proto = _tensor_proto(kind, (), **{field: [number]})
    return _value(tag=tag, tensor=proto, metadata=_metadata("scalars", data_class=1))


def tensor(tag: str, value: Any) -> Any:
    values = array(value)
    kinds = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}
    kinds |= {"int64": "DT_INT64", "int32": "DT_INT32", "int16": "DT_INT16", "int8": "DT_INT8"}
    kinds |= {"uint8": "DT_UINT8", "bool": "DT_BOOL"}
    kinds |= {"complex64": "DT_COMPLEX64", "complex128": "DT_COMPLEX128"}
    if values.dtype.name not in kinds:
        raise TypeError(f"add_tensor: dtype {values.dtype} is not supported")
    proto = _tensor_proto(kinds[values.dtype.name], values.shape, tensor_content=values.tobytes())
    return _value(tag=tag, tensor=proto, metadata=_metadata("tensor"))


def bucket_edges() -> np.ndarray:
    """Edges that grow by a tenth from 1e-12 to 1e20, both ways from zero."""
    count = int(np.ceil(np.log(1e32) / np.log(1.1)))
    up = 1e-12 * 1.1 ** np.arange(count)
    up = up[up < 1e20]
    return np.concatenate([-up[::-1], [0.0], up])


def raw_histogram(
    tag: str,
    low: float,
    high: float,
    count: float,
    total: float,
    squares: float,
    limits: Sequence[float],
    counts: Sequence[float],
) -> Any:
    if len(limits) != len(counts):
        raise ValueError(
            "add_histogram_raw: as many limits as counts are needed; got "
            f"{len(limits)} and {len(counts)}"
        )
    proto = protos().HistogramProto(
        min=low,
        max=high,
        num=count,
        sum=total,
        sum_squares=squares,
        bucket_limit=list(limits),
        bucket=list(counts),
    )
    return _value(tag=tag, histo=proto)


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None) -> Any:
    flat = array(values).reshape(-1).astype(float)
    if flat.size == 0:
        raise ValueError("add_histogram: there are no values")
    if not np.isfinite(flat).all():
        raise ValueError("add_histogram: values must be finite")
    edges = bucket_edges() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, edges = np.histogram(flat, bins=edges)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        starts = np.arange(0, len(counts), step)
        counts = np.add.reduceat(counts, starts)
        edges = np.append(edges[:-1][starts], edges[-1])
    used = np.flatnonzero(counts)
    if used.size == 0:
        raise ValueError("add_histogram: no value lies within the bins")
    # From the edge before the first bucket with values, which gets an empty bucket of its own.
    first, last = used[0], used[-1]
    limits = edges[first : last + 2]
    return raw_histogram(
        tag,
        float(flat.min()),
        float(flat.max()),
        flat.size,
        float(flat.sum()),
        float(flat @ flat),
        [float(v) for v in limits],
        [0.0, *map(float, counts[first : last + 1])],
    )


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of (H, W, C) bytes, C from 1 to 4."""
    height, width, channels = pixels.shape
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )


def grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """(N, C, H, W) side by side as (C, H', W')."""
    n, c, h, w = images.shape
    across = min(n, columns)
    down = -(-n // across)
    canvas = np.zeros((c, down * h, across * w), images.dtype)
    for k in range(n):
        y, x = (k // across) * h, (k % across) * w
        canvas[:, y : y + h, x : x + w] = images[k]
    return canvas


def as_image(x: Any, dataformats: str, what: str) -> np.ndarray:
    """Any layout of one or many pictures as (H, W, C) bytes, C being 1, 3 or 4."""
    values, form = array(x), dataformats.upper()
    if len(form) != values.ndim or len(set(form)) != len(form) or not set(form) <= set("NCHW"):
        raise ValueError(
            f"{what}: dataformats {dataformats!r} does not describe the shape {values.shape}"
        )
    if not {"H", "W"} <= set(form):
        raise ValueError(f"{what}: dataformats needs H and W; got {dataformats!r}")
    for axis in "NC":
        if axis not in form:
            values, form = values[None], axis + form
    values = values.transpose([form.index(a) for a in "NCHW"])
    if values.shape[0] > 1 or "N" in dataformats.upper():
        picture = grid(values)
    else:
        picture = values[0]
    if picture.shape[0] not in (1, 2, 3, 4):
        raise ValueError(f"{what}: pictures have 1 to 4 channels; got {picture.shape[0]}")
    picture = picture.transpose(1, 2, 0)
    if picture.dtype != np.uint8:
        picture = np.clip(np.nan_to_num(picture.astype(np.float32)) * 255, 0, 255)
    return np.ascontiguousarray(picture.astype(np.uint8))


def image(tag: str, pixels: np.ndarray) -> Any:
    height, width, channels = pixels.shape
    proto = protos().Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)
    )
    return _value(tag=tag, image=proto)


def with_boxes(
    pixels: np.ndarray, boxes: np.ndarray, color: tuple[int, int, int] = (255, 0, 0)
) -> np.ndarray:
    """The picture in colours with the outlines of (x0, y0, x1, y1) rectangles."""
    out = np.repeat(pixels, 3, 2) if pixels.shape[2] == 1 else pixels[:, :, :3].copy()
    height, width, _ = out.shape
    for x0, y0, x1, y1 in np.rint(boxes.reshape(-1, 4)).astype(int):
        left, right = (min(max(x, 0), width - 1) for x in (x0, x1))
        top, bottom = (min(max(y, 0), height - 1) for y in (y0, y1))
        out[[top, bottom], left : right + 1] = color
        out[top : bottom + 1, [left, right]] = color
    return out


def audio(tag: str, sound: Any, sample_rate: int) -> Any:
    import wave

    values = array(sound).reshape(-1).astype(np.float64)
    if np.abs(values).max(initial=0) > 1:
        import warnings

        warnings.warn("add_audio: samples beyond [-1, 1] are cut off", stacklevel=user_level())
    samples = (np.clip(values, -1, 1) * np.iinfo(np.int16).max).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(sample_rate)
        f.writeframes(samples.tobytes())
    proto = protos().Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=buffer.getvalue(),
        content_type="audio/wav",
    )
    return _value(tag=tag, audio=proto)


def text(tag: str, content: str) -> Any:
    proto = _tensor_proto("DT_STRING", (1,), string_val=[content.encode()])
    return _value(tag=f"{tag}/text_summary", tensor=proto, metadata=_metadata("text"))


def raw_pr_curve(tag: str, table: np.ndarray) -> Any:
    """A curve of (6, thresholds): true and false positives and negatives, precision, recall."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    content = PrCurvePluginData(version=0, num_thresholds=table.shape[1]).SerializeToString()
    values = [float(v) for v in table.reshape(-1)]
    proto = _tensor_proto("DT_FLOAT", table.shape, float_val=values)
    return _value(tag=tag, tensor=proto, metadata=_metadata("pr_curves", content))


def pr_curve(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> Any:
    truth, score = array(labels).reshape(-1).astype(float), array(predictions).reshape(-1)
    if truth.shape != score.shape:
        raise ValueError(
            f"add_pr_curve: as many labels as predictions are needed; got {truth.size} and "
            f"{score.size}"
        )
    weight = np.ones(truth.shape) if weights is None else array(weights).reshape(-1).astype(float)
    thresholds = min(thresholds, 127)
    place = np.clip((score * (thresholds - 1)).astype(int), 0, thresholds - 1)
    tp, fp = (
        np.bincount(place, weights=w * weight, minlength=thresholds)[::-1].cumsum()[::-1]
        for w in (truth, 1 - truth)
    )
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7
    table = np.stack([tp, fp, tn, fn, tp / np.maximum(tp + fp, least), tp / max(tp[0], least)])
    return raw_pr_curve(tag, table)


def hparams(
    settings: dict[str, Any], metrics: dict[str, Any], discrete: dict[str, Any] | None
) -> tuple[Any, Any, Any]:
    """The three messages of a run of hyperparameters: experiment, start, end."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    kinds = {bool: "BOOL", str: "STRING", int: "FLOAT64", float: "FLOAT64"}
    infos, start = [], plugin_data_pb2.SessionStartInfo()
    for name, given in settings.items():
        value = given.item() if isinstance(given, (Tensor, np.generic)) else given
        if value is None:
            continue
        if type(value) not in kinds:
            raise ValueError(
                f"add_hparams: values are numbers, texts or truth values; got {type(given)} for "
                f"{name!r}"
            )
        info = api_pb2.HParamInfo(
            name=name, type=api_pb2.DataType.Value(f"DATA_TYPE_{kinds[type(value)]}")
        )
        if discrete and name in discrete:
            domain = struct_pb2.ListValue()
            domain.extend(discrete[name])
            info.domain_discrete.CopyFrom(domain)
        infos.append(info)
        slot = start.hparams[name]
        if isinstance(value, bool):
            slot.bool_value = value
        elif isinstance(value, str):
            slot.string_value = value
        else:
            slot.number_value = value
    metric_infos = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=m)) for m in metrics]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metric_infos)
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    version = metadata.PLUGIN_DATA_VERSION

    def message(tag: str, **field: Any) -> Any:
        content = plugin_data_pb2.HParamsPluginData(version=version, **field).SerializeToString()
        return _value(tag=tag, metadata=_metadata("hparams", content))

    return (
        message(metadata.EXPERIMENT_TAG, experiment=experiment),
        message(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        message(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


def layout(categories: dict[str, dict[str, Any]]) -> Any:
    """The page of custom scalars: category -> chart -> [kind, tags]."""
    from tensorboard.plugins.custom_scalar import layout_pb2

    made = []
    for category, charts in categories.items():
        found = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                series = layout_pb2.MarginChartContent.Series(
                    value=tags[0], lower=tags[1], upper=tags[2]
                )
                content = layout_pb2.MarginChartContent(series=[series])
                found.append(layout_pb2.Chart(title=title, margin=content))
            else:
                lines = layout_pb2.MultilineChartContent(tag=tags)
                found.append(layout_pb2.Chart(title=title, multiline=lines))
        made.append(layout_pb2.Category(title=category, chart=found))
    content = layout_pb2.Layout(category=made).SerializeToString()
    proto = _tensor_proto("DT_STRING", (), string_val=[content])
    tag = "custom_scalars__config__"
    return _value(tag=tag, tensor=proto, metadata=_metadata("custom_scalars"))
