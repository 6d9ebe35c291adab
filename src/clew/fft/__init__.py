"""Discrete Fourier transforms, computed by SciPy when it is installed and by NumPy otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import _namespace
from clew.fft._frequency import (
    fftfreq,
    fftshift,
    ifftshift,
    rfftfreq,
)
from clew.fft._grid import (
    fft2,
    fftn,
    hfft2,
    hfftn,
    ifft2,
    ifftn,
    ihfft2,
    ihfftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)
from clew.fft._line import (
    fft,
    hfft,
    ifft,
    ihfft,
    irfft,
    rfft,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
