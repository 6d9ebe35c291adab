"""Methods of Tensor that convert: to another dtype, device or memory format."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools
from clew._base.provenance import user_level
from clew._C import Tensor

_cast_op = _C.ops._to_dtype


_COMPLEX = frozenset((_dtypes.complex32, _dtypes.complex64, _dtypes.complex128))
_warned = False


def _warn_of_lost_parts() -> None:
    global _warned
    from clew._ops.modes import is_warn_always_enabled

    if not _warned or is_warn_always_enabled():
        warnings.warn(
            "Casting complex values to real discards the imaginary part; x.real says so",
            stacklevel=user_level(),
        )
        _warned = True


def _to_dtype(t: Tensor, dtype: _C.dtype) -> Tensor:
    own = t.dtype
    if own is dtype:
        return t
    if own in _COMPLEX and dtype not in _COMPLEX and dtype is not _dtypes.bool:
        _warn_of_lost_parts()
    return _cast_op(t, dtype=dtype)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype, device or memory format; itself when nothing changes.

    Args:
        args: any of a dtype, a device (or its name), another tensor whose dtype and device
            are taken.
        kwargs: dtype, device, non_blocking, copy, memory_format.

    >>> clew.ones(2).to(clew.float64).dtype
    clew.float64
    """
    # The usual forms, without a look at all arguments.
    if not kwargs:
        if len(args) == 1:
            (one,) = args
            if type(one) is _C.dtype:
                return _to_dtype(self, one)
            if _is_there(self, one):
                return self
        elif len(args) == 2 and type(args[1]) is _C.dtype and _is_there(self, args[0]):
            return _to_dtype(self, args[1])
    elif len(kwargs) == 1:
        if args:
            blocks = kwargs.get("non_blocking")
            if len(args) == 1 and type(blocks) is bool and _is_there(self, args[0]):
                return self
        elif _is_there(self, kwargs.get("device")):
            return self
    dtype, device, copy, memory_format = parse_to("to", args, kwargs)
    out = self
    if device is not None and device.type != self.device.type:
        if device.type != "cpu":  # on meta; elsewhere there is no memory to be had, which raises
            return Tensor.new_empty(self, self.size(), dtype=dtype or self.dtype, device=device)
        raise NotImplementedError(
            "to: a meta tensor has no data to copy; use Tensor.new_empty or Module.to_empty instead"
        )
    if dtype is not None and dtype is not self.dtype:
        out = _to_dtype(self, dtype)
    elif copy:
        out = self.clone()
    if memory_format is not None and memory_format is not _dtypes.preserve_format:
        out = out.contiguous(memory_format=memory_format)
    return out


def _is_there(self: Tensor, device: Any) -> bool:
    """Whether a device, or the name "cpu", is the tensor's; False for all else."""
    kind = type(device)
    if kind is _C.device:
        return bool(self.device == device)
    return kind is str and device == "cpu" and not self.is_meta


def parse_to(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[_C.dtype | None, _C.device | None, Any, Any]:
    """Reads the arguments of ``to``: (dtype, device, copy, memory_format)."""
    dtype = device = memory_format = None
    copy = False
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        dtype, device = rest[0].dtype, rest[0].device
        rest.pop(0)
    else:
        if rest and (rest[0] is None or isinstance(rest[0], (str, _C.device))):
            device = None if rest[0] is None else _C.device(rest[0])
            rest.pop(0)
        if rest and (isinstance(rest[0], _C.dtype) or isinstance(rest[0], type)):
            dtype = rest.pop(0)
    if rest:
        if not isinstance(rest[0], bool):
            raise TypeError(f"{name}(): expected a dtype, a device or a Tensor; got {rest[0]!r}")
        rest.pop(0)  # non_blocking: copies on the CPU never block
    if rest:
        copy = rest.pop(0)
    if rest:
        raise TypeError(f"{name}(): too many arguments: {rest!r}")
    for key, value in kwargs.items():
        if key == "dtype":
            dtype = value
        elif key == "device":
            device = None if value is None else _C.device(value)
        elif key == "other":
            dtype, device = value.dtype, value.device
        elif key == "copy":
            copy = value
        elif key == "non_blocking":  # copies on the CPU never block
            need_bools(name, non_blocking=value)
        elif key == "memory_format":
            memory_format = value
        else:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    if copy is not False:
        need_bools(name, copy=copy)
    if isinstance(dtype, type):
        dtype = _dtypes.PYTHON_TYPES.get(dtype, dtype)
    if dtype is not None and not isinstance(dtype, _C.dtype):
        raise TypeError(
            f"{name}(): dtype must be a clew.dtype, such as clew.float32; got {dtype!r}"
        )
    return dtype, device, copy, memory_format


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the tensor converted to ``dtype``.

    Args:
        dtype: a dtype, a type such as `clew.LongTensor`, or its name; None for the name of the own.
        non_blocking: not used.

    >>> clew.ones(1).type()
    'clew.FloatTensor'
    """
    need_bools("type", non_blocking=non_blocking)
    if dtype is None:
        return f"{_dtypes.home}.{_dtypes.TENSOR_NAMES[self.dtype]}"
    if isinstance(dtype, str):
        found = _dtypes.TENSOR_DTYPES.get(dtype.rpartition(".")[2])
        if found is None:
            raise ValueError(f"type: unknown type name {dtype!r}")
        if ".cuda." in dtype:
            self.cuda()  # raises: there is no such device
        dtype = found
    elif dtype is Tensor:
        dtype = _C.get_default_dtype()
    elif not isinstance(dtype, _C.dtype) and hasattr(dtype, "is_cuda"):  # such as clew.LongTensor
        if dtype.is_cuda:
            self.cuda()
        dtype = dtype.dtype
    return _to_dtype(self, dtype)


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device, by the Array API's name.

    Args:
        device: the device.
        stream: None; a CPU has no streams.

    >>> clew.ones(1).to_device("cpu")
    tensor([1.])
    """
    if stream is not None:
        raise ValueError("to_device: a CPU has no streams; stream must be None")
    return self.to(device=device)


def _caster(name: str, dtype: _C.dtype) -> Callable[..., Tensor]:
    def cast(self: Tensor, memory_format: Any = None) -> Tensor:
        out = _to_dtype(self, dtype)
        if memory_format is None or memory_format is _dtypes.preserve_format:
            return out
        return out.contiguous(memory_format=memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"""The tensor as {dtype}; itself when it is that.

    >>> clew.ones(2).{name}().dtype
    {dtype}
    """
    return cast


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype of ``other``; itself when it has it.

    Args:
        other: a tensor.

    >>> clew.ones(1).type_as(clew.tensor([2]))
    tensor([1])
    """
    return _to_dtype(self, other.dtype)


def _strides_for(shape: Any, memory_format: Any) -> tuple[int, ...] | None:
    """The strides a memory format gives to a shape; None for contiguous."""
    if memory_format in (None, _dtypes.contiguous_format, _dtypes.preserve_format):
        return None
    if memory_format is _dtypes.channels_last:
        if len(shape) != 4:
            raise RuntimeError(
                f"channels_last: required rank 4 tensor to use channels_last format; got "
                f"{len(shape)} dims"
            )
        order: tuple[int, ...] = (0, 2, 3, 1)
    elif memory_format is _dtypes.channels_last_3d:
        if len(shape) != 5:
            raise RuntimeError(
                f"channels_last_3d: required rank 5 tensor to use channels_last_3d format; got "
                f"{len(shape)} dims"
            )
        order = (0, 2, 3, 4, 1)
    else:
        raise TypeError(f"memory_format must be a clew.memory_format; got {memory_format!r}")
    strides = [0] * len(shape)
    step = 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in memory in the order of the dims (or of ``memory_format``).

    >>> clew.ones(2, 3).is_contiguous(), clew.ones(2, 3).t().is_contiguous()
    (True, False)
    """
    if memory_format in (None, _dtypes.contiguous_format, _dtypes.preserve_format):
        return self._is_contiguous()
    try:
        wanted = _strides_for(self.shape, memory_format)
    except RuntimeError:
        return False
    return all(
        n == 1 or have == want for n, have, want in zip(self.shape, self.stride(), wanted or ())
    )


_contiguous_op = _C.ops.contiguous


_clone_op = _C.functions["clone"]


def _in_format(t: Tensor, memory_format: Any) -> Tensor:
    """A copy of t laid out in memory_format, recorded."""
    strides = _strides_for(t.shape, memory_format)
    order = (
        sorted(range(t.ndim), key=lambda d: (strides[d], -d), reverse=True)
        if strides
        else list(range(t.ndim))
    )
    inverse = [order.index(d) for d in range(t.ndim)]
    return _contiguous_copy(t.permute(order)).permute(inverse)


def _contiguous_copy(t: Tensor) -> Tensor:
    return _clone_op(t) if t._is_contiguous() else _contiguous_op(t)


def contiguous(self: Tensor, memory_format: Any = _dtypes.contiguous_format) -> Tensor:
    """The tensor itself when its elements lie in the order asked for, else a copy that does.

    Args:
        memory_format: `clew.contiguous_format`, `clew.channels_last` (4 dims) or
            `clew.channels_last_3d` (5 dims).

    >>> clew.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if memory_format is _dtypes.contiguous_format:
        return _contiguous_op(self)
    if memory_format is _dtypes.preserve_format:
        raise RuntimeError(
            "contiguous: preserve memory format is unsupported by the contiguous operator"
        )
    return self if is_contiguous(self, memory_format) else _in_format(self, memory_format)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy of the tensor, recorded, so that gradients flow through it.

    Args:
        input: the tensor.
        memory_format: the order of the dims in memory; kept when None.

    Returns:
        a new tensor.

    >>> clew.ones(2).clone()
    tensor([1., 1.])
    """
    if not isinstance(input, Tensor) and hasattr(type(input), "__torch_function__"):
        from clew._base.overriding import handle_torch_function

        more = {} if memory_format is None else {"memory_format": memory_format}
        return handle_torch_function(clone, (input,), input, **more)
    if memory_format is None or memory_format is _dtypes.preserve_format:
        return _clone_op(input)
    if memory_format is _dtypes.contiguous_format:
        return _contiguous_copy(input)
    return _in_format(input, memory_format)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU, where it is already.

    >>> clew.ones(1).cpu().device
    device(type='cpu')
    """
    if memory_format is None and not self.is_meta:
        return self
    return self.to("cpu", memory_format=memory_format)


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """The tensor on a CUDA device; here it raises: there is none.

    Args:
        device: not used.
        non_blocking: not used.
        memory_format: not used.

    Raises:
        RuntimeError: always.

    >>> clew.ones(1).cuda()
    Traceback (most recent call last):
    RuntimeError: cuda: clew runs on the CPU here; there is no CUDA device ...
    """
    raise RuntimeError(
        "cuda: clew runs on the CPU here; there is no CUDA device (clew.cuda.is_available() is "
        "False)"
    )


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: without an accelerator there is nothing to pin for.

    Args:
        device: not used.

    >>> clew.ones(1).pin_memory()
    tensor([1.])
    """
    return self


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is pinned: False, for there is no accelerator.

    Args:
        device: not used.

    >>> clew.ones(1).is_pinned()
    False
    """
    return False


def get_device(self: Tensor) -> int:
    """-1, as for every CPU tensor.

    >>> clew.ones(1).get_device()
    -1
    """
    return -1


# By the names that they have on Tensor.
METHODS: dict[str, Any] = {
    "to": to,
    "to_device": _to_device,
    "type": type_,
    "type_as": type_as,
    "is_contiguous": is_contiguous,
    "contiguous": contiguous,
    "clone": clone,
    "cpu": cpu,
    "cuda": cuda,
    "pin_memory": pin_memory,
    "is_pinned": is_pinned,
    "get_device": get_device,
}
for _name, _dtype in (
    *_dtypes.CASTS.items(),
    ("chalf", _dtypes.complex32),
    ("cfloat", _dtypes.complex64),
    ("cdouble", _dtypes.complex128),
):
    METHODS[_name] = _caster(_name, _dtype)
