"""The Fourier transform extension of the standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import clew
from clew import Tensor

Norm = Literal["backward", "ortho", "forward"]


def _line(name: str, doc: str, given: str, result: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Tensor:
        return getattr(clew.fft, name)(x, n, axis, norm)

    args = """n: how many elements of the axis are transformed, with zeros behind fewer; None for
            all. Of `irfft` and `hfft`, how many the result has: 2 (m - 1) of m elements if None.
        axis: the axis."""
    return _named(function, name, doc, args, given, result)


def _grid(name: str, doc: str, given: str, result: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor:
        return getattr(clew.fft, name)(x, s, axes, norm)

    args = """s: as `n` of `fft`, for each axis.
        axes: the axes; all, or the last ones for which `s` has sizes, if None."""
    return _named(function, name, doc, args, given, result)


def _named(function: Any, name: str, doc: str, args: str, given: str, result: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    Args:
        x: an array of numbers.
        {args}
        norm: "backward" divides the inverse by the number of elements, "forward" the transform,
            "ortho" both by its root.

    >>> clew.array_api.fft.{name}(clew.tensor({given}))
    tensor({result})
    """
    return function


fft = _line(
    "fft",
    "The discrete Fourier transform along an axis.",
    "[1.0, 2.0, 3.0, 4.0]",
    "[10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j]",
)
ifft = _line(
    "ifft",
    "The inverse of `fft`.",
    "[10.0, -2 + 2j, -2.0, -2 - 2j]",
    "[1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j]",
)
rfft = _line(
    "rfft",
    "The half of `fft` of real numbers that is not redundant.",
    "[1.0, 2.0, 3.0, 4.0]",
    "[10.+0.j, -2.+2.j, -2.+0.j]",
)
irfft = _line("irfft", "The inverse of `rfft`.", "[10.0, -2 + 2j, -2.0]", "[1., 2., 3., 4.]")
hfft = _line(
    "hfft",
    "The transform of a signal with Hermitian symmetry, of which half is given.",
    "[1.0, 2j, 0.0]",
    "[ 1.,  5.,  1., -3.]",
)
ihfft = _line(
    "ihfft",
    "The inverse of `hfft`.",
    "[2.0, -3.0, 1.0, 5.0]",
    "[1.2500-0.j, 0.2500-2.j, 0.2500-0.j]",
)
fftn = _grid(
    "fftn",
    "The discrete Fourier transform along several axes.",
    "[[1.0, 2.0], [3.0, 4.0]]",
    """[[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]]""",
)
ifftn = _grid(
    "ifftn",
    "The inverse of `fftn`.",
    "[[4 + 4j, 0.0], [0.0, 0.0]]",
    """[[1.+1.j, 1.+1.j],
            [1.+1.j, 1.+1.j]]""",
)
rfftn = _grid(
    "rfftn",
    "The half of `fftn` of real numbers that is not redundant.",
    "[[1.0, 2.0], [3.0, 4.0]]",
    """[[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]]""",
)
irfftn = _grid(
    "irfftn",
    "The inverse of `rfftn`.",
    "[[10 + 0j, -2.0], [-4.0, 0.0]]",
    """[[1., 2.],
            [3., 4.]]""",
)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the `n` results of `fft`, in cycles per unit of `d`.

    Args:
        n: how many there are.
        d: the distance between samples.
        dtype: the default floating dtype if None.
        device: where it lies.

    >>> clew.array_api.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return clew.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: clew.dtype | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the results of `rfft` of `n` numbers, in cycles per unit of `d`.

    Args:
        n: how many numbers there are.
        d: the distance between samples.
        dtype: the default floating dtype if None.
        device: where it lies.

    >>> clew.array_api.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return clew.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency zero moved to the middle of the axes.

    Args:
        x: an array.
        axes: the axis or axes; None for all.

    >>> clew.array_api.fft.fftshift(clew.tensor([0, 1, -2, -1]))
    tensor([-2, -1,  0,  1])
    """
    return clew.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Args:
        x: an array.
        axes: the axis or axes; None for all.

    >>> clew.array_api.fft.ifftshift(clew.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
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
