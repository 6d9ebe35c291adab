"""The methods of Module that register hooks on one module."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ._hooks import RemovableHandle


class _WrappedHook:
    """A load_state_dict pre-hook, which may get the module, held weakly, first.

    PyTorch's files of whole modules have it by this name, also without a module.
    """

    def __init__(self, hook: Any, module: Any = None) -> None:
        self.hook = hook
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is not None:
            args = (self.module(), *args)
        return self.hook(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.module is not None}
        return state if self.module is None else {**state, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state.get("module"))  # type: ignore[misc]


# Functions, not methods: programs give modules attributes called `_hook`.
def _attach(
    module: Any, table: Any, hook: Any, prepend: bool = False, *flags: Any
) -> RemovableHandle:
    handle = RemovableHandle(table, extra_dict=[d for d, on in flags if on])
    table[handle.id] = hook
    for d, on in flags:
        if on:
            d[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    module.__dict__["_hooked"] = True
    return handle


class HookMethods:
    """A base of Module: the register_..._hook methods."""

    _backward_pre_hooks: Any
    _backward_hooks: Any
    _is_full_backward_hook: bool | None
    _forward_hooks: Any
    _forward_hooks_with_kwargs: Any
    _forward_hooks_always_called: Any
    _forward_pre_hooks: Any
    _forward_pre_hooks_with_kwargs: Any
    _state_dict_hooks: Any
    _state_dict_pre_hooks: Any
    _load_state_dict_pre_hooks: Any
    _load_state_dict_post_hooks: Any

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Runs hook(module, args) before each forward.

        Args:
            hook: may return new arguments.
            prepend: run it before the hooks already there.
            with_kwargs: the hook is hook(module, args, kwargs) and may return (args, kwargs).

        Returns:
            a handle whose remove() takes the hook out.
        """
        flag = (self._forward_pre_hooks_with_kwargs, with_kwargs)
        return _attach(self, self._forward_pre_hooks, hook, prepend, flag)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Runs hook(module, args, output) after each forward.

        Args:
            hook: may return a new output.
            prepend: run it before the hooks already there.
            with_kwargs: the hook is hook(module, args, kwargs, output).
            always_call: run it even when forward raises.

        Returns:
            a handle whose remove() takes the hook out.
        """
        flags = (
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        )
        return _attach(self, self._forward_hooks, hook, prepend, *flags)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Runs hook(module, grad_output) when the gradients of the outputs are known.

        Args:
            hook: may return new gradients.
            prepend: run it before the hooks already there.

        Returns:
            a handle whose remove() takes the hook out.
        """
        return _attach(self, self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Runs hook(module, grad_input, grad_output) when the gradients of the inputs are known.

        Args:
            hook: may return new gradients of the inputs.
            prepend: run it before the hooks already there.

        Returns:
            a handle whose remove() takes the hook out.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = True
        return _attach(self, self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Old form of register_full_backward_hook: sees the last operation of forward only.

        Args:
            hook: hook(module, grad_input, grad_output).

        Returns:
            a handle whose remove() takes the hook out.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = False
        return _attach(self, self._backward_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, prefix, keep_vars) before state_dict() collects.

        Args:
            hook: the function.

        Returns:
            a handle whose remove() takes the hook out.
        """
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, state_dict, prefix, local_metadata) after state_dict() collected.

        Args:
            hook: edits the given dict in place and returns None.

        Returns:
            a handle whose remove() takes the hook out.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return self._register_state_dict_hook(hook, _public=True)

    def _register_state_dict_hook(self, hook: Any, _public: bool = False) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False) and not _public:
            raise RuntimeError(
                "_register_state_dict_hook: this function is registered by "
                "register_state_dict_post_hook already"
            )
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, state_dict, prefix, ...) before a state dict is loaded.

        Args:
            hook: takes also local_metadata, strict, missing_keys, unexpected_keys, error_msgs.

        Returns:
            a handle whose remove() takes the hook out.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Any, with_module: bool = False
    ) -> RemovableHandle:
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = (
            _WrappedHook(hook, self) if with_module else hook
        )
        return handle

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs hook(module, incompatible_keys) after a state dict was loaded.

        Args:
            hook: may edit the two key lists in place.

        Returns:
            a handle whose remove() takes the hook out.
        """
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle
