"""Methods of Tensor that are written in Python; conversions.py has those that convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.provenance import user_level
from clew._C import Tensor
from clew._tensor import conversions

if TYPE_CHECKING:
    from clew.storage import UntypedStorage
    from clew.utils.hooks import RemovableHandle


def _imatmul(self: Tensor, other: Any) -> Any:
    # The product has a shape of its own, so that it takes the tensor's name rather than its place.
    return self.__matmul__(other)


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
        **conversions.METHODS,
        "register_hook": register_hook,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
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
        # Names of Python 2's, which wrappers of programs still list.
        "__div__": Tensor.__truediv__,
        "__idiv__": Tensor.__itruediv__,
        "__long__": Tensor.__int__,
        "__nonzero__": Tensor.__bool__,
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
        "__imatmul__": _imatmul,
    }
    named = "type __deepcopy__ __reduce_ex__ __repr__ __format__ __reversed__ __contains__"
    for name in named.split():  # as which modes and classes get them
        methods[name].__name__ = name
    for name, value in methods.items():
        setattr(Tensor, name, value)
    _C._disabled_torch_function_impl = _disabled_torch_function_impl
    vars(_C)["__getattr__"] = _found_late
