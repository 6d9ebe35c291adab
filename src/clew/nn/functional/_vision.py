"""Resampling of images: interpolate, upsample."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import clew
from clew._base.arguments import need_bools, need_int, need_tensors
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

from ._core import private
from ._pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_AREA = adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_resample_line = private("_resample")

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


def _source(out: int, size: int, scale: float | None, align_corners: bool) -> list[float]:
    """Where each output position lies in the input."""
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
        return [i * step for i in range(out)]
    step = 1.0 / scale if scale is not None and scale > 0 else size / out
    return [(i + 0.5) * step - 0.5 for i in range(out)]


# A model resizes the same sizes again and again: what follows from them alone is kept.
def _kept(array: Any, dtype: Any = clew.int64) -> Any:
    """A tensor that may be used by any later call, whatever mode this one is in."""
    with clew.inference_mode(False):
        return clew.from_numpy(array).to(dtype)


@functools.lru_cache(maxsize=256)
def _nearest_index(out: int, size: int, scale: float | None, exact: bool) -> tuple[Any, int]:
    """The places, and how often each input stands there if as often as the others (else 0)."""
    step = 1.0 / scale if scale is not None and scale > 0 else size / out
    # PyTorch computes these places in float32.
    import numpy as np

    i = np.arange(out, dtype=np.float32)
    if exact:
        i = i + np.float32(0.5)
    found = np.minimum(np.floor(i * np.float32(step)).astype(np.int64), size - 1)
    times = out // size
    even = times > 0 and np.array_equal(found, np.arange(size * times) // times)
    return _kept(found), times if even else 0


def cubic_weights(t: Any, a: float) -> list[Any]:
    """Weights of the four neighbours of a place that lies t behind the second one."""

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@functools.lru_cache(maxsize=256)
def _terms(
    out: int, size: int, scale: float | None, align: bool, kind: str, antialias: bool, dtype: Any
) -> tuple[Any, Any]:
    """For each output position its terms: places in the input, or -1 for none, and weights."""
    import numpy as np

    rows = _rows(out, size, scale, align, kind, antialias)
    most = max(len(r) for r in rows)
    rows = [r + [(-1, 0.0)] * (most - len(r)) for r in rows]
    places = np.array([[j for j, _ in r] for r in rows], dtype=np.int64)
    weights = np.array([[w for _, w in r] for r in rows])
    return _kept(places), _kept(weights, dtype)


@functools.lru_cache(maxsize=256)
def _byte_terms(
    out: int, size: int, scale: float | None, align: bool, kind: str, antialias: bool
) -> tuple[Any, Any, int]:
    """As `_terms`, with whole weights for bytes, and the number of their bits after the point.

    Sixteen bits hold the largest. So Pillow resizes, and PyTorch after it.
    """
    import numpy as np

    rows = []
    for row in _rows(out, size, scale, align, kind, antialias):
        sums: dict[int, float] = {}  # at an edge one place stands for several
        for j, w in row:
            sums[j] = sums.get(j, 0.0) + w
        rows.append(list(sums.items()))
    largest = max(w for row in rows for _, w in row)
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    most = max(len(r) for r in rows)
    rows = [r + [(-1, 0.0)] * (most - len(r)) for r in rows]
    places = np.array([[j for j, _ in r] for r in rows], dtype=np.int64)
    scaled = np.array([[w for _, w in r] for r in rows]) * (1 << bits)
    return _kept(places), _kept(np.trunc(scaled + np.copysign(0.5, scaled)), clew.float64), bits


def _rows(
    out: int, size: int, scale: float | None, align: bool, kind: str, antialias: bool
) -> list[list[tuple[int, float]]]:
    """For each output position the input positions that count and their weights."""
    rows: list[list[tuple[int, float]]] = []
    if antialias:
        if align:
            step = (size - 1) / (out - 1) if out > 1 else 0.0
        else:
            step = 1.0 / scale if scale is not None and scale > 0 else size / out
        reach = 2.0 if kind == "cubic" else 1.0
        support = reach * step if step >= 1.0 else reach
        squeeze = 1.0 / step if step >= 1.0 else 1.0
        for i in range(out):
            center = step * (i + 0.5)
            low = max(int(center - support + 0.5), 0)
            high = min(int(center + support + 0.5), size)
            weights = [_kernel((j - center + 0.5) * squeeze, kind) for j in range(low, high)]
            total = sum(weights) or 1.0
            rows.append([(low + j, w / total) for j, w in enumerate(weights)])
        return rows
    for x in _source(out, size, scale, align):
        if kind == "linear":
            x = max(x, 0.0) if not align else x
            low = min(int(x), size - 1)
            high = min(low + 1, size - 1)
            t = min(max(x - low, 0.0), 1.0)
            rows.append([(low, 1.0 - t), (high, t)])
        else:
            low = math.floor(x)
            weights = cubic_weights(x - low, -0.75)
            rows.append([(min(max(low - 1 + j, 0), size - 1), w) for j, w in enumerate(weights)])
    return rows


def _kernel(x: float, kind: str) -> float:
    x = abs(x)
    if kind == "linear":
        return 1.0 - x if x < 1.0 else 0.0
    a = -0.5
    if x < 1.0:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    if x < 2.0:
        return ((x - 5) * x + 8) * x * a - 4 * a
    return 0.0


def _resample(input: Any, dim: int, places: Any, weights: Any) -> Any:
    """Weighted sums along one dim."""
    if input.is_meta:
        places, weights = places.to("meta"), weights.to("meta")
    return _resample_line(input, places, weights, places.shape[0], dim - input.dim())


def _resample_bytes(input: Any, each: list[tuple[int, tuple[Any, ...]]], last: bool) -> Any:
    """An image of bytes, rounded after every dim.

    Args:
        input: the image.
        each: dims, counted from the first of space, with what _byte_terms() takes.
        last: whether its channels lie last.
    """
    out = (input.movedim(1, -1) if last else input).double()  # in which the sums are exact
    for d, place in each:
        places, weights, bits = _byte_terms(*place)
        sums = _resample(out, (1 if last else 2) + d, places, weights)
        out = ((sums + (1 << bits >> 1)) / (1 << bits)).floor().clamp(0, 255)
    return (out.movedim(-1, 1) if last else out).to(clew.uint8)


def bilinear_aa(input: Any, sizes: list[int], scales: list[Any], align_corners: bool) -> Any:
    """Bilinear resampling to a size as if by given scales, averaging where the size shrinks."""
    out = input
    for d in (1, 0):
        terms = _terms(
            sizes[d], input.shape[2 + d], scales[d], align_corners, "linear", True, out.dtype
        )
        out = _resample(out, 2 + d, *terms)
    return out


_SIZE_ASKED_FIRST = 1 << 20


@functools.lru_cache(maxsize=256)
def _copies(shape: tuple[int, ...], factor: int) -> tuple[list[int], list[int], list[int]] | None:
    """Views between which one copy repeats every element `factor` times along the last dims."""
    sizes = [factor * s for s in shape[2:]]
    if not (3 <= len(shape) <= 5 and factor > 0 and min(sizes) > 0):
        return None
    if max(sizes) > _SIZE_ASKED_FIRST:
        return None
    batch, apart, blocks = list(shape[:2]), [], []
    for s in shape[2:]:
        apart += [s, 1]
        blocks += [s, factor]
    return batch + apart, batch + blocks, batch + sizes


def _resized(
    input: Any, size: Any, scale_factor: Any, recompute_scale_factor: bool | None
) -> tuple[list[int], list[float | None]]:
    """The sizes of the last dims of interpolate's result, and the scale factors that it computes
    with. A factor is None where it follows from the sizes."""
    try:
        n = input.dim() - 2
    except AttributeError:
        need_tensors("interpolate", input=input)
        raise
    if size is not None and scale_factor is not None:
        raise ValueError(
            "interpolate: only one of size or scale_factor should be defined; got both"
        )
    if size is None and scale_factor is None:
        raise ValueError("interpolate: either size or scale_factor should be defined; got neither")
    if size is not None:
        if not isinstance(size, list | tuple):
            sizes = [need_int("interpolate", "size", size)] * n
        elif len(size) == n:
            sizes = [need_int("interpolate", "size", s) for s in size]
        else:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got "
                f"input with spatial dimensions of {list(input.shape[2:])} and output size of "
                f"{size}."
            )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return sizes, [None] * n
    if not isinstance(scale_factor, list | tuple):
        factors = [float(scale_factor)] * n
    elif len(scale_factor) == n:
        factors = [float(f) for f in scale_factor]
    else:
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and "
            "scale_factor "
            f"of shape {scale_factor}."
        )
    sizes = [math.floor(s * f) for s, f in zip(input.shape[2:], factors, strict=True)]
    return sizes, [None] * n if recompute_scale_factor else list(factors)


def _check_interpolated(input: Any, sizes: list[int], mode: str, antialias: bool) -> None:
    """Raises where interpolate cannot make these sizes of the input."""
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if input.dim() not in (3, 4, 5):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
            "trilinear "
            f"| area | nearest-exact (got {mode})"
        )
    if any(s <= 0 for s in sizes) or any(s <= 0 for s in input.shape[2:]):
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{list(input.shape[2:])} "
            f"and output {sizes}"
        )
    if max(sizes) > _SIZE_ASKED_FIRST:
        # Whether the result can be had shows before tables of its size are made.
        clew.empty([*input.shape[:2], *sizes], dtype=input.dtype, device=input.device)


def _nearest(
    input: Any, sizes: list[int], scales: list[float | None], exact: bool, last: bool
) -> Any:
    """The elements of the nearest places; `last` says that channels lie last, and stay so."""
    before = [int(s) for s in input.shape[2:]]
    indices = [
        _nearest_index(after, of, scale, exact)
        for after, of, scale in zip(sizes, before, scales, strict=True)
    ]
    times = [k for _, k in indices]
    if not last and max(times) > 1 and min(times) > 0:
        # Every element as often as the others: one copy, whose gradient is a sum of blocks.
        apart = [extent for size in before for extent in (size, 1)]
        blocks = [extent for pair in zip(before, times, strict=True) for extent in pair]
        batch = list(input.shape[:2])
        return input.reshape(batch + apart).expand(batch + blocks).contiguous().view(batch + sizes)
    out = input.movedim(1, -1) if last else input
    for d, (places, _) in enumerate(indices, 1 if last else 2):
        out = out.index_select(d, places.to("meta") if out.is_meta else places)
    return out.movedim(-1, 1) if last else out


def _blended(
    input: Any,
    sizes: list[int],
    scales: list[float | None],
    mode: str,
    corners: bool,
    antialias: bool,
    last: bool,
) -> Any:
    """Weighted sums of neighbours, one dim after the other: the linear and cubic modes."""
    n = len(sizes)
    if mode in _LINEAR:
        if _LINEAR[mode] != n:
            raise NotImplementedError(
                f"interpolate: Got {input.dim()}D input, but {mode} mode needs "
                f"{_LINEAR[mode] + 2}D input"
            )
    elif mode == "bicubic":
        if n != 2:
            raise NotImplementedError(
                f"interpolate: Got {input.dim()}D input, but bicubic mode needs 4D input"
            )
    else:
        raise NotImplementedError(f"interpolate: unknown mode {mode!r}")
    kind = "linear" if mode in _LINEAR else "cubic"
    # As in PyTorch, a size that stays is left alone, whatever its factor, but in bicubic mode.
    moved = [
        d
        for d in reversed(range(n))
        if sizes[d] != input.shape[2 + d]
        or not (kind == "linear" or antialias or scales[d] in (None, 1.0))
    ]
    if not moved:
        return input.clone()
    if input.dtype is clew.uint8 and n == 2:
        each = [
            (d, (sizes[d], input.shape[2 + d], scales[d], corners, kind, antialias)) for d in moved
        ]
        return _resample_bytes(input, each, last)
    # 16-bit images are resampled in float32, and rounded once.
    # So are bytes, whose results are cut off at 0 and 255.
    narrow = input.dtype in (clew.float16, clew.bfloat16, clew.uint8)
    out = input.float() if narrow else input
    out = out.movedim(1, -1) if last else out
    first = 1 if last else 2
    for d in moved:
        terms = _terms(sizes[d], input.shape[2 + d], scales[d], corners, kind, antialias, out.dtype)
        out = _resample(out, first + d, *terms)
    out = out.movedim(-1, 1) if last else out
    if input.dtype is clew.uint8:
        out = out.round().clamp(0, 255)
    return out.to(input.dtype) if narrow else out


@asks_classes
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> clew.Tensor:
    """Resizes the last dims of (N, C, ...).

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the wanted spatial size.
        scale_factor: or the factor to it.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
        align_corners: corner elements keep their values (linear and cubic modes).
        recompute_scale_factor: compute with the factor that follows from the rounded size.
        antialias: average where the size shrinks ("bilinear" and "bicubic").

    Returns:
        the resized tensor, (N, C, *size).

    Example:
        >>> x = clew.tensor([[[1., 2.]]])
        >>> clew.nn.functional.interpolate(x, scale_factor=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """
    if align_corners is not None:
        need_bools("interpolate", align_corners=align_corners)
    if mode == "nearest" and type(scale_factor) is int and input.is_contiguous():
        plain = size is None and align_corners is None and not antialias and scale_factor > 1
        views = _copies(input.shape, scale_factor) if plain else None
        if views is not None:
            return input.view(views[0]).expand(views[1]).contiguous().view(views[2])
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "interpolate: align_corners option can only be set with the interpolating modes: "
                f"linear | bilinear | bicubic | trilinear; got mode={mode!r}"
            )
    sizes, scales = _resized(input, size, scale_factor, recompute_scale_factor)
    _check_interpolated(input, sizes, mode, antialias)
    if mode == "area":
        return _AREA[len(sizes) - 1](input, sizes)
    # Channels that lie last stay last.
    last = not input.is_contiguous() and input.dim() > 3 and input.movedim(1, -1).is_contiguous()
    if mode in ("nearest", "nearest-exact"):
        return _nearest(input, sizes, scales, mode == "nearest-exact", last)
    return _blended(input, sizes, scales, mode, bool(align_corners), antialias, last)


@asks_classes
def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> clew.Tensor:
    """Old name of interpolate.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the wanted size, an int or one for each spatial dim.
        scale_factor: or the factor to it.
        mode: as in interpolate.
        align_corners: as in interpolate.

    Returns:
        (N, C, ...) of the wanted size.

    Example:
        >>> x = clew.tensor([[[1., 2.]]])
        >>> clew.nn.functional.upsample(x, scale_factor=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """
    warnings.warn("upsample is deprecated; use interpolate", stacklevel=user_level())
    return interpolate(input, size, scale_factor, mode, align_corners)


@asks_classes
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> clew.Tensor:
    """interpolate with mode "nearest".

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the wanted size, an int or one for each spatial dim.
        scale_factor: or the factor to it.

    Returns:
        (N, C, ...) of the wanted size.

    Example:
        >>> x = clew.tensor([[[1., 2.]]])
        >>> clew.nn.functional.upsample_nearest(x, size=4).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """
    warnings.warn("upsample_nearest is deprecated; use interpolate", stacklevel=user_level())
    return interpolate(input, size, scale_factor, "nearest")


@asks_classes
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> clew.Tensor:
    """interpolate with mode "bilinear" and aligned corners.

    Args:
        input: (N, C, H, W).
        size: the wanted size, an int or (H, W).
        scale_factor: or the factor to it.

    Returns:
        (N, C, H, W) of the wanted size.

    Example:
        >>> x = clew.tensor([[[[0., 2.]]]])
        >>> clew.nn.functional.upsample_bilinear(x, size=(1, 3)).tolist()
        [[[[0.0, 1.0, 2.0]]]]
    """
    warnings.warn("upsample_bilinear is deprecated; use interpolate", stacklevel=user_level())
    return interpolate(input, size, scale_factor, "bilinear", True)


__all__ = [
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
