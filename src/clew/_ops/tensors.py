"""Small functions of tensors that are rarely asked for; some are methods, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_int, need_tensors, wrapped_dim
from clew._base.overriding import asks_classes, modes_are_on
from clew._base.results import shown_as
from clew._C import Tensor
from clew._ops.primitive import in_memory_order, loops_in_vmap, primitive, write_out

__all__ = [
    "alpha_dropout_",
    "as_strided_",
    "detach_",
    "dropout_",
    "empty_permuted",
    "feature_alpha_dropout_",
    "feature_dropout_",
    "fill_",
    "frexp",
    "frobenius_norm",
    "get_device",
    "hash_tensor",
    "is_conj",
    "is_inference",
    "is_neg",
    "is_same_size",
    "is_signed",
    "nonzero_static",
    "resize_as_",
    "slice_inverse",
    "zero_",
]

_f = _C.functions


# ---- in-place forms as functions -----------------------------------------------------------------


def fill_(input: Tensor, value: Any) -> Tensor:
    """Writes a value into every element.

    >>> clew.fill_(clew.zeros(2), 3)
    tensor([3., 3.])
    """
    need_tensors("fill_", input=input)
    return input.fill_(value)


def zero_(input: Tensor) -> Tensor:
    """Writes 0 into every element.

    >>> clew.zero_(clew.ones(2))
    tensor([0., 0.])
    """
    need_tensors("zero_", input=input)
    return input.zero_()


def detach_(input: Tensor) -> Tensor:
    """Cuts the tensor off its history.

    >>> clew.detach_(clew.ones(1, requires_grad=True) * 2).requires_grad
    False
    """
    need_tensors("detach_", input=input)
    return input.detach_()


def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Gives the tensor another shape and other strides over its storage.

    Args:
        input: the tensor; changed.
        size: the new shape.
        stride: the steps, in elements.
        storage_offset: the first element's place; kept when None.

    Returns:
        the input.

    >>> clew.as_strided_(clew.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    need_tensors("as_strided_", input=input)
    return Tensor.as_strided_(input, size, stride, storage_offset)


def _dropout_writer(name: str, example: str) -> Callable[[Tensor, float, bool], Tensor]:
    def write(input: Tensor, p: float, train: bool) -> Tensor:
        need_tensors(f"{name}_", input=input)
        return input.copy_(_f[name](input, p, train))

    write.__name__ = write.__qualname__ = f"{name}_"
    write.__doc__ = f"""The same as :func:`{name}`, written into the input.

    >>> clew.{name}_({example}, 0.0, True).sum()
    tensor(2.)
    """
    return write


dropout_ = _dropout_writer("dropout", "clew.ones(2)")
alpha_dropout_ = _dropout_writer("alpha_dropout", "clew.ones(2)")
feature_dropout_ = _dropout_writer("feature_dropout", "clew.ones(1, 2)")
feature_alpha_dropout_ = _dropout_writer("feature_alpha_dropout", "clew.ones(1, 2)")


def resize_as_(input: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Gives the tensor the shape of another one; see ``Tensor.resize_``.

    >>> clew.resize_as_(clew.arange(4), clew.zeros(2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    need_tensors("resize_as_", input=input, other=other)
    if memory_format is _dtypes.preserve_format:
        memory_format = next(
            (f for f in _CHANNELS_LAST if _laid_out(other, f)), _dtypes.contiguous_format
        )
    return input.resize_(other.shape, memory_format=memory_format)


_CHANNELS_LAST = (_dtypes.channels_last, _dtypes.channels_last_3d)


def _laid_out(t: Tensor, memory_format: Any) -> bool:
    return not t.is_contiguous() and bool(t.is_contiguous(memory_format=memory_format))


# ---- what a tensor is ----------------------------------------------------------------------------


def is_conj(input: Tensor) -> bool:
    """Whether the tensor is what conj() gave, or a view of it.

    >>> clew.is_conj(clew.tensor(1j).conj())
    True
    """
    need_tensors("is_conj", input=input)
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """False: a negative is computed at once.

    >>> clew.is_neg(clew.tensor(1j).conj().imag)
    False
    """
    need_tensors("is_neg", input=input)
    return False


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode.

    >>> clew.is_inference(clew.ones(1))
    False
    """
    need_tensors("is_inference", input=input)
    return input.is_inference()


def is_signed(input: Tensor) -> bool:
    """Whether the tensor's dtype has negative numbers.

    >>> clew.is_signed(clew.tensor(1, dtype=clew.uint8))
    False
    """
    need_tensors("is_signed", input=input)
    return input.is_signed()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether input and other have the same shape.

    >>> clew.is_same_size(clew.ones(2), clew.zeros(2))
    True
    """
    need_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


def get_device(input: Tensor) -> int:
    """-1, as for every tensor on the CPU.

    >>> clew.get_device(clew.ones(1))
    -1
    """
    need_tensors("get_device", input=input)
    return -1


# ---- making and filling --------------------------------------------------------------------------


@asks_classes
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of unspecified elements whose dimensions lie in memory in a given order.

    Args:
        size: the shape.
        physical_layout: the dimensions, outermost first.
        dtype: the default dtype when not given.
        layout: strided.
        device: where the tensor lies.
        requires_grad: whether it is a leaf that gradients are gathered for.
        pin_memory: accepted; there is nothing to pin for.

    >>> clew.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    need_bools("empty_permuted", requires_grad=requires_grad)
    order = [int(d) for d in physical_layout]
    dims = list(range(len(size)))
    if len(order) != len(size):
        raise RuntimeError(
            f"empty_permuted: number of dimensions in the size ({len(size)}) and in the layout "
            f"({len(order)}) must be equal"
        )
    if order != dims and sorted(order) != dims:
        raise RuntimeError(
            f"empty_permuted: physical_layout must name each dimension once; got {order}"
        )
    made = _C.empty(
        [size[d] for d in order],
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
    )
    if order != dims:
        made = made.permute([order.index(d) for d in dims])
    return made.requires_grad_() if requires_grad else made


@loops_in_vmap
def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None
) -> Tensor:
    """Where the first elements that are not zero lie, one row each, filled up to ``size`` rows.

    Args:
        input: the tensor.
        size: the number of rows to give.
        fill_value: what stands in the rows that are too many.

    Returns:
        int64, (size, number of dims).

    >>> clew.nonzero_static(clew.tensor([0, 5, 6]), size=3).tolist()
    [[1], [2], [-1]]
    """
    if not isinstance(input, Tensor):
        need_tensors("nonzero_static", input=input)
    size = need_int("nonzero_static", "size", size)
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer; got {size}")
    shape = (size, input.ndim)
    made = _C.full(shape, fill_value, dtype=_dtypes.int64, device=input.device)
    if not input.is_meta:
        found = _C.ops.nonzero(input.detach())
        count = found.shape[0]
        if count > size:
            made.copy_(found[:size])
        elif count:
            made[:count] = found
    return write_out("nonzero_static", made, out)


def frobenius_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The square root of the sum of squares.

    Args:
        input: the tensor.
        dim: the dims to sum along; all when None.
        keepdim: keep them, with size 1.

    >>> clew.frobenius_norm(clew.tensor([[3.0, 4.0]]))
    tensor(5.)
    """
    need_tensors("frobenius_norm", input=input)
    dims = None if isinstance(dim, (tuple, list)) and not dim else dim
    return write_out("frobenius_norm", _f["linalg.vector_norm"](input, 2, dims, keepdim), out)


def slice_inverse(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A view of the input's storage in the shape of src, which the input is a slice of.

    Args:
        input: the slice.
        src: a tensor of the shape that is wanted.
        dim, start, end, step: how it was sliced; not needed, for src has the strides.

    >>> base = clew.arange(4)
    >>> clew.slice_inverse(base[1:3], base, 0, 1, 3)
    tensor([0, 1, 2, 3])
    """
    need_tensors("slice_inverse", input=input, src=src)
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


# ---- the parts of numbers ------------------------------------------------------------------------


@shown_as("frexp")
class frexp_result(NamedTuple):
    """What :func:`frexp` returns: mantissas between 0.5 and 1 in size, and exponents of 2."""

    mantissa: Tensor
    exponent: Tensor


def _frexp_kernel(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent * np.isfinite(x)


# Of a dtype: integers of its width, the bits of a fraction, and the greatest exponent as stored.
_STORED = {
    _dtypes.float32: (_dtypes.int32, 23, 255),
    _dtypes.float64: (_dtypes.int64, 52, 2047),
}


def _frexp_of_bits(x: Tensor) -> tuple[Tensor, Tensor] | None:
    """The parts as they are stored; None where a number is subnormal or not finite."""
    stored = _STORED.get(x.dtype)
    if stored is None or not x.is_contiguous() or x.is_meta or modes_are_on():
        return None
    x = x.detach()
    kind, shift, last = stored
    bits = x.view(kind)
    # One more than is stored: 0 of what is not finite, 1 of zeros and subnormal numbers.
    above = ((bits >> shift) + 1) & last
    least = above.amin().item() if x.numel() else 2
    zero = x == 0 if least == 1 else None
    if least == 0 or (zero is not None and not (zero == (above == 1)).all()):
        return None
    bias = last // 2 - 1
    mantissa = ((bits & ~(last << shift)) | (bias << shift)).view(x.dtype)
    exponent = above - (bias + 1)
    if kind is not _dtypes.int32:
        exponent = exponent.int()
    if zero is None:
        return mantissa, exponent
    return _f["where"](zero, x, mantissa), exponent.masked_fill_(zero, 0)


_frexp = primitive(
    "Frexp",
    shapes=lambda x: [(x.shape, x.dtype), (x.shape, _dtypes.int32)],
    kernel=_frexp_kernel,
    gradient=lambda c, g, _: None if g is None else g / _f["exp2"](c.outputs[1].to(g.dtype)),
    native=_frexp_of_bits,
    constant_outputs=(1,),
)


@asks_classes
def frexp(input: Tensor, *, out: Any = None) -> frexp_result:
    """Splits numbers into mantissa and exponent: input = mantissa * 2 ** exponent.

    Args:
        input: floating point.
        out: two tensors that receive the results.

    Returns:
        a named tuple (mantissa, exponent): sizes of at least 0.5 and less than 1, and int32.

    >>> clew.frexp(clew.tensor([1.0, -6.0])).mantissa
    tensor([ 0.5000, -0.7500])
    """
    if not isinstance(input, Tensor):
        need_tensors("frexp", input=input)
    dtype = input.dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"frexp() only supports floating-point dtypes; got {dtype}")
    if dtype is _dtypes.bfloat16:
        mantissa, exponent = in_memory_order(_frexp, input.float())
        mantissa = mantissa.to(dtype)
    else:
        mantissa, exponent = in_memory_order(_frexp, input)
    return write_out("frexp", frexp_result(mantissa, exponent), out)


@loops_in_vmap
def hash_tensor(
    input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None
) -> Tensor:
    """Hashes of elements: the exclusive or of their bits, as float64 or int64.

    Args:
        input: real.
        dim: the dimension or dimensions to reduce; all when empty.
        keepdim: keep reduced dimensions, of size 1.
        mode: 0.
        out: receives the result.

    Returns:
        a uint64 tensor.

    >>> clew.hash_tensor(clew.tensor([1, 2]))
    tensor(3, dtype=clew.uint64)
    """
    if not isinstance(input, Tensor):
        need_tensors("hash_tensor", input=input)
    if input.is_complex():
        raise NotImplementedError(f"hash_tensor: input must be real; got {input.dtype}")
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown hash_tensor mode: {mode}")
    given = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple(wrapped_dim("hash_tensor", d, input.ndim) for d in given)
    if not dims and input.numel() == 0:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    axes = tuple(range(input.ndim)) if not dims else dims if input.ndim else ()
    if input.is_meta:
        made = input.new_empty(input.shape).sum(axes, keepdim).to(_dtypes.uint64)
        return write_out("hash_tensor", made, out)
    wide = input.detach().to(_dtypes.float64 if input.is_floating_point() else _dtypes.int64)
    bits = wide.numpy().view(np.uint64)
    combine: Any = np.bitwise_xor.reduce
    made = _C.from_numpy(np.array(combine(bits, axis=axes, keepdims=keepdim), order="C"))
    return write_out("hash_tensor", made, out)
