"""Transforms along one dim."""

from __future__ import annotations

from clew._base.arguments import numpy_names
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew.fft._core import to_complex, to_half, to_real

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


@asks_classes
@numpy_names
def fft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform: X[k] = sum_j x[j] exp(-2 pi i j k / n).

    Args:
        input: real or complex, of any shape with 1 or more dims.
        n: length of the transform; the input is cut, or padded with zeros, to it.
        dim: the dim to transform.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with n values along dim.

    Example:
        >>> clew.fft.fft(clew.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return to_complex("fft", input, n, dim, norm, out, forward=True, grid=False)


@asks_classes
@numpy_names
def ifft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse transform: x[j] = sum_k X[k] exp(2 pi i j k / n) / n.

    Args:
        input: real or complex, of any shape with 1 or more dims.
        n: length of the transform; the input is cut, or padded with zeros, to it.
        dim: the dim to transform.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with n values along dim.

    Example:
        >>> clew.fft.ifft(clew.fft.fft(clew.tensor([1.0, 2.0, 3.0, 4.0]))).real
        tensor([1., 2., 3., 4.])
    """
    return to_complex("ifft", input, n, dim, norm, out, forward=False, grid=False)


@asks_classes
@numpy_names
def rfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The first n // 2 + 1 values of the transform of real values; the others mirror them.

    Args:
        input: real, of any shape with 1 or more dims.
        n: length of the transform; the input is cut, or padded with zeros, to it.
        dim: the dim to transform.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with n // 2 + 1 values along dim.

    Example:
        >>> clew.fft.rfft(clew.tensor([1.0, 0.0, 0.0, 0.0]))
        tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return to_half("rfft", input, n, dim, norm, out, forward=True, grid=False)


@asks_classes
@numpy_names
def irfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of rfft: real values of the non-redundant half of their spectrum.

    Args:
        input: half a spectrum; imaginary parts that real values cannot have are ignored.
        n: length of the result; 2 * (m - 1) of m values when not given.
        dim: the dim to transform.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A real tensor of input's shape, with n values along dim.

    Example:
        >>> clew.fft.irfft(clew.fft.rfft(clew.tensor([1.0, 2.0, 3.0])), n=3)
        tensor([1., 2., 3.])
    """
    return to_real("irfft", input, n, dim, norm, out, forward=False, grid=False)


@asks_classes
@numpy_names
def hfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real spectrum of a signal with Hermitian symmetry, of which half is given.

    Args:
        input: the first n // 2 + 1 values of the signal.
        n: length of the result; 2 * (m - 1) of m values when not given.
        dim: the dim to transform.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A real tensor of input's shape, with n values along dim.

    Example:
        >>> clew.fft.hfft(clew.tensor([1.0, 0.0, 0.0]))
        tensor([1., 1., 1., 1.])
    """
    return to_real("hfft", input, n, dim, norm, out, forward=True, grid=False)


@asks_classes
@numpy_names
def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of hfft: the first half of the Hermitian signal with a real spectrum.

    Args:
        input: real, of any shape with 1 or more dims.
        n: length of the transform; the input is cut, or padded with zeros, to it.
        dim: the dim to transform.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with n // 2 + 1 values along dim.

    Example:
        >>> clew.fft.ihfft(clew.tensor([4.0, 4.0, 4.0, 4.0])).real
        tensor([4., 0., 0.])
    """
    return to_half("ihfft", input, n, dim, norm, out, forward=False, grid=False)
