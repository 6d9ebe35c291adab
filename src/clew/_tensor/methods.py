"""Methods of Tensor that are written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.provenance import user_level
from clew._C import Tensor

if TYPE_CHECKING:
    from clew.storage import UntypedStorage
    from clew.utils.hooks import RemovableHandle


_cast_op = _C.ops._to_dtype


def _to_dtype(t: Tensor, dtype: _C.dtype) -> Tensor:
    return t if t.dtype is dtype else _cast_op(t, dtype=dtype)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype, device or memory format; itself when nothing changes.

    Args:
        args: any of a dtype, a device (or its name), another tensor whose dtype and device
            are taken.
        kwargs: dtype, device, non_blocking, copy, memory_format.

    >>> clew.ones(2).to(clew.float64).dtype
    clew.float64
    """
    if len(args) == 1 and not kwargs and type(args[0]) is _C.dtype:
        return _to_dtype(self, args[0])
    dtype, device, copy, memory_format = parse_to("to", args, kwargs)
    out = self
    if device is not None and device.type != self.device.type:
        if device.type != "cpu":  # on meta; elsewhere there is no memory to be had, which raises
            return Tensor.new_empty(self, self.size(), dtype=dtype or self.dtype, device=device)
        raise NotImplementedError(
            "to: a meta tensor has no data to copy; use Tensor.new_empty or Module.to_empty instead"
        )
    if dtype is not None and dtype is not self.dtype:
        out = _C.ops._to_dtype(self, dtype=dtype)
    elif copy:
        out = self.clone()
    if memory_format is not None and memory_format is not _dtypes.preserve_format:
        out = out.contiguous(memory_format=memory_format)
    return out


# What Python's types of numbers stand for where a dtype is asked for.
_PYTHON_TYPES = {
    float: _dtypes.float64,
    int: _dtypes.int64,
    bool: _dtypes.bool,
    complex: _dtypes.complex128,
}


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
        elif key == "memory_format":
            memory_format = value
        elif key != "non_blocking":
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    if isinstance(dtype, type):
        dtype = _PYTHON_TYPES.get(dtype, dtype)
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
    if dtype is None:
        return f"{_dtypes.home}.{_TYPE_NAMES[self.dtype]}"
    if isinstance(dtype, str):
        short = dtype.rsplit(".", 1)[-1]
        found = [d for d, n in _TYPE_NAMES.items() if n == short]
        if not found:
            raise ValueError(f"type: unknown type name {dtype!r}")
        if ".cuda." in dtype:
            self.cuda()  # raises: there is no such device
        dtype = found[0]
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


def _imatmul(self: Tensor, other: Any) -> Any:
    # The product has a shape of its own, so that it takes the tensor's name rather than its place.
    return self.__matmul__(other)


_TYPE_NAMES = {
    _dtypes.float32: "FloatTensor",
    _dtypes.float64: "DoubleTensor",
    _dtypes.float16: "HalfTensor",
    _dtypes.bfloat16: "BFloat16Tensor",
    _dtypes.uint8: "ByteTensor",
    _dtypes.uint16: "UInt16Tensor",
    _dtypes.uint32: "UInt32Tensor",
    _dtypes.uint64: "UInt64Tensor",
    _dtypes.int8: "CharTensor",
    _dtypes.int16: "ShortTensor",
    _dtypes.int32: "IntTensor",
    _dtypes.int64: "LongTensor",
    _dtypes.bool: "BoolTensor",
    _dtypes.float8_e4m3fn: "Float8_e4m3fnTensor",
    _dtypes.float8_e5m2: "Float8_e5m2Tensor",
    _dtypes.float8_e4m3fnuz: "Float8_e4m3fnuzTensor",
    _dtypes.float8_e5m2fnuz: "Float8_e5m2fnuzTensor",
    _dtypes.float8_e8m0fnu: "Float8_e8m0fnuTensor",
    _dtypes.complex32: "ComplexHalfTensor",
    _dtypes.complex64: "ComplexFloatTensor",
    _dtypes.complex128: "ComplexDoubleTensor",
}


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


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls a function whenever a gradient for this tensor is computed.

    Args:
        hook: hook(grad), where a tensor that it returns replaces the gradient.

    Returns:
        A handle, whose remove() takes the hook out.

    >>> x = clew.tensor(1.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: 2 * g)
    >>> (3 * x).backward()
    >>> x.grad
    tensor(6.)
    """
    from clew.autograd.hooks import attach_hook

    if _C._levels(self):
        from clew.autograd._batched import hook_of_samples

        hook = hook_of_samples(self, hook)
    return attach_hook(self._hooks_dict(), hook)


def _get_backward_hooks(self: Tensor) -> Any:
    hooks = self._hooks_dict() if self.requires_grad else None
    return hooks or None


def _set_backward_hooks(self: Tensor, hooks: Any) -> None:
    if not hooks and not self.requires_grad:
        return
    own = self._hooks_dict()
    new = list((hooks or {}).items())  # they may be the same dict
    own.clear()
    own.update(new)


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Calls a function after backward has added to this leaf's ``.grad``.

    Args:
        hook: hook(tensor).

    Returns:
        A handle, whose remove() takes the hook out.

    >>> x = clew.tensor(1.0, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad))
    >>> (3 * x).backward()
    tensor(3.)
    """
    from clew.autograd.hooks import attach_hook

    return attach_hook(self._post_accumulate_dict(), hook)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU, where it is already.

    >>> clew.ones(1).cpu().device
    device(type='cpu')
    """
    return self.to("cpu") if memory_format is None else self.to("cpu", memory_format=memory_format)


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


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both tensors have equal shapes.

    Args:
        other: a tensor.

    >>> clew.ones(2).is_same_size(clew.zeros(2))
    True
    """
    return self.shape == other.shape


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    from clew._tensor import pickling as _pickle

    return _pickle.deepcopy_tensor(self, memo)


def _reduce_ex(self: Tensor, protocol: int) -> Any:
    from clew._tensor import pickling as _pickle

    return _pickle.reduce_tensor(self, protocol)


def _repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    from clew._tensor import text as _tensor_str

    return _tensor_str._str(self, tensor_contents=tensor_contents)


def _format(self: Tensor, spec: str) -> str:
    if self.ndim == 0 and not self.is_meta:
        from clew._tensor.text import widen

        # Not through item(), which is a way out of the graph; this only shows the number.
        return widen(self._array_view(), self.dtype is _C.bfloat16).item().__format__(spec)
    return object.__format__(self, spec)


def _reversed(self: Tensor) -> Tensor:
    return self if self.ndim == 0 else self.flip(0)


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((self == element).any().item())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}"
    )


def _divmod(self: Any, other: Any) -> tuple[Tensor, Tensor]:
    return self // other, self % other


def _dir(self: Tensor) -> list[str]:
    return sorted(set(dir(type(self))) | set(self.__dict__))


def _warn_of_0d(self: Tensor, name: str) -> None:
    if self.ndim == 0:
        import warnings

        warnings.warn(
            f"Tensor.{name} is deprecated on 0-D tensors; it gives the tensor's value itself",
            UserWarning,
            stacklevel=user_level(),
        )


def _t_property(self: Tensor) -> Tensor:
    """The matrix with its dims exchanged: a view."""
    if self.ndim == 2:
        return self.transpose(0, 1)
    _warn_of_0d(self, "T")
    if self.ndim == 0:
        return self
    import warnings

    warnings.warn(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated; use "
        "`x.permute(*range(x.ndim - 1, -1, -1))`, or `x.mT` to transpose batches of matrices.",
        UserWarning,
        stacklevel=user_level(),
    )
    return self.permute(*range(self.ndim - 1, -1, -1)) if self.ndim > 1 else self


def _mt_property(self: Tensor) -> Tensor:
    """The matrices in the last two dims, each with its dims exchanged: a view."""
    _warn_of_0d(self, "mT")
    if self.ndim == 0:
        return self.transpose(0, 0)
    if self.ndim < 2:
        raise RuntimeError(
            f"mT: tensor.mT is only supported on matrices or batches of matrices; got "
            f"{self.ndim} dims"
        )
    return self.transpose(-2, -1)


def _h_property(self: Tensor) -> Tensor:
    """The matrix with its dims exchanged and its elements conjugated."""
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"H: tensor.H is only supported on matrices (2-D tensors); got {self.ndim} dims"
        )
    _warn_of_0d(self, "H")
    return self.conj() if self.ndim == 0 else self.transpose(0, 1).conj()


def _mh_property(self: Tensor) -> Tensor:
    """The matrices in the last two dims, each exchanged and conjugated."""
    return _mt_property(self).conj()


def _real(self: Tensor) -> Tensor:
    """The real part: a view of complex tensors, of real ones the tensor itself."""
    return _C.functions["real"](self)


def _imag(self: Tensor) -> Tensor:
    """The imaginary part of a complex tensor: a view."""
    return _C.functions["imag"](self)


def _set_real(self: Tensor, value: Any) -> None:
    _real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    _imag(self).copy_(value)


def _repr_html(self: Tensor) -> str | None:
    """What notebooks show."""
    from clew._tensor import html as _html

    return _html.tensor(self)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes behind the tensor, as an object that knows their address and number.

    >>> clew.ones(2).untyped_storage().nbytes()
    8
    """
    from clew.storage import _bytes_of

    return _bytes_of(self)


def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a call does unless a subclass says otherwise; see clew.overrides."""
    from clew._base import overriding as _overriding

    return _overriding._default(cls, func, types, args, kwargs)


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A class's __torch_function__ that leaves calls as they are."""
    from clew._base.overriding import DisableTorchFunctionSubclass

    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _no_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A class's __torch_dispatch__ that leaves operations as they are."""
    return func(*args, **(kwargs or {}))


@classmethod  # type: ignore[misc]
def _make_wrapper_subclass(
    _: Any,
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    **more: Any,
) -> Any:
    """A tensor of a class with `__torch_dispatch__` that has sizes and a dtype, and no elements.

    Args:
        cls: the class.
        size: sizes.
        strides: strides; those of a contiguous tensor when not given.
        storage_offset: accepted.
        memory_format: accepted.
        dtype: the dtype; the default one when not given.
        layout: accepted.
        device: what `device` says.
        pin_memory: accepted.
        requires_grad: whether it requires a gradient.
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"_make_wrapper_subclass: expected a subclass of Tensor; got {cls!r}")
    if not hasattr(cls, "__torch_dispatch__"):
        raise RuntimeError(
            f"_make_wrapper_subclass: {cls.__name__} has no __torch_dispatch__, which such tensors "
            "need: they have no elements"
        )
    size = tuple(size)
    if strides is None:
        plain = _C.empty(size, dtype=dtype, device="meta")
    else:
        plain = _C.empty_strided(size, tuple(strides), dtype=dtype, device="meta")
    made = Tensor._make_subclass(cls, plain, requires_grad)
    made.__dict__["_wrapper_device"] = _C.device(device or "cpu")
    if "device" not in vars(cls):
        known = property(lambda self: self.__dict__["_wrapper_device"])
        type.__setattr__(cls, "device", known)
    return made


def _found_late(name: str) -> Any:
    """What clew._C has besides the core's own: PyTorch's programs look for it there."""
    if name in ("DisableTorchFunction", "DisableTorchFunctionSubclass"):
        from clew._base import overriding as _overriding

        return getattr(_overriding, name)
    raise AttributeError(f"module 'clew._C' has no attribute '{name}'")


def _init_subclass(cls: Any, **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    dispatch = vars(cls).get("__torch_dispatch__")
    if dispatch is not None and getattr(dispatch, "__func__", dispatch) is not _no_dispatch:
        from clew._base import overriding as _overriding

        _overriding._take_dispatch(cls)
    own = cls.__torch_function__
    if getattr(own, "__func__", own) is not _disabled_torch_function_impl:
        from clew._base import overriding as _overriding

        _overriding._prepare(cls)


def install() -> None:
    """Sets the methods on the Tensor type."""
    methods: dict[str, Any] = {
        "to": to,
        "type": type_,
        "type_as": type_as,
        "is_contiguous": is_contiguous,
        "contiguous": contiguous,
        "clone": clone,
        "register_hook": register_hook,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
        "cpu": cpu,
        "cuda": cuda,
        "pin_memory": pin_memory,
        "is_pinned": is_pinned,
        "get_device": get_device,
        "is_same_size": is_same_size,
        "untyped_storage": untyped_storage,
        "__deepcopy__": _deepcopy,
        "__reduce_ex__": _reduce_ex,
        "__repr__": _repr,
        "_repr_html_": _repr_html,
        "__format__": _format,
        "__reversed__": _reversed,
        "__contains__": _contains,
        "__divmod__": _divmod,
        "__dir__": _dir,
        "__rdiv__": Tensor.__rtruediv__,
        "__torch_function__": classmethod(_torch_function),
        "_make_wrapper_subclass": _make_wrapper_subclass,
        "__init_subclass__": classmethod(_init_subclass),
        "__array_priority__": 1000,
        "T": property(_t_property),
        "mT": property(_mt_property),
        "H": property(_h_property),
        "mH": property(_mh_property),
        "real": property(_real, _set_real),
        "imag": property(_imag, _set_imag),
        "layout": property(lambda self: _dtypes.strided, doc="How elements lie in memory."),
        "_backward_hooks": property(_get_backward_hooks, _set_backward_hooks),
        "is_sparse_csr": False,
        "_cdata": property(id),  # a number that names the tensor, as PyTorch's address does
        "__module__": "clew",
        "to_device": _to_device,
        "__imatmul__": _imatmul,
    }
    for name, dtype in (
        ("float", _dtypes.float32),
        ("double", _dtypes.float64),
        ("half", _dtypes.float16),
        ("bfloat16", _dtypes.bfloat16),
        ("int", _dtypes.int32),
        ("long", _dtypes.int64),
        ("short", _dtypes.int16),
        ("char", _dtypes.int8),
        ("byte", _dtypes.uint8),
        ("bool", _dtypes.bool),
        ("chalf", _dtypes.complex32),
        ("cfloat", _dtypes.complex64),
        ("cdouble", _dtypes.complex128),
    ):
        methods[name] = _caster(name, dtype)
    named = "type __deepcopy__ __reduce_ex__ __repr__ __format__ __reversed__ __contains__"
    for name in named.split():  # as which modes and classes get them
        methods[name].__name__ = name
    for name, value in methods.items():
        setattr(Tensor, name, value)
    _C._disabled_torch_function_impl = _disabled_torch_function_impl
    vars(_C)["__getattr__"] = _found_late
