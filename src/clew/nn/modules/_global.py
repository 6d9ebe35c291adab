"""Hooks that every module runs; module.py offers these functions under their public names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _hooks
from ._hooks import RemovableHandle


def _global(table: Any, hook: Any, **extra: Any) -> RemovableHandle:
    handle = RemovableHandle(table, extra_dict=[d for d, on in extra.values() if on])
    table[handle.id] = hook
    for d, on in extra.values():
        if on:
            d[handle.id] = True
    _hooks.switch_on()
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, args) before every module's forward.

    Args:
        hook: may return new arguments.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_forward_pre_hook(
    ...     lambda module, args: print(type(module).__name__)
    ... )
    >>> y = clew.nn.ReLU()(clew.ones(1))
    ReLU
    >>> handle.remove()
    """
    return _global(_hooks.global_forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Runs hook(module, args, output) after every module's forward.

    Args:
        hook: may return a new output.
        with_kwargs: the hook is hook(module, args, kwargs, output).
        always_call: run it even when forward raises.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_forward_hook(
    ...     lambda module, args, out: print(type(module).__name__)
    ... )
    >>> y = clew.nn.ReLU()(clew.ones(1))
    ReLU
    >>> handle.remove()
    """
    return _global(
        _hooks.global_forward,
        hook,
        a=(_hooks.global_forward_with_kwargs, with_kwargs),
        b=(_hooks.global_forward_always, always_call),
    )


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, grad_output) before every module's backward.

    Args:
        hook: may return new gradients of the outputs.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_full_backward_pre_hook(
    ...     lambda module, grad_out: print(grad_out)
    ... )
    >>> clew.nn.ReLU()(clew.ones(1, requires_grad=True)).backward()
    (tensor([1.]),)
    >>> handle.remove()
    """
    return _global(_hooks.global_backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, grad_input, grad_output) after every module's backward.

    Args:
        hook: may return new gradients of the inputs.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_full_backward_hook(
    ...     lambda module, grad_in, grad_out: print(grad_out)
    ... )
    >>> clew.nn.ReLU()(clew.ones(1, requires_grad=True)).backward()
    (tensor([1.]),)
    >>> handle.remove()
    """
    if _hooks.global_backward_is_full is False:
        raise RuntimeError(
            "register_module_full_backward_hook: global hooks of the old kind are registered; "
            "use only one of the two kinds"
        )
    _hooks.global_backward_is_full = True
    return _global(_hooks.global_backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Old form of register_module_full_backward_hook: sees the last operation of a module only.

    Args:
        hook: hook(module, grad_input, grad_output).

    Returns:
        a handle whose remove() takes the hook out.
    """
    if _hooks.global_backward_is_full is True:
        raise RuntimeError(
            "register_module_backward_hook: global full backward hooks are registered; "
            "use only one of the two kinds"
        )
    _hooks.global_backward_is_full = False
    return _global(_hooks.global_backward, hook)


def _registration(table: Any, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, parameter) whenever a parameter is registered; it may return another.

    Args:
        hook: the function.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_parameter_registration_hook(
    ...     lambda module, name, parameter: print(name)
    ... )
    >>> layer = clew.nn.Linear(1, 1, bias=False)
    weight
    >>> handle.remove()
    """
    return _registration(_hooks.global_parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, buffer) whenever a buffer is registered; it may return another.

    Args:
        hook: the function.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_buffer_registration_hook(
    ...     lambda module, name, buffer: print(name)
    ... )
    >>> clew.nn.Module().register_buffer("count", clew.zeros(1))
    count
    >>> handle.remove()
    """
    return _registration(_hooks.global_buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, child) whenever a child is registered; it may return another.

    Args:
        hook: the function.

    Returns:
        a handle whose remove() takes the hook out.

    >>> handle = clew.nn.modules.module.register_module_module_registration_hook(
    ...     lambda module, name, child: print(name)
    ... )
    >>> model = clew.nn.Sequential(clew.nn.ReLU())
    0
    >>> handle.remove()
    """
    return _registration(_hooks.global_module_registration, hook)
