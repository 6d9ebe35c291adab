"""Parametrizations: a module's tensor computed from other parameters at each access."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import clew

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_caching = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within it a parametrized tensor is computed once, at its first access.

    Returns:
        a context manager.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(2, 2))
        >>> with clew.nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _put(module: Any, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set(dest: Any, src: Any) -> None:
    """dest becomes src, in place where the memory can stay."""
    same = dest.dtype == src.dtype and dest.device == src.device and dest.shape == src.shape
    if same:
        dest.copy_(src)
    else:
        dest.data = src.data


class ParametrizationList(ModuleList):
    """The chain of parametrizations of one tensor, with the tensor or tensors it starts from.

    Args:
        modules: the first parametrizations, at least one.
        original: the tensor as it was.
        unsafe: skip the checks of shape and dtype.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(3, 2))
        >>> chain = layer.parametrizations.weight
        >>> len(chain), chain.ntensors, list(chain.original0.shape)
        (1, 2, [2, 1])
    """

    original: Any
    unsafe: bool

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with clew.no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass  # this one cannot be inverted: the original starts as it is
        if not isinstance(new, clew.Tensor) and not isinstance(new, list | tuple):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, clew.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, clew.Tensor):
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with clew.no_grad():
                _set(original, new)
            _put(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, clew.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {i} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _put(self, f"original{i}", part)
        if not unsafe:
            value = self()
            if not isinstance(value, clew.Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(value).__name__}."
                )
            if value.dtype != dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless "
                    f"`unsafe` flag is enabled.\nunparametrized dtype: {dtype}\nparametrized "
                    f"dtype: {value.dtype}"
                )
            if value.shape != shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless "
                    f"`unsafe` flag is enabled.\nunparametrized shape: {shape}\nparametrized "
                    f"shape: {value.shape}"
                )

    def right_inverse(self, value: Any) -> None:
        """Sets the originals such that the parametrized tensor becomes a value.

        Args:
            value: the tensor.
        """
        with clew.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, clew.Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while "
                        f"`original` has dtype {self.original.dtype}"
                    )
                _set(self.original, value)
            else:
                if not isinstance(value, list | tuple):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. Got "
                        f"{type(value).__name__}."
                    )
                if len(value) != self.ntensors:
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors of length "
                        f"{self.ntensors}. Got a sequence of length {len(value)}."
                    )
                for i, part in enumerate(value):
                    own = getattr(self, f"original{i}")
                    if not isinstance(part, clew.Tensor):
                        raise ValueError(
                            f"`right_inverse` must return a sequence of tensors. Got element {i} "
                            "of "
                            f"type {type(part).__name__}"
                        )
                    if own.dtype != part.dtype:
                        raise ValueError(
                            f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while "
                            f"`original{i}` has dtype {own.dtype}"
                        )
                    _set(own, part)

    def forward(self) -> Any:
        chain = list(self)
        if self.is_tensor:
            value = chain[0](self.original)
        else:
            value = chain[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in chain[1:]:
            value = module(value)
        return value


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if _caching:
            key = (id(self), name)
            value = _cache.get(key)
            if value is None:
                value = _cache[key] = self.parametrizations[name]()
            return value
        return self.parametrizations[name]()

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _own_class(module: Any) -> None:
    """Gives the module a class of its own, so that properties can be set on it."""
    cls = type(module)

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See "
            "state_dict() and load_state_dict()."
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    space: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        space["__deepcopy__"] = deepcopy
    space["__module__"] = cls.__module__
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), space)


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Makes a module's tensor the result of another module.

    Args:
        module: the owner of the tensor.
        tensor_name: the parameter's or buffer's name.
        parametrization: a module from the original tensor to the tensor; its right_inverse, if it
            has one, is used to set it.
        unsafe: skip the checks of shape and dtype.

    Returns:
        the same module.

    Example:
        >>> class Double(clew.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> layer = clew.nn.Linear(2, 2)
        >>> before = layer.weight.detach().clone()
        >>> _ = clew.nn.utils.parametrize.register_parametrization(layer, "weight", Double())
        >>> bool((layer.weight == 2 * before).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain = module.parametrizations[tensor_name]
        if not unsafe:
            now = getattr(module, tensor_name)
            value = parametrization(now)
            if not isinstance(value, clew.Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(value).__name__}."
                )
            if value.dtype != now.dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, "
                    "unless the "
                    f"`unsafe` flag is enabled.\nmodule.{tensor_name}.dtype: {now.dtype}\n"
                    f"parametrization(module.{tensor_name}).dtype: {value.dtype}"
                )
            if value.shape != now.shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, "
                    "unless the "
                    f"`unsafe` flag is enabled.\nmodule.{tensor_name}.shape: {now.shape}\n"
                    f"parametrization(module.{tensor_name}).shape: {value.shape}"
                )
            if hasattr(parametrization, "right_inverse"):
                back = parametrization.right_inverse(value)
                if not isinstance(back, clew.Tensor) or back.dtype != now.dtype:
                    raise ValueError(
                        "parametrization.right_inverse must return a tensor of the same dtype"
                    )
                if back.shape != now.shape:
                    raise ValueError(
                        "parametrization.right_inverse must return a tensor of the same shape"
                    )
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        chain = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            "with "
            f"name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is parametrized.

    Args:
        module: the module.
        tensor_name: the tensor's name; None asks for any.

    Returns:
        True or False.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(2, 2))
        >>> is_parametrized = clew.nn.utils.parametrize.is_parametrized
        >>> is_parametrized(layer), is_parametrized(layer, "bias")
        (True, False)
    """
    table = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(table, ModuleDict):
        return False
    return len(table) > 0 if tensor_name is None else tensor_name in table


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Undoes all parametrizations of a tensor.

    Args:
        module: the module.
        tensor_name: the tensor's name.
        leave_parametrized: keep the parametrized value, not the original one.

    Returns:
        the same module.

    Raises:
        ValueError: if the tensor is not parametrized.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(2, 2))
        >>> _ = clew.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> type(layer).__name__, isinstance(layer.weight, clew.nn.Parameter)
        ('Linear', True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with clew.no_grad():
                value = getattr(module, tensor_name)
            with clew.no_grad():
                _set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized "
            "in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _put(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that a module had before it was parametrized.

    Args:
        module: the module.

    Returns:
        the class.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(2, 2))
        >>> clew.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Gives a module the parametrizations of another and the parameters they start from.

    Args:
        from_module: the source.
        to_module: the target.
        tensor_name: one tensor's name; None takes all.

    Returns:
        the target.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(2, 2))
        >>> parametrize = clew.nn.utils.parametrize
        >>> other = parametrize.transfer_parametrizations_and_params(layer, clew.nn.Linear(2, 2))
        >>> bool((other.weight == layer.weight).all())
        True
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, copy.deepcopy(getattr(from_module, name)))
        for step in from_module.parametrizations[name]:
            register_parametrization(to_module, name, step)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        if source.is_tensor:
            target.original = source.original
        else:
            for i in range(source.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module
