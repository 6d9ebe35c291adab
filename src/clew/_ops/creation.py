"""Functions that make tensors: the core's, and the rarer ones written on top of them."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base.arguments import need_bools, need_int, need_tensors
from clew._base.autocast import in_float32
from clew._base.out import write_out
from clew._base.overriding import asks_classes
from clew._base.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from clew._C import (
    Generator,
    Tensor,
    arange,
    as_tensor,
    default_generator,
    empty,
    empty_like,
    empty_strided,
    eye,
    from_dlpack,
    from_numpy,
    frombuffer,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    range,
    scalar_tensor,
    tensor,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from clew._tensor.text import get_printoptions, set_printoptions

__all__ = [
    "Generator",
    "arange",
    "as_tensor",
    "asarray",
    "complex",
    "default_generator",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "fill",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "get_printoptions",
    "get_rng_state",
    "initial_seed",
    "linspace",
    "logspace",
    "manual_seed",
    "normal",
    "ones",
    "ones_like",
    "polar",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "seed",
    "set_printoptions",
    "set_rng_state",
    "tensor",
    "to_dlpack",
    "tril_indices",
    "triu_indices",
    "vander",
    "zeros",
    "zeros_like",
]


@asks_classes
def asarray(
    obj: Any,
    *,
    dtype: _C.dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Makes a tensor of a tensor, array, buffer, DLPack object, number or nested sequences.

    Args:
        obj: what to convert.
        dtype: the element type; that of obj when not given.
        device: where the tensor is to be.
        copy: True always copies, False raises where memory cannot be shared, None shares
            where it can.
        requires_grad: whether the result asks for a gradient; that of obj when not given.

    Returns:
        A tensor that shares memory with obj where that is possible and wanted.

    Example:
        >>> clew.asarray([1, 2])
        tensor([1, 2])
    """
    if requires_grad is not None:
        need_bools("asarray", requires_grad=requires_grad)
    if copy is not None:
        need_bools("asarray", copy=copy)
    import numpy as np

    source: Tensor | None = None
    if device is None and _C.get_default_device().type != "cpu":
        device = _C.get_default_device()
    if isinstance(obj, Tensor):
        source = obj
    elif hasattr(obj, "untyped"):  # a storage
        from clew.storage import _of_dtype

        kind: Any = dtype or getattr(obj, "dtype", _C.get_default_dtype())
        source = _of_dtype(obj.untyped()._bytes, kind)
    elif isinstance(obj, np.ndarray):
        source = from_numpy(obj)
    elif isinstance(obj, np.generic):
        source = None
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        source = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        source = frombuffer(obj, dtype=dtype if dtype is not None else _C.get_default_dtype())
    if source is None:
        if copy is False:
            raise ValueError(f"asarray: can't make a tensor of {type(obj).__name__} without a copy")
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    same = (dtype is None or dtype == source.dtype) and (
        device is None or _C.device(device) == source.device
    )
    if not same and copy is False:
        raise ValueError("asarray: another dtype or device needs a copy, but copy is False")
    out = source
    if not same:
        out = source.to(
            device=device if device is not None else source.device, dtype=dtype or source.dtype
        )
    elif copy:
        out = source.clone()
    if isinstance(obj, Tensor):
        # PyTorch: the flag decides whether the result stays in obj's graph.
        if requires_grad is None or requires_grad == out.requires_grad:
            return out
        if not requires_grad:
            out = out.detach()
        else:
            out = (out.detach() if out is obj else out).requires_grad_()
        return out
    return out.requires_grad_() if requires_grad else out


@asks_classes
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Draws normal numbers with the given means and standard deviations.

    Args:
        mean: a number, or a tensor with a mean for each element.
        std: a number, or a tensor with a standard deviation for each element; broadcasts with mean.
        size: the shape, when both are numbers.
        generator: where the random numbers come from.
        out: the tensor to write into.
        dtype: the element type, when both are numbers.
        layout: strided.
        device: where the elements are, when both are numbers.
        pin_memory: accepted without an effect.
        requires_grad: whether operations on the result are recorded.

    Returns:
        A tensor of the broadcast shape, or of `size`.

    Example:
        >>> clew.normal(3.0, 0.0, (2,))
        tensor([3., 3.])
    """
    need_bools("normal", requires_grad=requires_grad)
    if size is not None:
        for name, given in (("mean", mean), ("std", std)):
            if isinstance(given, Tensor) and (given.dim() or given.requires_grad):
                raise TypeError(
                    f"normal(): with a size, argument '{name}' must be a number, not a tensor of "
                    f"shape {list(given.shape)}"
                )
        mean, std = (v.item() if isinstance(v, Tensor) else v for v in (mean, std))
        made = empty(
            size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, out=out
        )
        made.normal_(mean, std, generator=generator)
        return made.requires_grad_() if requires_grad else made
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise TypeError(
            "normal() received an invalid combination of arguments: two numbers need a size"
        )
    if dtype is not None or device is not None or layout is not None or pin_memory or requires_grad:
        raise TypeError(
            "normal(): dtype, layout, device, pin_memory and requires_grad need numbers and a size"
        )
    if not isinstance(std, Tensor):
        assert isinstance(mean, Tensor)
        if std < 0:
            raise RuntimeError(f"normal: std must not be negative; got {std}")
        std = full_like(mean, std)
    elif not isinstance(mean, Tensor):
        mean = full_like(std, mean)
    if out is None:
        return _C.ops._normal(mean, std, generator=generator)
    return _C.ops._normal(mean, std, generator=generator, out=out)


@asks_classes
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Puts two real tensors together as real and imaginary parts.

    Args:
        real: float16, float32 or float64.
        imag: of the same dtype; broadcasts with real.
        out: the tensor to write into.

    Returns:
        A complex tensor of the broadcast shape.

    Example:
        >>> clew.complex(clew.tensor([1.0]), clew.tensor([2.0]))
        tensor([1.+2.j])
    """
    if not (isinstance(real, Tensor) and isinstance(imag, Tensor)):
        need_tensors("complex", real=real, imag=imag)
    made = _C.functions["complex"](real, imag)
    return write_out("complex", made, out)


@asks_classes
@in_float32
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Makes complex numbers of lengths and angles: abs * (cos(angle) + i sin(angle)).

    Args:
        abs: lengths, float32 or float64.
        angle: angles in radians, of the same dtype.
        out: the tensor to write into.

    Returns:
        A complex tensor of the broadcast shape.

    Example:
        >>> clew.polar(clew.tensor([2.0]), clew.tensor([0.0]))
        tensor([2.+0.j])
    """
    if not (isinstance(abs, Tensor) and isinstance(angle, Tensor)):
        need_tensors("polar", abs=abs, angle=angle)
    return complex(abs * angle.cos(), abs * angle.sin(), out=out)


def fill(input: Tensor, value: Tensor | float) -> Tensor:
    """Returns a copy of input with every element replaced by value.

    Args:
        input: gives shape and dtype.
        value: a number or a tensor without dims.

    Returns:
        A new tensor; the gradient of input is zero.

    Example:
        >>> clew.fill(clew.zeros(2), 3)
        tensor([3., 3.])
    """
    need_tensors("fill", input=input)
    return input.clone().fill_(value)


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a DLPack capsule that shares the tensor's memory; it can be consumed once.

    Args:
        tensor: any tensor in main memory that does not require a gradient.

    Returns:
        A capsule for another library's `from_dlpack`.

    Example:
        >>> clew.from_dlpack(clew.to_dlpack(clew.ones(2)))
        tensor([1., 1.])
    """
    need_tensors("to_dlpack", tensor=tensor)
    return tensor.__dlpack__()


@asks_classes
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the elements of x as columns.

    Args:
        x: one-dimensional.
        N: number of columns; as many as x has elements when not given.
        increasing: whether the powers grow from left to right.

    Returns:
        A matrix [len(x), N].

    Example:
        >>> clew.vander(clew.tensor([2, 3]), 3)
        tensor([[4, 2, 1],
                [9, 3, 1]])
    """
    need_bools("vander", increasing=increasing)
    need_tensors("vander", x=x)
    if x.dim() != 1:
        raise RuntimeError(f"vander: x must be one-dimensional; got {x.dim()} dims")
    count = x.numel() if N is None else need_int("vander", "N", N)
    if count < 0:
        raise RuntimeError(f"vander: N must not be negative; got {count}")
    powers = arange(count, device=x.device)
    if not increasing:
        powers = powers.flip(0)
    return x.unsqueeze(1) ** powers
