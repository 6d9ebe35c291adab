"""The Fourier transform extension of the standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import clew
from clew import Tensor

Norm = Literal["backward", "ortho", "forward"]


def _line(name: str, doc: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Tensor:
        return getattr(clew.fft, name)(x, n, axis, norm)

    return _named(function, name, doc)


def _grid(name: str, doc: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor:
        return getattr(clew.fft, name)(x, s, axes, norm)

    return _named(function, name, doc)


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


fft = _line("fft", "The discrete Fourier transform along an axis.")
ifft = _line("ifft", "The inverse of `fft`.")
rfft = _line("rfft", "The half of `fft` of real numbers that is not redundant.")
irfft = _line("irfft", "The inverse of `rfft`.")
hfft = _line("hfft", "The transform of a signal with Hermitian symmetry, of which half is given.")
ihfft = _line("ihfft", "The inverse of `hfft`.")
fftn = _grid("fftn", "The discrete Fourier transform along several axes.")
ifftn = _grid("ifftn", "The inverse of `fftn`.")
rfftn = _grid("rfftn", "The half of `fftn` of real numbers that is not redundant.")
irfftn = _grid("irfftn", "The inverse of `rfftn`.")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the `n` results of `fft`.

    >>> clew.array_api.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return clew.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the results of `rfft` of `n` numbers."""
    return clew.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency zero moved to the middle of the axes."""
    return clew.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return clew.fft.ifftshift(x, axes)


__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]
