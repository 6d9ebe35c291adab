"""Tensors that a Module owns: Parameter, Buffer and their not-yet-shaped forms."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base.arguments import need_bools
from clew._base.overriding import aside
from clew._C import Tensor, empty

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """The class of Parameter: a tensor of another class is one, too, once it was made one."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False) is True
        )


def _rebuild_parameter(kind: Any, data: Any, requires_grad: Any, state: dict[str, Any]) -> Any:
    from clew._tensor.pickling import _finish

    made = _finish(kind, data, requires_grad)
    made.__dict__.update(state)
    return made


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module lists among its parameters when it is assigned as an attribute.

    Args:
        data: the initial value; shares its storage. None gives an empty tensor. Of a subclass
            whose `detach` gives that subclass the result is of it, too.
        requires_grad: whether gradients are computed for it.

    Example:
        >>> w = clew.nn.Parameter(clew.ones(2))
        >>> w.requires_grad
        True
    """

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor or None; got {type(data).__name__}")
        if requires_grad is not True and requires_grad is not False:
            need_bools("Parameter", requires_grad=requires_grad)
        if cls is Parameter and type(data) is not Tensor and not isinstance(data, Parameter):
            own = data.detach()
            if type(own) is type(data):
                own._is_param = True
                kept: Parameter = own.requires_grad_(requires_grad)
                return kept
        made: Parameter = Tensor._make_subclass(cls, aside(data.detach), requires_grad)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do; a subclass's `__new__` may take other arguments."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        import copy

        made = Tensor._make_subclass(type(self), self.detach().clone(), self.requires_grad)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        from clew._tensor.pickling import requires_grad_of

        data, grad = self.detach(), requires_grad_of(self)
        return _rebuild_parameter, (type(self), data, grad, dict(self.__dict__))


class Buffer(Tensor):
    """A tensor that a Module lists among its buffers when it is assigned as an attribute.

    Args:
        data: the value; None gives an empty tensor.
        persistent: whether the buffer is part of the module's state_dict.

    Example:
        >>> b = clew.nn.Buffer(clew.zeros(2), persistent=False)
        >>> b.persistent
        False
    """

    __torch_function__ = _C._disabled_torch_function_impl

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = empty(0)
        made: Buffer = Tensor._make_subclass(cls, aside(data.detach), data.requires_grad)
        made.persistent = persistent
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do; a subclass's `__new__` may take other arguments."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        made = Tensor._make_subclass(type(self), self.detach().clone(), self.requires_grad)
        made.__dict__.update(self.__dict__)
        memo[id(self)] = made
        return made

    __reduce_ex__ = Parameter.__reduce_ex__


# What may be done to a tensor without a shape.
_ALLOWED = frozenset(
    (
        "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char",
        "short", "int", "long", "cuda", "cpu", "to", "get_device", "__hash__",
    )
)  # fmt: skip
_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
    "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)


class UninitializedTensorMixin:
    """A tensor with a device and a dtype, and no shape until materialize().

    Example:
        >>> from clew.nn.parameter import UninitializedTensorMixin
        >>> isinstance(nn.UninitializedParameter(), UninitializedTensorMixin)
        True
    """

    cls_to_become: type

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives the tensor its shape; the values are uninitialised memory.

        Args:
            shape: the size.
            device: the device, the present one if None.
            dtype: the dtype, the present one if None.
        """
        this: Any = self
        device = this.device if device is None else device
        dtype = this.dtype if dtype is None else dtype
        this.data = empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    def share_memory_(self) -> Any:
        """Always refused: there is no memory to share yet."""
        raise RuntimeError(
            "share_memory_: an uninitialized parameter has no memory yet; call it after the "
            "first forward"
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    @property
    def shape(self) -> Any:
        """Always refused: it is not known yet."""
        raise RuntimeError(_NO_SHAPE)

    T = mT = H = mH = shape

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(getattr(func, "__name__", None) or type(func).__name__)
        if name in _ALLOWED or name == "__get__":
            return _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        raise ValueError(
            f"{name}: an uninitialized parameter or buffer has no shape yet; run the module "
            "once on an input (a dry run) so that it can be materialized"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A Parameter whose shape is found at the first forward of a lazy module.

    Args:
        requires_grad: whether gradients are computed for it.
        device: where it will live.
        dtype: what it will hold.

    Example:
        >>> p = clew.nn.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> tuple(p.shape)
        (2, 3)
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        made = type(self)(self.requires_grad, self.device, self.dtype)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A Buffer whose shape is found at the first forward of a lazy module.

    Args:
        requires_grad: whether gradients are computed for it.
        device: where it will live.
        dtype: what it will hold.
        persistent: whether it is part of the state_dict.

    Example:
        >>> from clew.nn import UninitializedBuffer
        >>> buffer = UninitializedBuffer()
        >>> buffer.materialize((2, 3))
        >>> buffer.shape
        clew.Size([2, 3])
    """

    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = empty(0, device=device, dtype=dtype)
        made: UninitializedBuffer = Tensor._make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        return made

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        made = type(self)(self.requires_grad, self.device, self.dtype, self.persistent)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer still waits for its shape.

    Args:
        param: any tensor.

    Returns:
        True for UninitializedParameter and UninitializedBuffer.

    >>> clew.nn.parameter.is_lazy(clew.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(param, UninitializedTensorMixin)
