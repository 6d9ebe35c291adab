"""Window functions. ``sym=True`` gives symmetric windows, for filter design; ``sym=False`` periodic
ones, for spectra: a symmetric window of M + 1 points without the last.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clew import _C, _namespace
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_int
from clew._C import Tensor
from clew.signal._sampling import bartlett_points, cosines, kaiser_points, made, need_numbers

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _sampled(
    name: str,
    f: Callable[[np.ndarray, int], np.ndarray],
    M: Any,
    sym: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """A window of f(k, last); ``last`` is the index of the end, which a periodic window lacks."""
    M = need_int(name, "M", M)
    if not isinstance(sym, bool):
        raise TypeError(f"{name}(): argument 'sym' must be bool, not {type(sym).__name__}")
    if M < 0:
        raise ValueError(f"{name}: requires non-negative window length; got M={M}")
    if layout not in (None, _dtypes.strided):
        raise ValueError(f"{name}: is implemented for strided tensors only; got {layout}")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name}: expects float32 or float64 dtypes; got {dtype}")
    return made(f, M, M - 1 if sym or M <= 1 else M, dtype, device, False, requires_grad)


class _Window(Protocol):
    """A window function without parameters of its own."""

    def __call__(
        self,
        M: int,
        *,
        sym: bool = True,
        dtype: _C.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor: ...


_SHARED = """
Args:
    M: number of points.
    sym: symmetric if True, else periodic.
    dtype: float32 or float64; the default dtype when not given.
    layout: strided.
    device: where the result is to be.
    requires_grad: whether it asks for a gradient.

Returns:
    A tensor of M points.

Example:"""


def _window(points: Callable[[np.ndarray, int], np.ndarray]) -> _Window:
    """The window function of a formula f(k, last), whose name and docstring it takes over."""
    name = points.__name__

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: _C.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _sampled(name, points, M, sym, dtype, layout, device, requires_grad)

    window.__name__ = window.__qualname__ = name
    if points.__doc__:  # python -OO leaves none
        window.__doc__ = inspect.cleandoc(points.__doc__).replace("\nExample:", _SHARED)
    return window


@_window
def bartlett(k: np.ndarray, last: int) -> np.ndarray:
    """A triangle: w[k] = 1 - |2 k / (M - 1) - 1|.

    Example:
        >>> clew.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return bartlett_points(k, last)


@_window
def blackman(k: np.ndarray, last: int) -> np.ndarray:
    """Blackman's sum of cosines with the weights 0.42, 0.5 and 0.08.

    Example:
        >>> clew.signal.windows.blackman(3, sym=False)[1:]
        tensor([0.6300, 0.6300])
    """
    return cosines(k, last, (0.42, 0.5, 0.08))


@_window
def cosine(k: np.ndarray, last: int) -> np.ndarray:
    """Half a sine wave: w[k] = sin(pi (k + 1/2) / M).

    Example:
        >>> clew.signal.windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])
    """
    return np.sin(np.pi * (k + 0.5) / (last + 1))


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Falls off exponentially: w[k] = exp(-|k - center| / tau).

    Args:
        M: number of points.
        center: where the peak is; only with sym=False. The middle when not given.
        tau: how slowly it falls off.
        sym: symmetric if True, else periodic.
        dtype: float32 or float64; the default dtype when not given.
        layout: strided.
        device: where the result is to be.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of M points.

    Example:
        >>> clew.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    need_numbers("exponential", tau=tau, **({} if center is None else {"center": center}))
    if tau <= 0:
        raise ValueError(f"exponential: tau must be positive; got {tau}")
    if sym and center is not None:
        raise ValueError(f"exponential: center must be None for symmetric windows; got {center}")
    return _sampled(
        "exponential",
        lambda k, last: np.exp(-np.abs(k - (last / 2 if center is None else center)) / tau),
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
    )


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The bell curve: w[k] = exp(-((k - (M - 1) / 2) / std)^2 / 2).

    Args:
        M: number of points.
        std: its width.
        sym: symmetric if True, else periodic.
        dtype: float32 or float64; the default dtype when not given.
        layout: strided.
        device: where the result is to be.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of M points.

    Example:
        >>> clew.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    need_numbers("gaussian", std=std)
    if std <= 0:
        raise ValueError(f"gaussian: std must be positive; got {std}")
    return _sampled(
        "gaussian",
        lambda k, last: np.exp(-(((k - last / 2) / std) ** 2) / 2),
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
    )


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines: w[k] = sum_i (-1)^i a[i] cos(2 pi i k / (M - 1)).

    Args:
        M: number of points.
        a: the weights.
        sym: symmetric if True, else periodic.
        dtype: float32 or float64; the default dtype when not given.
        layout: strided.
        device: where the result is to be.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of M points.

    Example:
        >>> clew.signal.windows.general_cosine(5, a=(0.5, 0.5))
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, Iterable):
        raise TypeError(f"general_cosine(): argument 'a' must be a list or tuple; got {a!r}")
    weights = list(a)
    need_numbers("general_cosine", **{f"a[{i}]": w for i, w in enumerate(weights)})
    if not weights:
        raise ValueError("general_cosine: at least one coefficient is needed")
    return _sampled(
        "general_cosine",
        lambda k, last: cosines(k, last, weights),
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
    )


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A raised cosine: w[k] = alpha - (1 - alpha) cos(2 pi k / (M - 1)).

    Args:
        M: number of points.
        alpha: the height of the middle of the wave.
        sym: symmetric if True, else periodic.
        dtype: float32 or float64; the default dtype when not given.
        layout: strided.
        device: where the result is to be.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of M points.

    Example:
        >>> clew.signal.windows.general_hamming(5, alpha=0.5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    need_numbers("general_hamming", alpha=alpha)
    return _sampled(
        "general_hamming",
        lambda k, last: cosines(k, last, (alpha, 1 - alpha)),
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
    )


@_window
def hamming(k: np.ndarray, last: int) -> np.ndarray:
    """Hamming's raised cosine: w[k] = 0.54 - 0.46 cos(2 pi k / (M - 1)).

    Example:
        >>> clew.signal.windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])
    """
    return cosines(k, last, (0.54, 0.46))


@_window
def hann(k: np.ndarray, last: int) -> np.ndarray:
    """Hann's raised cosine: w[k] = (1 - cos(2 pi k / (M - 1))) / 2.

    Example:
        >>> clew.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return cosines(k, last, (0.5, 0.5))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window: w[k] = I0(beta sqrt(1 - (2 k / (M - 1) - 1)^2)) / I0(beta).

    Args:
        M: number of points.
        beta: the larger, the narrower.
        sym: symmetric if True, else periodic.
        dtype: float32 or float64; the default dtype when not given.
        layout: strided.
        device: where the result is to be.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of M points.

    Example:
        >>> clew.signal.windows.kaiser(3)
        tensor([5.2773e-05, 1.0000e+00, 5.2773e-05])
    """
    need_numbers("kaiser", beta=beta)
    if beta < 0:
        raise ValueError(f"kaiser: beta must not be negative; got {beta}")
    return _sampled(
        "kaiser",
        lambda k, last: kaiser_points(k, last, beta, dtype),
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
    )


@_window
def nuttall(k: np.ndarray, last: int) -> np.ndarray:
    """Nuttall's sum of four cosines, with small side lobes.

    Example:
        >>> clew.signal.windows.nuttall(3)
        tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return cosines(k, last, (0.3635819, 0.4891775, 0.1365995, 0.0106411))


if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
