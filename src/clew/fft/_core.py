"""The three transforms under all public ones, and the reading of their arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from clew import _C
from clew._base.arguments import need_int, numpy_names, whole_tuple
from clew._base.autocast import autocasting, float32
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import write_out

_LAST = (-1,)
_REAL = (_C.float32, _C.float64)
_COMPLEX = (_C.complex64, _C.complex128)
_FLOATING = _REAL + _COMPLEX
_TAKEN = {True: _REAL, False: _COMPLEX, None: _FLOATING}  # what read_input() gives back as it is


def _is_plain(x: Any, dtypes: tuple[_C.dtype, ...]) -> bool:
    """Whether x is a tensor of one of the dtypes, with elements along its last dim."""
    return type(x) is Tensor and x.dtype in dtypes and x.ndim > 0 and x.shape[-1] > 0


def scale_of(name: str, norm: str | None, forward: bool) -> str:
    """What an argument ``norm`` means for a transform in that direction."""
    if norm is None:
        return "none" if forward else "n"
    if not isinstance(norm, str):
        raise TypeError(f"{name}(): argument 'norm' must be str, not {type(norm).__name__}")
    if norm == "ortho":
        return "root"
    if norm not in ("forward", "backward"):
        raise RuntimeError(
            f'{name}: Invalid normalization mode: "{norm}"; expected "forward", "backward" or '
            f'"ortho"'
        )
    return "n" if (norm == "forward") is forward else "none"


def _factor(scale: str, x: Tensor, axes: tuple[int, ...], n: int = 0) -> float:
    """What a result is multiplied with.

    Args:
        scale: not at all ("none"), by 1/sqrt(N) ("root"), or by 1/N ("n").
        x: what is transformed.
        axes: along which; N is the product of their sizes.
        n: instead of the last one's size.
    """
    if scale == "none" or not x.numel():
        return 1.0
    sizes = [x.shape[a] for a in axes]
    if n:
        sizes[-1] = n
    return 1 / math.sqrt(math.prod(sizes)) if scale == "root" else 1 / math.prod(sizes)


def c2c(x: Tensor, axes: tuple[int, ...], forward: bool, scale: str) -> Tensor:
    """Complex (or real) to complex along ``axes`` (negative numbers)."""
    return _C.ops._fft_c2c(x, axes, not forward, _factor(scale, x, axes))


def r2c(x: Tensor, axes: tuple[int, ...], scale: str) -> Tensor:
    """Real to the non-redundant half (along the last of ``axes``) of its spectrum; forward."""
    return _C.ops._fft_r2c(x, axes, False, _factor(scale, x, axes))


def c2r(x: Tensor, axes: tuple[int, ...], n: int, scale: str) -> Tensor:
    """Half a spectrum to n real values along the last of ``axes``; the inverse direction."""
    return _C.ops._fft_c2r(x, axes, n, _factor(scale, x, axes, n))


def read_input(name: str, input: Tensor, *, real: bool | None) -> Tensor:
    """The input as a floating (real) or complex tensor that a transform takes; either when real is
    None.
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input.dtype in _TAKEN[real]:
        return input
    if real and input.is_complex():
        raise RuntimeError(f"{name}: expects a real input tensor; got {input.dtype.name}")
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(_C.get_default_dtype())
    if autocasting():
        (input,) = float32(input)
    if input.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(
            f"{name}: unsupported dtype {input.dtype.name}; expected float32, float64 or complex"
        )
    return input.to(input.dtype.to_complex()) if real is False else input


def _wrapped(name: str, dim: Any, ndim: int) -> int:
    """The dim as a negative number."""
    dim = need_int(name, "dim", dim)
    if ndim == 0:
        raise IndexError(f"{name}: dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"{name}: dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
            f"but got {dim})"
        )
    return dim if dim < 0 else dim - ndim


def _integers(name: str, what: str, value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, (tuple, list)) else (value,)
    found = whole_tuple(values)
    if found is None:
        raise TypeError(f"{name}(): argument '{what}' must be a tuple of ints; got {value!r}")
    return found


def read_line(name: str, input: Tensor, n: Any, dim: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The axis of a one-dimensional transform, and its length or None."""
    axis = _wrapped(name, dim, input.ndim)
    return (axis,), [None if n is None else need_int(name, "n", n)]


def read_grid(name: str, input: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The axes of an n-dimensional transform, and for each its length or None."""
    sizes = None if s is None else _integers(name, "s", s)
    if dim is not None:
        dims = _integers(name, "dim", dim)
    elif sizes is not None:
        if len(sizes) > input.ndim:
            raise RuntimeError(
                f"{name}: got shape with {len(sizes)} values but input tensor only has "
                f"{input.ndim} dimensions"
            )
        dims = tuple(range(-len(sizes), 0))
    else:
        dims = tuple(range(-input.ndim, 0))
    n = input.ndim
    axes = tuple([d if -n <= d < 0 else _wrapped(name, d, n) for d in dims])
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"{name}: FFT dims must be unique; got {dims}")
    if sizes is None:
        return axes, [None] * len(axes)
    if len(sizes) != len(axes):
        raise RuntimeError(
            f"{name}: dim and s must have the same length; got {len(axes)} and {len(sizes)}"
        )
    return axes, [None if v == -1 else v for v in sizes]


def shift_dims(name: str, input: Tensor, dim: Any) -> list[int]:
    """The dims that a shift is about; there must be some."""
    dims = range(-input.ndim, 0) if dim is None else _integers(name, "dim", dim)
    if not dims:
        raise RuntimeError(
            f"{name}: at least one dim is needed; got dim={dim}, {input.ndim}D input"
        )
    return [_wrapped(name, d, input.ndim) for d in dims]


def need_axes(name: str, axes: tuple[int, ...]) -> None:
    if not axes:
        raise RuntimeError(f"{name}: must transform at least one axis")


def resize(name: str, x: Tensor, axes: tuple[int, ...], sizes: Sequence[int | None]) -> Tensor:
    """x cut or padded with zeros at the end of each axis to the sizes; None keeps."""
    shape = x.shape
    for axis, size in zip(axes, sizes):
        if size not in (None, shape[axis]) or not shape[axis]:
            break
    else:
        return x
    widths = [0] * (2 * max(-a for a in axes))
    for axis, size in zip(axes, sizes):
        size = x.shape[axis] if size is None else size
        if size < 1:
            raise RuntimeError(f"{name}: Invalid number of data points ({size}) specified")
        widths[2 * (-1 - axis) + 1] = size - x.shape[axis]
    return _C.functions["nn.functional.pad"](x, widths) if any(widths) else x


def need_out(name: str, out: Any, *, real: bool) -> None:
    """Real results are written into floating tensors only, complex ones into complex."""
    if isinstance(out, Tensor) and (not out.is_floating_point() if real else not out.is_complex()):
        kind = "floating point" if real else "complex"
        raise RuntimeError(f"{name}: expects a {kind} output tensor; got {out.dtype.name}")


def to_complex(
    name: str,
    input: Tensor,
    given: Any,
    dim: Any,
    norm: Any,
    out: Any,
    *,
    forward: bool,
    grid: bool,
) -> Tensor:
    """Complex in, complex out."""
    if given is norm is out is None and not grid and dim == -1 and _is_plain(input, _FLOATING):
        factor = 1.0 if forward else 1 / input.shape[-1]
        return _C.ops._fft_c2c(input, _LAST, not forward, factor)
    x = read_input(name, input, real=None)
    axes, sizes = (read_grid if grid else read_line)(name, x, given, dim)
    scale = scale_of(name, norm, forward)
    need_out(name, out, real=False)
    if axes:
        x = resize(name, x, axes, sizes)
        x = c2c(x, axes=axes, forward=forward, scale=scale)
    else:
        x = x.to(x.dtype.to_complex())
        x = x.clone() if x is input else x
    return write_out(name, x, out, converts=True)


def to_half(
    name: str,
    input: Tensor,
    given: Any,
    dim: Any,
    norm: Any,
    out: Any,
    *,
    forward: bool,
    grid: bool,
) -> Tensor:
    """Real in, half a spectrum out; the inverse transform of a real input is the conjugate of the
    forward one.
    """
    if given is norm is out is None and not grid and dim == -1 and forward:
        if _is_plain(input, _REAL):
            return _C.ops._fft_r2c(input, _LAST, False, 1.0)
    x = read_input(name, input, real=True)
    axes, sizes = (read_grid if grid else read_line)(name, x, given, dim)
    need_axes(name, axes)
    scale = scale_of(name, norm, forward)
    need_out(name, out, real=False)
    x = resize(name, x, axes, sizes)
    x = r2c(x, axes=axes, scale=scale)
    return write_out(name, x if forward else x.conj_physical(), out, converts=True)


def to_real(
    name: str,
    input: Tensor,
    given: Any,
    dim: Any,
    norm: Any,
    out: Any,
    *,
    forward: bool,
    grid: bool,
) -> Tensor:
    """Half a spectrum in, real out."""
    if norm is out is None and not grid and dim == -1 and not forward:
        if _is_plain(input, _COMPLEX):
            n = 2 * input.shape[-1] - 2 if given is None else given
            if type(n) is int and n > 0 and n // 2 + 1 == input.shape[-1]:
                return _C.ops._fft_c2r(input, _LAST, n, 1 / n)
    x = read_input(name, input, real=False)
    axes, sizes = (read_grid if grid else read_line)(name, x, given, dim)
    need_axes(name, axes)
    scale = scale_of(name, norm, forward)
    need_out(name, out, real=True)
    n = 2 * (x.shape[axes[-1]] - 1) if sizes[-1] is None else sizes[-1]
    if n < 1:
        raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
    x = resize(name, x, axes, [*sizes[:-1], n // 2 + 1])
    x = c2r(x.conj() if forward else x, axes=axes, n=n, scale=scale)
    return write_out(name, x, out, converts=True)


_NORMS = {
    True: '"forward" divides by n, "ortho" by sqrt(n), "backward" (and None) by nothing.',
    False: '"backward" (and None) divides by n, "ortho" by sqrt(n), "forward" by nothing.',
}


def named(
    function: Any, own: Callable[[], None], forward: bool, args: dict[str, str], result: str
) -> Any:
    """A public function of the name that `own` has, asked as all are.

    Args:
        function: what it does.
        own: its name; its docstring says what it transforms, and has an example.
        forward: the direction.
        args: what the docstring says of the arguments between input and norm.
        result: what it says of the result.
    """
    function.__name__ = function.__qualname__ = own.__name__
    if own.__doc__:  # python -OO leaves none
        more = {**args, "norm": _NORMS[forward], "out": "the tensor to write into."}
        lines = "".join(f"    {name}: {text}\n" for name, text in more.items())
        shared = f"\n{lines}\nReturns:\n    {result}\n\nExample:"
        function.__doc__ = inspect.cleandoc(own.__doc__).replace("\n\nExample:", shared)
    return asks_classes(numpy_names(function))
