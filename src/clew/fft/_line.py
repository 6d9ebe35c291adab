"""Transforms along one dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from clew._C import Tensor
from clew.fft._core import named, to_complex, to_half, to_real

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


class _Line(Protocol):
    """What the functions of this file are to type checkers."""

    def __call__(
        self,
        input: Tensor,
        n: int | None = None,
        dim: int = -1,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor: ...


_LENGTHS = {
    to_complex: "length of the transform; the input is cut, or padded with zeros, to it.",
    to_real: "length of the result; 2 * (m - 1) of m values when not given.",
}
_LENGTHS[to_half] = _LENGTHS[to_complex]
_RESULTS = {
    to_complex: "A complex tensor of input's shape, with n values along dim.",
    to_half: "A complex tensor of input's shape, with n // 2 + 1 values along dim.",
    to_real: "A real tensor of input's shape, with n values along dim.",
}


def _line(transform: Callable[..., Tensor], forward: bool) -> Callable[[Callable[[], None]], _Line]:
    """Makes a public function of its name and the part of its docstring that is its own."""

    def declare(own: Callable[[], None]) -> _Line:
        name = own.__name__

        def line(
            input: Tensor,
            n: int | None = None,
            dim: int = -1,
            norm: str | None = None,
            *,
            out: Tensor | None = None,
        ) -> Tensor:
            return transform(name, input, n, dim, norm, out, forward=forward, grid=False)

        args = {"n": _LENGTHS[transform], "dim": "the dim to transform."}
        return named(line, own, forward, args, _RESULTS[transform])

    return declare


@_line(to_complex, forward=True)
def fft() -> None:
    """The discrete Fourier transform: X[k] = sum_j x[j] exp(-2 pi i j k / n).

    Args:
        input: real or complex, of any shape with 1 or more dims.

    Example:
        >>> clew.fft.fft(clew.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """


@_line(to_complex, forward=False)
def ifft() -> None:
    """The inverse transform: x[j] = sum_k X[k] exp(2 pi i j k / n) / n.

    Args:
        input: real or complex, of any shape with 1 or more dims.

    Example:
        >>> clew.fft.ifft(clew.fft.fft(clew.tensor([1.0, 2.0, 3.0, 4.0]))).real
        tensor([1., 2., 3., 4.])
    """


@_line(to_half, forward=True)
def rfft() -> None:
    """The first n // 2 + 1 values of the transform of real values; the others mirror them.

    Args:
        input: real, of any shape with 1 or more dims.

    Example:
        >>> clew.fft.rfft(clew.tensor([1.0, 0.0, 0.0, 0.0]))
        tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """


@_line(to_real, forward=False)
def irfft() -> None:
    """The inverse of rfft: real values of the non-redundant half of their spectrum.

    Args:
        input: half a spectrum; imaginary parts that real values cannot have are ignored.

    Example:
        >>> clew.fft.irfft(clew.fft.rfft(clew.tensor([1.0, 2.0, 3.0])), n=3)
        tensor([1., 2., 3.])
    """


@_line(to_real, forward=True)
def hfft() -> None:
    """The real spectrum of a signal with Hermitian symmetry, of which half is given.

    Args:
        input: the first n // 2 + 1 values of the signal.

    Example:
        >>> clew.fft.hfft(clew.tensor([1.0, 0.0, 0.0]))
        tensor([1., 1., 1., 1.])
    """


@_line(to_half, forward=False)
def ihfft() -> None:
    """The inverse of hfft: the first half of the Hermitian signal with a real spectrum.

    Args:
        input: real, of any shape with 1 or more dims.

    Example:
        >>> clew.fft.ihfft(clew.tensor([4.0, 4.0, 4.0, 4.0])).real
        tensor([4., 0., 0.])
    """
