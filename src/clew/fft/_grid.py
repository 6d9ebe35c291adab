"""Transforms along several dims."""

from __future__ import annotations

from typing import Any

from clew._base.arguments import numpy_names
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew.fft._core import to_complex, to_half, to_real

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


@asks_classes
@numpy_names
def fft2(
    input: Tensor,
    s: Any = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform along two dims.

    Args:
        input: real or complex, with 2 or more dims.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the two dims to transform.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.fft2(clew.eye(2)).real
        tensor([[2., 0.],
                [0., 2.]])
    """
    return to_complex("fft2", input, s, dim, norm, out, forward=True, grid=True)


@asks_classes
@numpy_names
def ifft2(
    input: Tensor,
    s: Any = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse discrete Fourier transform along two dims.

    Args:
        input: real or complex, with 2 or more dims.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the two dims to transform.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.ifft2(clew.ones(2, 2)).real
        tensor([[1., 0.],
                [0., 0.]])
    """
    return to_complex("ifft2", input, s, dim, norm, out, forward=False, grid=True)


@asks_classes
@numpy_names
def rfft2(
    input: Tensor,
    s: Any = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real values along two dims, of which the last keeps n // 2 + 1 values.

    Args:
        input: real, with 2 or more dims.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the two dims to transform.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim; s[-1] // 2 + 1 along the last.

    Example:
        >>> clew.fft.rfft2(clew.ones(2, 4)).real
        tensor([[8., 0., 0.],
                [0., 0., 0.]])
    """
    return to_half("rfft2", input, s, dim, norm, out, forward=True, grid=True)


@asks_classes
@numpy_names
def irfft2(
    input: Tensor,
    s: Any = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of rfft2: real values of half of their spectrum.

    Args:
        input: half a spectrum; imaginary parts that real values cannot have are ignored.
        s: lengths of the result; the last is 2 * (m - 1) of m values when not given.
        dim: the two dims to transform.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A real tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.irfft2(clew.fft.rfft2(clew.ones(2, 3)), s=(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return to_real("irfft2", input, s, dim, norm, out, forward=False, grid=True)


@asks_classes
@numpy_names
def hfft2(
    input: Tensor,
    s: Any = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real spectrum of a signal that is Hermitian along two dims; half of it is given.

    Args:
        input: the signal's first half along the last dim.
        s: lengths of the result; the last is 2 * (m - 1) of m values when not given.
        dim: the two dims to transform.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A real tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.hfft2(clew.ones(1, 3))
        tensor([[4., 0., 0., 0.]])
    """
    return to_real("hfft2", input, s, dim, norm, out, forward=True, grid=True)


@asks_classes
@numpy_names
def ihfft2(
    input: Tensor,
    s: Any = None,
    dim: Any = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of hfft2: half of the Hermitian signal with a real spectrum.

    Args:
        input: real, with 2 or more dims.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the two dims to transform.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim; s[-1] // 2 + 1 along the last.

    Example:
        >>> clew.fft.ihfft2(clew.ones(2, 4)).real
        tensor([[1., 0., 0.],
                [0., 0., 0.]])
    """
    return to_half("ihfft2", input, s, dim, norm, out, forward=False, grid=True)


@asks_classes
@numpy_names
def fftn(
    input: Tensor,
    s: Any = None,
    dim: Any = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform along several dims.

    Args:
        input: real or complex, of any shape.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the dims to transform; all, or the last ones that s names, when not given.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.fftn(clew.eye(2)).real
        tensor([[2., 0.],
                [0., 2.]])
    """
    return to_complex("fftn", input, s, dim, norm, out, forward=True, grid=True)


@asks_classes
@numpy_names
def ifftn(
    input: Tensor,
    s: Any = None,
    dim: Any = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse discrete Fourier transform along several dims.

    Args:
        input: real or complex, of any shape.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the dims to transform; all, or the last ones that s names, when not given.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.ifftn(clew.ones(2, 2)).real
        tensor([[1., 0.],
                [0., 0.]])
    """
    return to_complex("ifftn", input, s, dim, norm, out, forward=False, grid=True)


@asks_classes
@numpy_names
def rfftn(
    input: Tensor,
    s: Any = None,
    dim: Any = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real values along several dims, of which the last keeps n // 2 + 1 values.

    Args:
        input: real, with 1 or more dims.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the dims to transform; all, or the last ones that s names, when not given.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim; s[-1] // 2 + 1 along the last.

    Example:
        >>> clew.fft.rfftn(clew.ones(2, 4)).real
        tensor([[8., 0., 0.],
                [0., 0., 0.]])
    """
    return to_half("rfftn", input, s, dim, norm, out, forward=True, grid=True)


@asks_classes
@numpy_names
def irfftn(
    input: Tensor,
    s: Any = None,
    dim: Any = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of rfftn: real values of half of their spectrum.

    Args:
        input: half a spectrum; imaginary parts that real values cannot have are ignored.
        s: lengths of the result; the last is 2 * (m - 1) of m values when not given.
        dim: the dims to transform; all, or the last ones that s names, when not given.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A real tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.irfftn(clew.fft.rfftn(clew.ones(2, 3)), s=(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return to_real("irfftn", input, s, dim, norm, out, forward=False, grid=True)


@asks_classes
@numpy_names
def hfftn(
    input: Tensor,
    s: Any = None,
    dim: Any = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real spectrum of a signal that is Hermitian along several dims; half of it is given.

    Args:
        input: the signal's first half along the last dim.
        s: lengths of the result; the last is 2 * (m - 1) of m values when not given.
        dim: the dims to transform; all, or the last ones that s names, when not given.
        norm: "forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.
        out: the tensor to write into.

    Returns:
        A real tensor of input's shape, with s values along dim.

    Example:
        >>> clew.fft.hfftn(clew.ones(1, 3))
        tensor([[4., 0., 0., 0.]])
    """
    return to_real("hfftn", input, s, dim, norm, out, forward=True, grid=True)


@asks_classes
@numpy_names
def ihfftn(
    input: Tensor,
    s: Any = None,
    dim: Any = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of hfftn: half of the Hermitian signal with a real spectrum.

    Args:
        input: real, with 1 or more dims.
        s: lengths of the transform; the input is cut, or padded with zeros, to them; -1 keeps one.
        dim: the dims to transform; all, or the last ones that s names, when not given.
        norm: "backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.
        out: the tensor to write into.

    Returns:
        A complex tensor of input's shape, with s values along dim; s[-1] // 2 + 1 along the last.

    Example:
        >>> clew.fft.ihfftn(clew.ones(2, 4)).real
        tensor([[1., 0., 0.],
                [0., 0., 0.]])
    """
    return to_half("ihfftn", input, s, dim, norm, out, forward=False, grid=True)
