"""Random tensors for tests."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any,
    dtype: clew.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: clew.memory_format | None = None,
) -> Tensor:
    """A tensor with elements drawn evenly from [low, high).

    Args:
        shape: the size, as integers or one sequence.
        dtype: of the elements.
        device: where it lives.
        low: -9, or 0 for bool and unsigned dtypes, by default; at least what the dtype holds.
        high: 10 for integers, 2 for bool, 9 otherwise by default; at most what the dtype holds.
        requires_grad: record operations on it.
        noncontiguous: leave out every other element of a larger tensor.
        exclude_zero: put 1 (or the smallest normal number) in place of zeros.
        memory_format: how the elements lie; not together with noncontiguous.

    Returns: the tensor.

    >>> t = clew.testing.make_tensor((2, 3), dtype=clew.int64, device="cpu", low=0, high=5)
    >>> bool(((t >= 0) & (t < 5)).all())
    True
    """
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor: noncontiguous and memory_format exclude each other; got "
            f"memory_format={memory_format}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"make_tensor: requires_grad needs a floating point or complex dtype; got {dtype}"
        )
    exact = not (dtype.is_floating_point or dtype.is_complex)
    floor, ceiling = _bounds(dtype)
    if dtype is clew.bool:
        default = (0, 2)
    elif exact:
        default = (-9 if dtype.is_signed else 0, 10)
    else:
        default = (-9, 9)
    first, last = default[0] if low is None else low, default[1] if high is None else high
    for name, given in (("low", first), ("high", last)):
        if isinstance(given, float) and math.isnan(given):
            raise ValueError(f"make_tensor: {name} must not be NaN")
    if first > last or (exact and first >= last):
        raise ValueError(f"make_tensor: low must be less than high; got {first} and {last}")
    first = min(max(first, floor), ceiling)
    last = max(min(last, ceiling + 1 if exact else ceiling), floor)
    if exact:
        first, last = math.ceil(first), math.ceil(last)
    drawn = (*size[:-1], 2 * size[-1]) if noncontiguous and size and math.prod(size) > 1 else size
    result = _draw(drawn, dtype, device, first, last)
    if drawn is not size:
        result = result[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        least: Any = 1
        if not exact:
            tiny = clew.finfo(dtype).tiny
            least = complex(tiny, tiny) if dtype.is_complex else tiny
        result[result == 0] = least
    return result.requires_grad_() if requires_grad else result


def _bounds(dtype: clew.dtype) -> tuple[Any, Any]:
    if dtype is clew.bool:
        return 0, 1
    if dtype.is_floating_point or dtype.is_complex:
        return clew.finfo(dtype).min, clew.finfo(dtype).max
    return clew.iinfo(dtype).min, clew.iinfo(dtype).max


def _draw(size: tuple[int, ...], dtype: clew.dtype, device: Any, low: Any, high: Any) -> Tensor:
    if dtype.is_complex:
        real = clew.float32 if dtype is clew.complex64 else clew.float64
        parts = [_draw(size, real, device, low, high) for _ in range(2)]
        return clew.complex(parts[0], parts[1])
    if not dtype.is_floating_point:
        return clew.randint(low, high, size, device=device).to(dtype)
    if high - low > clew.finfo(clew.float32).max or dtype is clew.float64:
        # Halves, since the width itself may be more than the dtype holds.
        wide = clew.rand(size, dtype=clew.float64, device=device)
        return (low * (1 - wide) + high * wide).to(dtype)
    return clew.empty(size, dtype=dtype, device=device).uniform_(low, high)
