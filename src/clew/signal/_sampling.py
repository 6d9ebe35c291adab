"""The formulas of window functions, and tensors of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import _C
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
    if window.device.type != "meta":
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
        return np.ones_like(k)
    terms = [(-1) ** i * w * np.cos(2 * np.pi * i * k / last) for i, w in enumerate(a)]
    return np.sum(terms, axis=0)


def kaiser_points(k: np.ndarray, last: int, beta: float) -> np.ndarray:
    """A Kaiser window's values at the places k of 0 to last."""
    x = 2 * k / last - 1 if last else 0 * k
    return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)


def bartlett_points(k: np.ndarray, last: int) -> np.ndarray:
    """A triangle's values at the places k of 0 to last."""
    return 1 - np.abs(2 * k / last - 1) if last else np.ones_like(k)
