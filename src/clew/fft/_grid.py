"""Transforms along several dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from clew._C import Tensor
from clew.fft._core import named, to_complex, to_half, to_real

__all__ = [
    "fft2",
    "fftn",
    "hfft2",
    "hfftn",
    "ifft2",
    "ifftn",
    "ihfft2",
    "ihfftn",
    "irfft2",
    "irfftn",
    "rfft2",
    "rfftn",
]


class _Grid(Protocol):
    """What the functions of this file are to type checkers."""

    def __call__(
        self,
        input: Tensor,
        s: Any = None,
        dim: Any = ...,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor: ...


_LENGTHS = {
    to_complex: (
        "lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one."
    ),
    to_real: "lengths of the result; the last is 2 * (m - 1) of m values when not given.",
}
_LENGTHS[to_half] = _LENGTHS[to_complex]
_RESULTS = {
    to_complex: "A complex tensor of input's shape, with s values along dim.",
    to_half: (
        "A complex tensor of input's shape, with s values along dim; s[-1] // 2 + 1 along the last."
    ),
    to_real: "A real tensor of input's shape, with s values along dim.",
}
_DIMS = {
    None: "the dims to transform; all, or the last ones that s names, when not given.",
    (-2, -1): "the two dims to transform.",
}


def _grid(
    transform: Callable[..., Tensor], forward: bool, dim: tuple[int, int] | None
) -> Callable[[Callable[[], None]], _Grid]:
    """Makes a public function of its name and the part of its docstring that is its own.

    Args:
        transform: what computes.
        forward: its direction.
        dim: what is transformed where no dims are given.
    """

    def declare(own: Callable[[], None]) -> _Grid:
        name, pair = own.__name__, dim is not None

        def grid(
            input: Tensor,
            s: Any = None,
            dim: Any = dim,
            norm: str | None = None,
            *,
            out: Tensor | None = None,
        ) -> Tensor:
            if dim is None and pair:
                raise TypeError(f"fft.{name}(): argument 'dim' must be two ints, not None")
            return transform(name, input, s, dim, norm, out, forward=forward, grid=True)

        args = {"s": _LENGTHS[transform], "dim": _DIMS[dim]}
        return named(grid, own, forward, args, _RESULTS[transform])

    return declare


@_grid(to_complex, forward=True, dim=(-2, -1))
def fft2() -> None:
    """The discrete Fourier transform along two dims.

    Args:
        input: real or complex, with 2 or more dims.

    Example:
        >>> clew.fft.fft2(clew.eye(2)).real
        tensor([[2., 0.],
                [0., 2.]])
    """


@_grid(to_complex, forward=False, dim=(-2, -1))
def ifft2() -> None:
    """The inverse discrete Fourier transform along two dims.

    Args:
        input: real or complex, with 2 or more dims.

    Example:
        >>> clew.fft.ifft2(clew.ones(2, 2)).real
        tensor([[1., 0.],
                [0., 0.]])
    """


@_grid(to_half, forward=True, dim=(-2, -1))
def rfft2() -> None:
    """The transform of real values along two dims, of which the last keeps n // 2 + 1 values.

    Args:
        input: real, with 2 or more dims.

    Example:
        >>> clew.fft.rfft2(clew.ones(2, 4)).real
        tensor([[8., 0., 0.],
                [0., 0., 0.]])
    """


@_grid(to_real, forward=False, dim=(-2, -1))
def irfft2() -> None:
    """The inverse of rfft2: real values of half of their spectrum.

    Args:
        input: half a spectrum; imaginary parts that real values cannot have are ignored.

    Example:
        >>> clew.fft.irfft2(clew.fft.rfft2(clew.ones(2, 3)), s=(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """


@_grid(to_real, forward=True, dim=(-2, -1))
def hfft2() -> None:
    """The real spectrum of a signal that is Hermitian along two dims; half of it is given.

    Args:
        input: the signal's first half along the last dim.

    Example:
        >>> clew.fft.hfft2(clew.ones(1, 3))
        tensor([[4., 0., 0., 0.]])
    """


@_grid(to_half, forward=False, dim=(-2, -1))
def ihfft2() -> None:
    """The inverse of hfft2: half of the Hermitian signal with a real spectrum.

    Args:
        input: real, with 2 or more dims.

    Example:
        >>> clew.fft.ihfft2(clew.ones(2, 4)).real
        tensor([[1., 0., 0.],
                [0., 0., 0.]])
    """


@_grid(to_complex, forward=True, dim=None)
def fftn() -> None:
    """The discrete Fourier transform along several dims.

    Args:
        input: real or complex, of any shape.

    Example:
        >>> clew.fft.fftn(clew.eye(2)).real
        tensor([[2., 0.],
                [0., 2.]])
    """


@_grid(to_complex, forward=False, dim=None)
def ifftn() -> None:
    """The inverse discrete Fourier transform along several dims.

    Args:
        input: real or complex, of any shape.

    Example:
        >>> clew.fft.ifftn(clew.ones(2, 2)).real
        tensor([[1., 0.],
                [0., 0.]])
    """


@_grid(to_half, forward=True, dim=None)
def rfftn() -> None:
    """The transform of real values along several dims, of which the last keeps n // 2 + 1 values.

    Args:
        input: real, with 1 or more dims.

    Example:
        >>> clew.fft.rfftn(clew.ones(2, 4)).real
        tensor([[8., 0., 0.],
                [0., 0., 0.]])
    """


@_grid(to_real, forward=False, dim=None)
def irfftn() -> None:
    """The inverse of rfftn: real values of half of their spectrum.

    Args:
        input: half a spectrum; imaginary parts that real values cannot have are ignored.

    Example:
        >>> clew.fft.irfftn(clew.fft.rfftn(clew.ones(2, 3)), s=(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """


@_grid(to_real, forward=True, dim=None)
def hfftn() -> None:
    """The real spectrum of a signal that is Hermitian along several dims; half of it is given.

    Args:
        input: the signal's first half along the last dim.

    Example:
        >>> clew.fft.hfftn(clew.ones(1, 3))
        tensor([[4., 0., 0., 0.]])
    """


@_grid(to_half, forward=False, dim=None)
def ihfftn() -> None:
    """The inverse of hfftn: half of the Hermitian signal with a real spectrum.

    Args:
        input: real, with 1 or more dims.

    Example:
        >>> clew.fft.ihfftn(clew.ones(2, 4)).real
        tensor([[1., 0., 0.],
                [0., 0., 0.]])
    """
