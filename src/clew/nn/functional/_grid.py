"""affine_grid and grid_sample: an image read at places that a grid names."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._ops.twofold import twofold

from ._core import private
from ._vision import cubic_weights

_gather_weighted = private("_gather_weighted")
_sample = private("_grid_sample")
_sample_input_grad = private("_grid_sample_input_grad")
_sample_grid_grad = private("_grid_sample_grid_grad")


@asks_classes
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> clew.Tensor:
    """The sampling places of an affine map, for grid_sample: theta times (x, y[, z], 1).

    Jaderberg and others, Spatial Transformer Networks, 2015, section 3.2.

    Args:
        theta: (N, 2, 3) or (N, 3, 4) matrices, floating point.
        size: the output's size, (N, C, H, W) or (N, C, D, H, W).
        align_corners: -1 and 1 are the centers of the corner elements, not their outer edges.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3), of theta's dtype.

    Example:
        >>> same = clew.tensor([[[1., 0., 0.], [0., 1., 0.]]])
        >>> clew.nn.functional.affine_grid(same, (1, 1, 1, 2), align_corners=True).tolist()
        [[[[-1.0, 0.0], [1.0, 0.0]]]]
    """
    if align_corners is not None:
        need_bools("affine_grid", align_corners=align_corners)
    if align_corners is None:
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            "respectively."
            f" Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. "
            f"Got {tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    axes = []
    for d in range(n):
        s = size[2 + d]
        if s <= 1:
            line = clew.zeros(s, dtype=theta.dtype)
        else:
            line = clew.linspace(-1, 1, s, dtype=theta.dtype)
            if not align_corners:
                line = line * (s - 1) / s  # rounded as in PyTorch: identity maps lie at kinks
        shape = [1] * n
        shape[d] = s
        axes.append(line.reshape(shape).expand(*size[2:]))
    base = clew.stack([*reversed(axes), clew.ones(*size[2:], dtype=theta.dtype)], -1)
    places = base.reshape(1, -1, n + 1) @ theta.transpose(1, 2)
    return places.reshape(size[0], *size[2:], n)


def _unnormalised(x: Any, size: int, align: bool) -> Any:
    return (x + 1) * ((size - 1) / 2) if align else ((x + 1) * size - 1) / 2


def _reflected(x: Any, twice_low: int, twice_high: int) -> Any:
    if twice_low == twice_high:
        return x * 0
    low = twice_low / 2
    span = (twice_high - twice_low) / 2
    x = (x - low).abs()
    with clew.no_grad():
        flips = (x / span).floor()
    extra = x - flips * span
    return clew.where(flips % 2 == 0, extra + low, span - extra + low)


def _placed(x: Any, size: int, padding_mode: str, align: bool) -> Any:
    if padding_mode == "border":
        return x.clamp(0, size - 1)
    if padding_mode == "reflection":
        x = _reflected(x, 0, 2 * (size - 1)) if align else _reflected(x, -1, 2 * size - 1)
        return x.clamp(0, size - 1)
    return x


@asks_classes
@in_float32
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> clew.Tensor:
    """Samples images at given places.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W), floating point.
        grid: (N, ..., 2) or (N, ..., 3): places (x, y[, z]) in [-1, 1], of input's dtype.
        mode: "bilinear" (trilinear for volumes), "nearest" or "bicubic".
        padding_mode: what lies outside: "zeros", "border" or "reflection".
        align_corners: -1 and 1 are the centers of the corner elements, not their outer edges.

    Returns:
        (N, C, ...): the samples.

    Example:
        >>> image = clew.arange(4.0).reshape(1, 1, 2, 2)
        >>> middle = clew.zeros(1, 1, 1, 2)
        >>> clew.nn.functional.grid_sample(image, middle, align_corners=False).item()
        1.5
    """
    if align_corners is not None:
        need_bools("grid_sample", align_corners=align_corners)
    if mode not in _GRID_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    align = bool(align_corners)
    shape, places = input.shape, grid.shape
    n = len(shape) - 2
    if n not in (2, 3) or len(places) != n + 2:
        raise RuntimeError(
            f"grid_sample: input and grid must both be 4-d or both 5-d; got {tuple(shape)} "
            f"and {tuple(places)}"
        )
    if places[0] != shape[0] or places[-1] != n:
        raise RuntimeError(
            f"grid_sample: grid must have input's batch size and a last dim of {n}; got "
            f"{tuple(shape)} and {tuple(places)}"
        )
    if mode == "bicubic" and n == 3:
        raise RuntimeError("grid_sample(): bicubic interpolation only supports 4D input")
    spatial = shape[2:]
    if 0 in spatial:
        raise RuntimeError("grid_sample: input must have non-empty spatial dims")
    dtype = input.dtype
    if dtype is not grid.dtype:
        raise RuntimeError(
            "grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{dtype} and grid has {grid.dtype}"
        )
    if dtype in _HALF:
        wide = grid_sample(input.float(), grid.float(), mode, padding_mode, align_corners)
        return wide.to(dtype)
    if math.prod(spatial) >= 1 << 31:  # more than the native form's indices hold
        return _composed_samples(input, grid, mode, padding_mode, align)
    return _samples(input, grid, mode, padding_mode, align)


def _composed_samples(input: Any, grid: Any, mode: str, padding_mode: str, align: bool) -> Any:
    n = grid.shape[-1]
    spatial = [int(s) for s in input.shape[2:]]
    batch, channels = input.shape[0], input.shape[1]
    # Dims come first to last, as in input; the grid lists them last first.
    taps = []
    for d, size in enumerate(spatial):
        coords = _unnormalised(grid[..., n - 1 - d], size, align)
        coords = coords.flatten(1).unsqueeze(1)
        # As in PyTorch: a volume's place at infinity is outside, an image's at no distance.
        beyond = 0.0 if n == 2 else math.inf
        taps.append(_taps(coords, size, mode, padding_mode, align, beyond))
    index, weight = taps[0]
    for size, (at, part) in zip(spatial[1:], taps[1:], strict=True):
        # Combines each place along this dim with each along the dims before.
        index = (index.unsqueeze(2) * size + at.unsqueeze(1)).flatten(1, 2)
        weight = (weight.unsqueeze(2) * part.unsqueeze(1)).flatten(1, 2)
    out = _gather_weighted(input.flatten(2), index, weight)
    return out.reshape(batch, channels, *grid.shape[1:-1])


_HALF = (_dtypes.float16, _dtypes.bfloat16)
_GRID_MODES, _GRID_PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _native_samples(input: Any, grid: Any, mode: str, padding_mode: str, align: bool) -> tuple[Any]:
    kind, padding = _GRID_MODES.index(mode), _GRID_PADDINGS.index(padding_mode)
    return (_sample(input, grid, kind, padding, align),)


def _native_samples_gradient(
    grad: Any, _: Any, args: list[Any], wanted: tuple[bool, ...]
) -> tuple[Any, ...]:
    input, grid, mode, padding_mode, align = args
    given = grad, input, grid, _GRID_MODES.index(mode), _GRID_PADDINGS.index(padding_mode), align
    return (
        _sample_input_grad(*given) if wanted[0] else None,
        _sample_grid_grad(*given) if wanted[1] else None,
        *(None,) * 3,
    )


_samples = twofold(
    "GridSampler",
    native=_native_samples,
    gradient=_native_samples_gradient,
    composed=_composed_samples,
)


# An index so far below 0 that no other dim's makes up for it; float32 holds it.
_NOWHERE = -(2.0**36)


def _taps(
    coords: Any, size: int, mode: str, padding_mode: str, align: bool, beyond: float
) -> tuple[Any, Any]:
    """The places along one dim that a sample is made of, and their weights; coords (N, 1, P)."""
    if mode != "bicubic" and padding_mode != "zeros":
        coords = _placed(coords, size, padding_mode, align)
        coords = coords.nan_to_num(0.0, math.inf, -math.inf)  # as in PyTorch
    if mode == "nearest":
        at = coords.detach().round()
        weight = clew.where(clew.zeros((), dtype=clew.bool), coords, 1.0)  # its gradient is zero
    else:
        low = coords.detach().floor()
        part = coords - low
        if mode == "bilinear":
            at, weight = clew.cat([low, low + 1], 1), clew.cat([1 - part, part], 1)
        else:
            at = low + clew.tensor([[-1.0], [0.0], [1.0], [2.0]], dtype=low.dtype)
            at, weight = (
                _placed(at, size, padding_mode, align),
                clew.cat(cubic_weights(part, -0.75), 1),
            )
        at = at.nan_to_num(0.0, beyond, -beyond)  # the weight is NaN
    inside = (at >= 0) & (at <= size - 1)
    return clew.where(inside, at, _NOWHERE).to(clew.int64), weight


__all__ = ["affine_grid", "grid_sample"]
