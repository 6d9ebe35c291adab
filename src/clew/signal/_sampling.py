"""The formulas of window functions, and tensors of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import _C
from clew._base.overriding import modes_are_on
from clew._C import Tensor

__all__ = ["bartlett_points", "cosines", "kaiser_points", "made", "need_numbers"]


def made(
    f: Callable[[np.ndarray, int], np.ndarray],
    length: int,
    last: int,
    dtype: _C.dtype,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    """The tensor of f(0 ... length - 1, last), computed in double precision."""
    window = _C.empty(length, dtype=dtype, device=device, pin_memory=pin_memory)
    if length and not window.is_meta:
        window.copy_(_C.from_numpy(f(np.arange(length, dtype=np.float64), last)))
    return window.requires_grad_() if requires_grad else window


def need_numbers(name: str, **parameters: Any) -> None:
    """Raises a TypeError for a parameter that is not a number."""
    for key, value in parameters.items():
        if not isinstance(value, (int, float)) and not (
            isinstance(value, Tensor) and value.ndim == 0
        ):
            raise TypeError(f"{name}(): argument '{key}' must be float, not {type(value).__name__}")


def cosines(k: np.ndarray, last: int, a: Any) -> np.ndarray:
    """sum_i (-1)^i a_i cos(2 pi i k / last)"""
    if last < 1:
        return np.ones(len(k))
    total = np.full(len(k), float(a[0]))
    for i, w in enumerate(a[1:], start=1):
        total += (-1) ** i * float(w) * np.cos(2 * np.pi * i * k / last)
    return total


def kaiser_points(k: np.ndarray, last: int, beta: float, dtype: _C.dtype | None) -> np.ndarray:
    """A Kaiser window's values at the places k of 0 to last, as exact as the dtype needs."""
    if last < 1:
        return np.ones(len(k))
    x = 2 * k / last - 1
    at = beta * np.sqrt(np.maximum(1 - x * x, 0))
    if (dtype or _C.get_default_dtype()) is _C.float64 or modes_are_on():
        return np.i0(at) / np.i0(beta)
    # The core's takes a tenth of the time, and is exact to 14 digits; modes would be shown it.
    i0 = _C.functions["special.i0"]
    return i0(_C.from_numpy(at)).numpy() / i0(_C.tensor(float(beta), dtype=_C.float64)).item()


def bartlett_points(k: np.ndarray, last: int) -> np.ndarray:
    """A triangle's values at the places k of 0 to last."""
    return 1 - np.abs(2 * k / last - 1) if last else np.ones_like(k)
