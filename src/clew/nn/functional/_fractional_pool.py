"""Fractional max pooling: windows whose starts are drawn, of steps between two whole numbers."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes

from ._pool import _describe, _tuple


def _fractional(n: int) -> Any:
    name = f"fractional_max_pool{n}d"

    def fractional_max_pool(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        """Max pooling over {last} with windows that start at random places.

        Graham, Fractional max-pooling, 2014: the distances of windows are random, their mean is
        (size - kernel_size) / (output_size - 1).

        Args:
            input: (N, C, {space}) or (C, {space}).
            kernel_size: the window's size, an int or one for each dim.
            output_size: the size wanted, an int or one for each dim; or give output_ratio.
            output_ratio: the output's size over the input's, a number or one for each dim.
            return_indices: also return where the values lie.
            _random_samples: (N, C, {n}) numbers in [0, 1) that choose the places; drawn if None.

        Returns:
            (N, C, {out}) or (C, {out});
            with return_indices a pair of them, the second the int64 places within {last} taken
            as one.

        Raises:
            ValueError: if neither output_size nor output_ratio is given.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> clew.nn.functional.fractional_max_pool{n}d(x, 2, {two}).flatten().tolist()
            {best}
        """
        values, indices = _of_fractions(
            name, n, input, kernel_size, output_size, output_ratio, _random_samples
        )
        return (values, indices) if return_indices else values

    def fractional_with_indices(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        """fractional_max_pool{n}d that always returns (values, indices).

        Args:
            input: (N, C, {space}) or (C, {space}).
            kernel_size: the window's size, an int or one for each dim.
            output_size: the size wanted, an int or one for each dim; or give output_ratio.
            output_ratio: the output's size over the input's, a number or one for each dim.
            return_indices: not used.
            _random_samples: (N, C, {n}) numbers in [0, 1) that choose the places; drawn if None.

        Returns:
            (values, indices), each (N, C, {out}) or (C, {out});
            indices are int64 places within {last} taken as one.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> y, at = clew.nn.functional.fractional_max_pool{n}d_with_indices(x, 2, {two})
            >>> at.flatten().tolist()
            {places}
        """
        return _of_fractions(
            name, n, input, kernel_size, output_size, output_ratio, _random_samples
        )

    _describe(fractional_max_pool, n, name)
    _describe(fractional_with_indices, n, name + "_with_indices")
    return fractional_max_pool, fractional_with_indices


def _of_fractions(
    name: str,
    n: int,
    input: Any,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Any,
) -> tuple[Any, Any]:
    """What fractional_max_pool{n}d returns with indices: checks, sizes, and samples if None."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: Expected {n + 1}D or {n + 2}D input; got {tuple(input.shape)}")
    spatial = [int(s) for s in input.shape[-n:]]
    if output_size is None:
        ratios = _tuple(output_ratio, n)
        sizes = [int(s * r) for s, r in zip(spatial, ratios, strict=True)]
    else:
        sizes = list(_tuple(output_size, n))
    kernel = _tuple(kernel_size, n)
    for s, o, k in zip(spatial, sizes, kernel, strict=True):
        if o + k - 1 > s or o < 1:
            raise RuntimeError(
                f"{name}: pool size {k} and output size {o} are too large for input size {s}"
            )
    batched = input.dim() == n + 2
    x = input if batched else input.unsqueeze(0)
    wanted = (x.shape[0], x.shape[1], n)
    if samples is None:
        samples = clew.rand(wanted, dtype=input.dtype)
    elif not batched:
        samples = samples[:1]
    if tuple(samples.shape) != wanted:
        raise RuntimeError(f"{name}: _random_samples must be {wanted}; got {tuple(samples.shape)}")
    values, indices = _greatest_of(x, samples, sizes, kernel)
    return (values, indices) if batched else (values.squeeze(0), indices.squeeze(0))


def _greatest_of(x: Any, random: Any, sizes: list[int], kernel: Any) -> tuple[Any, Any]:
    """The greatest values of windows that start at random places, and where they lie.

    Args:
        x: (N, C, sizes).
        random: (N, C, n) numbers that choose the places.
        sizes: of the result.
        kernel: the windows' sizes.
    """
    n = len(sizes)
    batch, channels = x.shape[:2]
    spatial = [int(s) for s in x.shape[2:]]
    flat = x.reshape(batch, channels, math.prod(spatial))
    place: Any = None
    # Window starts differ by sample and channel; images take the random numbers last dim first.
    for d in range(n):
        u = random[:, :, 1 - d if n == 2 else d].to(x.dtype)
        starts = _fraction_starts(u, spatial[d], sizes[d], kernel[d])
        span = starts.unsqueeze(-1) + clew.arange(kernel[d])
        place = span if place is None else _cross(place, span, spatial[d])
    size = math.prod(kernel)
    index = place.reshape(batch, channels, math.prod(sizes) * size)
    windows = flat.gather(2, index).reshape(*place.shape)
    # (B, C, o0, k0, o1, k1, ...) becomes (B, C, o0, o1, ..., k0, k1, ...).
    order = [0, 1, *range(2, 2 + 2 * n, 2), *range(3, 2 + 2 * n, 2)]
    windows, place = windows.permute(order), place.permute(order)
    windows = windows.reshape(batch, channels, *sizes, size)
    place = place.reshape(batch, channels, *sizes, size)
    values, best = windows.max(-1)
    return values, place.gather(-1, best.unsqueeze(-1)).squeeze(-1)


def _fraction_starts(u: Any, size: int, out: int, kernel: int) -> Any:
    last = size - kernel
    if out == 1:
        return clew.full((*u.shape, 1), last, dtype=clew.int64)
    # In the input's own precision, step by step: half a digit decides where a window starts.
    alpha = clew.tensor(last, dtype=u.dtype) / clew.tensor(out - 1, dtype=u.dtype)
    steps = clew.arange(out - 1).to(u.dtype)
    u = u.unsqueeze(-1)
    starts = ((steps + u) * alpha).to(clew.int64) - (u * alpha).to(clew.int64)
    end = clew.full((*u.shape[:-1], 1), last, dtype=clew.int64)
    return clew.cat([starts, end], -1)


def _cross(place: Any, span: Any, width: int) -> Any:
    # (B, C, ..., o, k) and (B, C, o', k') give (B, C, ..., o, k, o', k').
    place = place.reshape(*place.shape, 1, 1)
    shape = [span.shape[0], span.shape[1], *([1] * (place.dim() - 4)), *span.shape[2:]]
    return place * width + span.reshape(shape)


fractional_max_pool2d, fractional_max_pool2d_with_indices = (
    asks_classes(in_float32(pool)) for pool in _fractional(2)
)
fractional_max_pool3d, fractional_max_pool3d_with_indices = (
    asks_classes(in_float32(pool)) for pool in _fractional(3)
)


__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]
