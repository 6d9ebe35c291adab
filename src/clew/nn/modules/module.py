"""Module: a tree of parameters, buffers and children with a forward; the base class of everything in nn."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import clew

from ..parameter import Buffer, Parameter, UninitializedTensorMixin
from . import _hooks, _state
from ._hooks import RemovableHandle, call_with_hooks

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")
_IncompatibleKeys = _state.IncompatibleKeys
_EXTRA_STATE_KEY_SUFFIX = _state.EXTRA

# True once a hook for every module was registered; a module without hooks then still looks for them.
_any_global = False


def _global(table: Any, hook: Any, **extra: Any) -> RemovableHandle:
    global _any_global
    handle = RemovableHandle(table, extra_dict=[d for d, on in extra.values() if on])
    table[handle.id] = hook
    for d, on in extra.values():
        if on:
            d[handle.id] = True
    _any_global = True
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, args) before every module's forward.

    Args:
        hook: may return new arguments.

    Returns:
        a handle whose remove() takes the hook out.
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
    """
    return _global(_hooks.global_backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, grad_input, grad_output) after every module's backward.

    Args:
        hook: may return new gradients of the inputs.

    Returns:
        a handle whose remove() takes the hook out.
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
    """
    return _registration(_hooks.global_parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, buffer) whenever a buffer is registered; it may return another.

    Args:
        hook: the function.

    Returns:
        a handle whose remove() takes the hook out.
    """
    return _registration(_hooks.global_buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Runs hook(module, name, child) whenever a child is registered; it may return another.

    Args:
        hook: the function.

    Returns:
        a handle whose remove() takes the hook out.
    """
    return _registration(_hooks.global_module_registration, hook)


def _registered(table: Any, module: Any, name: str, value: Any) -> Any:
    for hook in table.values():
        answer = hook(module, name, value)
        if answer is not None:
            value = answer
    return value


def _addindent(text: str, spaces: int) -> str:
    return text.replace("\n", "\n" + " " * spaces)


_NO_INIT = "cannot assign {} before Module.__init__() call"

# Assigning one of these as a whole may put hooks in.
_HOOK_TABLES = frozenset(
    ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
)


class Module:
    """Base class of all models: subclasses assign parameters and children as attributes and write forward().

    Example:
        >>> class Line(clew.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.a = clew.nn.Parameter(clew.ones(()))
        ...     def forward(self, x):
        ...         return self.a * x
        >>> [name for name, _ in Line().named_parameters()]
        ['a']
    """

    dump_patches: bool = False
    call_super_init: bool = False
    training: bool
    _version: int = 1
    _hooked: bool = False
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    forward: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:  # type: ignore[no-redef]  # noqa: F811
        """What the module computes; every subclass writes its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # Without hooks a call costs one test and forward itself.
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked or _any_global:
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = __call__

    # ---- attributes -------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            members = own.get(table)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError(_NO_INIT.format("parameters"))
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as parameter '{name}' "
                    "(nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError(_NO_INIT.format("module"))
            self._forget(name, "_parameters", "_buffers")
            if _hooks.global_module_registration:
                value = _registered(_hooks.global_module_registration, self, name, value)
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' "
                    "(nn.Module or None expected)"
                )
            modules[name] = value
            return
        buffers = own.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if buffers is None:
                raise AttributeError(_NO_INIT.format("buffers"))
            if value is not None and not isinstance(value, clew.Tensor):
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as buffer '{name}' "
                    "(nn.Buffer, clew.Tensor or None expected)"
                )
            if _hooks.global_buffer_registration:
                value = _registered(_hooks.global_buffer_registration, self, name, value)
            if name not in buffers:
                self._forget(name, "_parameters", "_modules")
                self.register_buffer(name, value, value.persistent)
            else:
                buffers[name] = value
            return
        if name in _HOOK_TABLES:
            own["_hooked"] = True
        object.__setattr__(self, name, value)

    def _forget(self, name: str, *tables: str) -> None:
        own = self.__dict__
        own.pop(name, None)
        for table in tables:
            own[table].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        for table in (self._parameters, self._buffers, self._modules):
            names.update(table)
        return sorted(n for n in names if not n[:1].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        fresh: Any = Module()
        self.__dict__.update({k: v for k, v in fresh.__dict__.items() if k not in state})
        self.__dict__.update(state)

    # ---- registration -----------------------------------------------------------------------

    def register_parameter(self, name: str, param: Any) -> None:
        """Adds a parameter.

        Args:
            name: the attribute's name.
            param: a Parameter, or None for a parameter that is left out.
        """
        params = self._new_name(name, "parameter", self.__dict__.get("_parameters"))
        if param is None:
            params[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' "
                "(nn.Parameter or None required)"
            )
        if not isinstance(param, UninitializedTensorMixin) and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly. To express it as a function of another Tensor, compute the "
                "value in the forward() method."
            )
        if _hooks.global_parameter_registration:
            param = _registered(_hooks.global_parameter_registration, self, name, param)
        params[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Adds a buffer: a tensor that is state but not a parameter.

        Args:
            name: the attribute's name.
            tensor: the tensor, or None for a buffer that is left out.
            persistent: whether state_dict() contains it.
        """
        buffers = self._new_name(name, "buffer", self.__dict__.get("_buffers"))
        if tensor is not None and not isinstance(tensor, clew.Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' "
                "(clew Tensor or None required)"
            )
        if _hooks.global_buffer_registration:
            tensor = _registered(_hooks.global_buffer_registration, self, name, tensor)
        buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def _new_name(self, name: Any, kind: str, table: Any) -> Any:
        if table is None:
            raise AttributeError(_NO_INIT.format(kind))
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        return table

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child.

        Args:
            name: the attribute's name.
            module: a Module, or None.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {_type_name(name)}")
        if name not in self._modules and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _registered(_hooks.global_module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of add_module().

        Args:
            name: the attribute's name.
            module: a Module, or None.
        """
        self.add_module(name, module)

    # ---- members ----------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path.

        Args:
            target: for example "encoder.layers.0"; "" is the module itself.

        Returns:
            the module.
        """
        found: Any = self
        for part in target.split(".") if target else []:
            if not hasattr(found, part):
                raise AttributeError(f"{found._get_name()} has no attribute `{part}`")
            found = getattr(found, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replaces, or adds, the module at a dotted path.

        Args:
            target: the path.
            module: what is put there.
            strict: demand that the path exists already.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.

        Args:
            target: for example "fc.weight".

        Returns:
            the Parameter.
        """
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> clew.Tensor:
        """The buffer at a dotted path.

        Args:
            target: for example "norm.running_mean".

        Returns:
            the tensor.
        """
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return owner._buffers[name]

    def get_extra_state(self) -> Any:
        """What a subclass wants in its state_dict beside tensors; none by default."""
        raise RuntimeError(
            "get_extra_state: this class has none; write get_extra_state() and set_extra_state() "
            "in the subclass"
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes back what get_extra_state() gave.

        Args:
            state: the loaded state.
        """
        raise RuntimeError(
            "set_extra_state: this class has none; write get_extra_state() and set_extra_state() "
            "in the subclass"
        )

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, owner in owners:
            for name, value in get_members_fn(owner):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters.

        Args:
            recurse: the children's too.

        Returns:
            an iterator; each parameter comes once.
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names.

        Args:
            prefix: put before every name.
            recurse: the children's too.
            remove_duplicate: give a shared parameter once.

        Returns:
            an iterator of (name, parameter).
        """
        return self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[clew.Tensor]:
        """All buffers.

        Args:
            recurse: the children's too.

        Returns:
            an iterator.
        """
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, clew.Tensor]]:
        """All buffers with their dotted names.

        Args:
            prefix: put before every name.
            recurse: the children's too.
            remove_duplicate: give a shared buffer once.

        Returns:
            an iterator of (name, tensor).
        """
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children with their names, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and everything below it.

        Args:
            remove_duplicate: give a shared module once.

        Returns:
            an iterator.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and everything below it, with dotted names.

        Args:
            memo: modules seen already.
            prefix: put before every name.
            remove_duplicate: give a shared module once.

        Returns:
            an iterator of (name, module).
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)

    # ---- hooks ------------------------------------------------------------------------------

    def _hook(self, table: Any, hook: Any, prepend: bool = False, *flags: Any) -> RemovableHandle:
        handle = RemovableHandle(table, extra_dict=[d for d, on in flags if on])
        table[handle.id] = hook
        for d, on in flags:
            if on:
                d[handle.id] = True
        if prepend:
            table.move_to_end(handle.id, last=False)
        self.__dict__["_hooked"] = True
        return handle

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
        return self._hook(self._forward_pre_hooks, hook, prepend, flag)

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
        return self._hook(self._forward_hooks, hook, prepend, *flags)

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
        return self._hook(self._backward_pre_hooks, hook, prepend)

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
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = True
        return self._hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Old form of register_full_backward_hook: sees the last operation of forward only.

        Args:
            hook: hook(module, grad_input, grad_output).

        Returns:
            a handle whose remove() takes the hook out.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = False
        return self._hook(self._backward_hooks, hook)

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
            _WithModule(hook, self) if with_module else hook
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

    # ---- state ------------------------------------------------------------------------------

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        _state.save_own(self, destination, prefix, keep_vars)

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by dotted name.

        Args:
            args: destination, prefix, keep_vars by position (the old form).
            destination: a dict to fill.
            prefix: put before every name.
            keep_vars: give the parameters themselves, not detached tensors.

        Returns:
            an ordered dict.
        """
        if args:
            warnings.warn(
                "state_dict: positional arguments are deprecated; name them",
                FutureWarning,
                stacklevel=2,
            )
            if destination is None:
                destination = args[0]
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        return _state.state_dict(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        _state.load_own(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copies parameters and buffers from a state dict.

        Args:
            state_dict: what state_dict() gave.
            strict: raise if a key is missing or left over.
            assign: take the given tensors themselves instead of copying their values.

        Returns:
            a named tuple (missing_keys, unexpected_keys).
        """
        return _state.load_state_dict(self, state_dict, strict, assign)

    def train(self: T, mode: bool = True) -> T:
        """Puts the module and its children into training mode.

        Args:
            mode: False is eval().

        Returns:
            the module.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: T) -> T:
        """Puts the module and its children into evaluation mode.

        Returns:
            the module.
        """
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets requires_grad of every parameter.

        Args:
            requires_grad: the value.

        Returns:
            the module.
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters.

        Args:
            set_to_none: drop them; False fills them with zeros.
        """
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # ---- conversion -------------------------------------------------------------------------

    def _apply(self: T, fn: Callable[[Any], Any], recurse: bool = True) -> T:
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with clew.no_grad():
                new = fn(param)
            grad = param.grad
            if new.device == param.device and type(new) is not UninitializedTensorMixin:
                param.data = new
                kept = param
            else:
                kept = Parameter(new, param.requires_grad)
                self._parameters[name] = kept
            if grad is not None:
                with clew.no_grad():
                    new_grad = fn(grad)
                kept.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Calls fn on every module below and on the module itself, children first.

        Args:
            fn: a function of a module.

        Returns:
            the module.
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves or converts all parameters and buffers: to(device), to(dtype), to(tensor), or both.

        Args:
            args: a device, a dtype, or a tensor to take both from, then non_blocking.
            kwargs: device, dtype, non_blocking, memory_format by name.

        Returns:
            the module itself.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            extra = {}
            if memory_format is not None and t.dim() in (4, 5):
                extra["memory_format"] = memory_format
            return t.to(
                device=t.device if device is None else device,
                dtype=t.dtype if wanted is None else wanted,
                non_blocking=non_blocking,
                **extra,
            )

        return self._apply(convert)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves the module to a device without copying values.

        Args:
            device: where to.
            recurse: the children too.

        Returns:
            the module itself.
        """
        return self._apply(lambda t: clew.empty_like(t, device=device), recurse)

    def cpu(self: T) -> T:
        """Moves the module to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: T, device: Any = None) -> T:
        """Refused: clew computes on the CPU.

        Args:
            device: the wanted device.
        """
        raise RuntimeError("cuda: this build of clew computes on the CPU only")

    def type(self: T, dst_type: Any) -> T:
        """Casts all parameters and buffers.

        Args:
            dst_type: a dtype.

        Returns:
            the module itself.
        """
        return self._apply(lambda t: t.type(dst_type))

    def _cast_floating(self: T, dtype: Any) -> T:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: T) -> T:
        """Casts floating point parameters and buffers to float32."""
        return self._cast_floating(clew.float32)

    def double(self: T) -> T:
        """Casts floating point parameters and buffers to float64."""
        return self._cast_floating(clew.float64)

    def half(self: T) -> T:
        """Casts floating point parameters and buffers to float16."""
        return self._cast_floating(clew.float16)

    def bfloat16(self: T) -> T:
        """Casts floating point parameters and buffers to bfloat16."""
        return self._cast_floating(clew.bfloat16)

    def share_memory(self: T) -> T:
        """Moves all parameters and buffers into memory that other processes can map.

        Returns:
            the module itself.
        """
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for compatibility: clew runs operations as they come, there is nothing to compile.

        Args:
            args: not used.
            kwargs: not used.
        """

    # ---- text -------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What repr() shows between the parentheses; subclasses write their own."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_addindent(repr(child), 2)}" for name, child in self._modules.items()
        ]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return "{}(\n  {}\n)".format(self._get_name(), "\n  ".join(lines + children))


class _WithModule:
    """A load_state_dict pre-hook that gets the module first; holds it weakly, so that no cycle arises."""

    def __init__(self, hook: Any, module: Any) -> None:
        import weakref

        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> Any:
        return self.hook, self.module()

    def __setstate__(self, state: Any) -> None:
        import weakref

        self.hook = state[0]
        self.module = weakref.ref(state[1])


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    non_blocking = kwargs.pop("non_blocking", False)
    memory_format = kwargs.pop("memory_format", None)
    tensor = kwargs.pop("tensor", None)
    if kwargs:
        raise TypeError(f"to: got an unexpected keyword argument '{next(iter(kwargs))}'")
    if tensor is not None:
        args = (tensor, *args)
    for value in args:
        if isinstance(value, clew.Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, clew.dtype):
            dtype = value
        elif isinstance(value, bool):
            non_blocking = value
        elif isinstance(value, str | int | clew.device):
            device = value
        elif value is not None:
            raise TypeError(
                f"to: expected a device, a dtype or a tensor; got {type(value).__name__}"
            )
    if device is not None and not isinstance(device, clew.device):
        device = clew.device(device)
    return device, dtype, non_blocking, memory_format
