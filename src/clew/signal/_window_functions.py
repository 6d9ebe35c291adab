"""The older names of five windows, at the package's top level; periodic unless told otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_int
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew.signal._sampling import bartlett_points, cosines, kaiser_points, made, need_numbers

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]


def _sampled(
    name: str,
    f: Callable[[np.ndarray, int], np.ndarray],
    length: Any,
    periodic: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    length = need_int(name, "window_length", length)
    need_bools(name, periodic=periodic, requires_grad=requires_grad)
    if length < 0:
        raise RuntimeError(
            f"{name}: requires non-negative window_length; got window_length={length}"
        )
    if layout not in (None, _dtypes.strided):
        raise RuntimeError(f"{name}: is not implemented for sparse types; got {layout}")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"{name}(): argument 'dtype' must be dtype, not {type(dtype).__name__}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name}: expects floating point dtypes; got {dtype}")
    last = length - (length <= 1 or not periodic)
    return made(f, length, last, dtype, device, pin_memory, requires_grad)


class _Window(Protocol):
    """A window function without parameters of its own."""

    def __call__(
        self,
        window_length: int,
        periodic: bool = True,
        *,
        dtype: _C.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor: ...


_SHARED = """
Args:
    window_length: number of points.
    periodic: whether the next period's first point would follow the last; else the window is
        symmetric.
    dtype: a floating point type.
    layout: strided.
    device: where the result is to be.
    pin_memory: as in clew.tensor.
    requires_grad: whether the result asks for a gradient.

Returns:
    A tensor of window_length points.

Example:"""


def _window(points: Callable[[np.ndarray, int], np.ndarray]) -> _Window:
    """The window function of a formula f(k, last), whose name and docstring it takes over."""
    name = points.__name__

    def window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: _C.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        return _sampled(
            name, points, window_length, periodic, dtype, layout, device, pin_memory, requires_grad
        )

    window.__name__ = window.__qualname__ = name
    if points.__doc__:  # python -OO leaves none
        window.__doc__ = inspect.cleandoc(points.__doc__).replace("\nExample:", _SHARED)
    return asks_classes(window)


@_window
def bartlett_window(k: np.ndarray, last: int) -> np.ndarray:
    """A triangle: w[k] = 1 - |2 k / n - 1| with n intervals.

    Example:
        >>> clew.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return bartlett_points(k, last)


@_window
def blackman_window(k: np.ndarray, last: int) -> np.ndarray:
    """Blackman's window: w[k] = 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n).

    Example:
        >>> clew.blackman_window(3)[1:]
        tensor([0.6300, 0.6300])
    """
    return cosines(k, last, (0.42, 0.5, 0.08))


@asks_classes
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Hamming's window: w[k] = alpha - beta cos(2 pi k / n).

    Args:
        window_length: number of points.
        periodic: whether the next period's first point would follow the last; else the window is
            symmetric.
        alpha: the constant's weight.
        beta: the cosine's weight.
        dtype: a floating point type.
        layout: strided.
        device: where the result is to be.
        pin_memory: as in clew.tensor.
        requires_grad: whether the result asks for a gradient.

    Returns:
        A tensor of window_length points.

    Example:
        >>> clew.hamming_window(2)
        tensor([0.0800, 1.0000])
    """
    need_numbers("hamming_window", alpha=alpha, beta=beta)
    return _sampled(
        "hamming_window",
        lambda k, last: cosines(k, last, (alpha, beta)),
        window_length,
        periodic,
        dtype,
        layout,
        device,
        pin_memory,
        requires_grad,
    )


@_window
def hann_window(k: np.ndarray, last: int) -> np.ndarray:
    """Hann's window: w[k] = (1 - cos(2 pi k / n)) / 2.

    Example:
        >>> clew.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return cosines(k, last, (0.5, 0.5))


@asks_classes
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window: w[k] = I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta).

    Args:
        window_length: number of points.
        periodic: whether the next period's first point would follow the last; else the window is
            symmetric.
        beta: the larger, the narrower.
        dtype: a floating point type.
        layout: strided.
        device: where the result is to be.
        pin_memory: as in clew.tensor.
        requires_grad: whether the result asks for a gradient.

    Returns:
        A tensor of window_length points.

    Example:
        >>> clew.kaiser_window(2)
        tensor([5.2773e-05, 1.0000e+00])
    """
    need_numbers("kaiser_window", beta=beta)
    return _sampled(
        "kaiser_window",
        lambda k, last: kaiser_points(k, last, float(beta), dtype),
        window_length,
        periodic,
        dtype,
        layout,
        device,
        pin_memory,
        requires_grad,
    )
