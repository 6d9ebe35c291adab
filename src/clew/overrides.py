"""``__torch_function__``: classes that take calls of clew's functions over.

Two kinds of classes have a say. A class that is no tensor gets every call of an operation (and
every operator) that has an instance among its arguments and would otherwise fail. A subclass of
Tensor gets every method, operator and operation that is called on its instances; where it does not
define ``__torch_function__``, their results are of the subclass. Attributes such as ``shape`` are
not calls. Functions written in Python ask as operations do where PyTorch's functions would, and are
otherwise taken over at the operations they are made of. Parameters and classes with
``__torch_function__ = torch._C._disabled_torch_function_impl`` are left alone: operations on them
give plain tensors.
"""

from __future__ import annotations

from typing import Any

import clew

# Programs written for PyTorch ask for these here, and the core for the last.
from clew._base.function_modes import BaseTorchFunctionMode as BaseTorchFunctionMode
from clew._base.function_modes import TorchFunctionMode
from clew._base.overriding import (
    _OPERATORS,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    wrap_torch_function,
)
from clew._base.overriding import _dispatch as _dispatch
from clew._base.overriding import _get_current_function_mode as _get_current_function_mode
from clew._base.overriding import (
    _get_current_function_mode_stack as _get_current_function_mode_stack,
)
from clew._C import Tensor

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

for _function in (handle_torch_function, has_torch_function, is_tensor_like, wrap_torch_function):
    _function.__module__ = __name__  # where they are to be found


def resolve_name(f: Any) -> str | None:
    """The name of a function of the library, with its module.

    Args:
        f: the function.

    >>> clew.overrides.resolve_name(clew.Tensor.add), clew.overrides.resolve_name(clew.add)
    ('clew.Tensor.add', 'clew.add')
    """
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    library = Tensor.__module__  # as which it was imported
    if name in ("__get__", "__set__", "__delete__"):
        described = getattr(getattr(f, "own", f), "__self__", None)
        for attribute, own in vars(Tensor).items():
            if getattr(own, "raw", own) is described:  # a mode may stand before it
                return f"{library}.Tensor.{attribute}.{name}"
        return None
    for home in (clew, clew.nn.functional, clew.nn.init, clew.linalg, clew.fft, clew.special):
        if getattr(home, name, None) is f:
            return f"{library}{home.__name__.removeprefix('clew')}.{name}"
    return f"{library}.Tensor.{name}" if getattr(Tensor, name, None) is f else None


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether a function is a method of Tensor's.

    Args:
        func: the function.

    >>> clew.overrides.is_tensor_method_or_property(clew.Tensor.add)
    True
    """
    name = getattr(func, "__name__", "")
    return name == "__get__" or getattr(Tensor, name, None) is func


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions and methods that classes may take over, by where they are.

    >>> clew.add in clew.overrides.get_overridable_functions()[clew]
    True
    """
    found: dict[Any, list[Any]] = {}
    for home in (clew, clew.nn.functional, clew.linalg, clew.fft, clew.special):
        names = [n for n in dir(home) if not n.startswith("_")]
        parts = [getattr(home, n, None) for n in names]
        found[home] = [
            f for f in parts if callable(f) and not isinstance(f, type) and f is not clew.compile
        ]
    methods = [n for n in dir(Tensor) if not n.startswith("_") or n in _OPERATORS]
    found[Tensor] = [f for f in (getattr(Tensor, n, None) for n in methods) if callable(f)]
    return found


def get_ignored_functions() -> set[Any]:
    """Functions that no class takes over, such as those that make tensors.

    >>> clew.is_tensor in clew.overrides.get_ignored_functions()
    True
    """
    names = (
        "is_tensor is_storage zeros ones empty full eye rand randn randint arange linspace tensor"
    )
    return {getattr(clew, name) for name in names.split()}


def get_testing_overrides() -> dict[Any, Any]:
    """A stand-in for each function that classes may take over: it takes anything and returns -1.

    Returns:
        A dict from the functions to their stand-ins.

    Example:
        >>> from clew.overrides import get_testing_overrides
        >>> get_testing_overrides()[clew.add](1, 2)
        -1
    """
    return {
        f: (lambda *args, **kwargs: -1)
        for functions in get_overridable_functions().values()
        for f in functions
        if getattr(f, "__hash__", None)
    }


def enable_reentrant_dispatch() -> Any:
    """A block in which modes may be asked again; they always may, so it changes nothing.

    Example:
        >>> from clew.overrides import enable_reentrant_dispatch
        >>> with enable_reentrant_dispatch():
        ...     clew.ones(1) + 1
        tensor([2.])
    """
    import contextlib

    return contextlib.nullcontext()
