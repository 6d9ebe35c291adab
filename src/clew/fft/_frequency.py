"""Which frequencies a spectrum holds, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._base.arguments import need_bools, need_int, numpy_names
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import write_out
from clew.fft import _core

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


@asks_classes
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the values that fft gives: 0, 1, ... and then the negative ones, over n d.

    Args:
        n: length of the transform.
        d: distance between samples.
        out: the tensor to write into.
        dtype: a floating point type.
        layout: strided.
        device: where the result is to be.
        pin_memory: as in clew.arange.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of n frequencies.

    Example:
        >>> clew.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    need_bools("fftfreq", requires_grad=requires_grad)
    return _frequencies("fftfreq", n, d, out, dtype, layout, device, pin_memory, requires_grad)


@asks_classes
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the values that rfft gives: 0, 1, ..., n // 2, over n d.

    Args:
        n: length of the transform.
        d: distance between samples.
        out: the tensor to write into.
        dtype: a floating point type.
        layout: strided.
        device: where the result is to be.
        pin_memory: as in clew.arange.
        requires_grad: whether it asks for a gradient.

    Returns:
        A tensor of n // 2 + 1 frequencies.

    Example:
        >>> clew.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    need_bools("rfftfreq", requires_grad=requires_grad)
    return _frequencies("rfftfreq", n, d, out, dtype, layout, device, pin_memory, requires_grad)


def _frequencies(
    name: str,
    n: Any,
    d: Any,
    out: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    n = need_int(name, "n", n)
    if not isinstance(d, (int, float, np.number)) or isinstance(d, bool):
        raise TypeError(f"{name}(): argument 'd' must be float, not {type(d).__name__}")
    if n < 0:
        raise RuntimeError(f"{name}: n must not be negative; got {n}")
    if dtype is None:
        dtype = out.dtype if isinstance(out, Tensor) else _C.get_default_dtype()
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"{name}(): argument 'dtype' must be dtype, not {type(dtype).__name__}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name}: requires a floating point dtype; got {dtype.name}")
    count = n if name == "fftfreq" else n // 2 + 1
    steps = _C.arange(count, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    if name == "fftfreq":
        steps.narrow(0, (n + 1) // 2, n // 2).sub_(n)
    width = n * d
    steps = steps * (1.0 / width if width else float("inf"))
    result = write_out(name, steps, out, converts=True)
    return result.requires_grad_() if requires_grad else result


@asks_classes
@numpy_names
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Moves the zero frequency from the front to the middle.

    Args:
        input: a spectrum.
        dim: the dims to shift; all of them when not given.

    Returns:
        A tensor like input.

    Example:
        >>> clew.fft.fftshift(clew.tensor([0, 1, 2, -2, -1]))
        tensor([-2, -1,  0,  1,  2])
    """
    return _shift("fftshift", input, dim, False)


@asks_classes
@numpy_names
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Moves the zero frequency from the middle to the front.

    Args:
        input: a spectrum.
        dim: the dims to shift; all of them when not given.

    Returns:
        A tensor like input.

    Example:
        >>> clew.fft.ifftshift(clew.tensor([-2, -1, 0, 1, 2]))
        tensor([ 0,  1,  2, -2, -1])
    """
    return _shift("ifftshift", input, dim, True)


def _shift(name: str, input: Tensor, dim: Any, back: bool) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    dims = _core.shift_dims(name, input, dim)
    sizes = [input.shape[d] for d in dims]
    return input.roll([(size + 1) // 2 if back else size // 2 for size in sizes], dims)
