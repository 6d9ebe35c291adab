"""Module: a tree of parameters, buffers and children with a forward."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import clew
from clew._base.provenance import user_level

from ..parameter import Buffer, Parameter, UninitializedTensorMixin
from . import _hooks, _state, _summary
from ._convert import Conversions
from ._global import register_module_backward_hook as register_module_backward_hook
from ._global import (
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
)
from ._global import register_module_forward_hook as register_module_forward_hook
from ._global import register_module_forward_pre_hook as register_module_forward_pre_hook
from ._global import register_module_full_backward_hook as register_module_full_backward_hook
from ._global import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from ._global import (
    register_module_module_registration_hook as register_module_module_registration_hook,
)
from ._global import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from ._members import Members
from ._register import HookMethods
from ._register import _WrappedHook as _WrappedHook

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


class _CallSignature:
    """What `inspect.signature` says of a module that is called; of classes it asks `__init__`."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            raise AttributeError("__signature__")
        import inspect

        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        names = ("args", "kwargs")
        return inspect.Signature([inspect.Parameter(n, k) for n, k in zip(names, kinds)])


def _renamed(method: Any, name: str, module: str) -> Any:
    """A function under the name of a class's own, which errors about its arguments then tell, and
    by which its description is found."""
    own = FunctionType(
        method.__code__,
        method.__globals__,
        method.__name__,
        method.__defaults__,
        method.__closure__,
    )
    own.__kwdefaults__, own.__annotations__ = method.__kwdefaults__, method.__annotations__
    own.__doc__, own.__module__, own.__qualname__ = method.__doc__, module, name
    return own


# Functions, not methods: a subclass may have methods and attributes of these names.
def _forget(module: Any, name: str, *tables: str) -> None:
    own = module.__dict__
    own.pop(name, None)
    for table in tables:
        own[table].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def _may_be_buffer(value: Any) -> bool:
    return value is None or isinstance(value, clew.Tensor) or hasattr(value, "__torch_function__")


def _assign_buffer(module: Any, name: str, value: Any) -> None:
    """What `module.name = value` does where that is a buffer, or becomes one."""
    if isinstance(value, Buffer):
        persistent = value.persistent
    else:
        persistent = name not in module._non_persistent_buffers_set
    register = module.register_buffer
    if getattr(register, "__func__", None) is not Module.register_buffer:
        import inspect

        # A subclass's own may be of the time before the argument.
        if "persistent" not in inspect.signature(register).parameters:
            if not persistent:
                raise RuntimeError(
                    f"cannot assign a buffer '{name}' with persistent=False: "
                    f"{type(module).__name__}.register_buffer() has no argument 'persistent'; add "
                    "it and pass it on"
                )
            register(name, value)
            return
    register(name, value, persistent)


def _new_name(module: Any, name: Any, kind: str, table: Any) -> Any:
    if table is None:
        raise AttributeError(_NO_INIT.format(kind))
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if name not in table and _summary.is_taken(module, name):
        raise KeyError(f"attribute '{name}' already exists")
    return table


class Module(Conversions, HookMethods, Members, clew._C.ModuleBase):
    """Base class of all models: parameters and children are attributes, forward() is written.

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
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

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

    if TYPE_CHECKING:
        # For checkers an attribute: subclasses give forward whatever parameters they need.
        forward: Callable[..., Any]
    else:

        def forward(self, *input: Any) -> Any:
            """What the module computes; every subclass writes its own."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function'
                + ("; call the modules in it" if self._modules else "")
            )

    # Calls, and attributes that are not in the class, are looked up by compiled code.
    __signature__ = _CallSignature()
    _call_impl = clew._C.ModuleBase.__call__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        clew._C._quick_attributes(cls, Module)
        if cls.__module__.startswith("clew.nn.modules."):
            for name in ("__init__", "forward"):
                method = getattr(cls, name)
                if name in cls.__dict__ or method is getattr(Module, name):
                    continue
                # A forward that is one call of the core is known by its function object.
                if name == "__init__" or method.__qualname__.startswith(("_", "RNNBase.")):
                    own = _renamed(method, f"{cls.__qualname__}.{name}", cls.__module__)
                    setattr(cls, name, own)

    # ---- attributes -------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:  # set last by __init__, so all three are there
            members = own["_parameters"]
            if name in members:
                return members[name]
            members = own["_modules"]
            if name in members:
                return members[name]
            members = own["_buffers"]
            if name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, clew.Tensor) and isinstance(value, Parameter):
            if params is None:
                raise AttributeError(_NO_INIT.format("parameters"))
            _forget(self, name, "_buffers", "_modules")
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
            _forget(self, name, "_parameters", "_buffers")
            if _hooks.global_module_registration:
                value = _registered(_hooks.global_module_registration, self, name, value)
            if name in modules:
                clew._C._forget_call(modules[name])
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' "
                    "(nn.Module or None expected)"
                )
            clew._C._forget_call(modules[name])
            modules[name] = _registered(_hooks.global_module_registration, self, name, value)
            return
        buffers = own.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if buffers is None:
                raise AttributeError(_NO_INIT.format("buffers"))
            if not _may_be_buffer(value):
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as buffer '{name}' "
                    "(nn.Buffer, clew.Tensor or None expected)"
                )
            _assign_buffer(self, name, value)
            return
        if name in _HOOK_TABLES:
            own["_hooked"] = True
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            clew._C._forget_call(self._modules.pop(name))
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
        if any(self.__dict__.get(table) for table in _HOOK_TABLES):
            self.__dict__["_hooked"] = True  # PyTorch's files do not say so

    # ---- registration -----------------------------------------------------------------------

    def register_parameter(self, name: str, param: Any) -> None:
        """Adds a parameter.

        Args:
            name: the attribute's name.
            param: a Parameter, or None for a parameter that is left out.
        """
        params = _new_name(self, name, "parameter", self.__dict__.get("_parameters"))
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
        buffers = _new_name(self, name, "buffer", self.__dict__.get("_buffers"))
        if not _may_be_buffer(tensor):
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

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child.

        Args:
            name: the attribute's name.
            module: a Module, or None.
        """
        if not isinstance(module, Module) and module is not None:
            several = isinstance(module, (list, tuple))
            hint = f"; unpack it: {type(self).__name__}(*modules)" if several else ""
            raise TypeError(
                f"{type(self).__name__}: {_type_name(module)} is not a Module subclass{hint}"
            )
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {_type_name(name)}")
        if name not in self._modules and _summary.is_taken(self, name):
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

    # ---- state a subclass adds ----------------------------------------------------------------

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
                stacklevel=user_level(),
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

    summary = _summary.Yielding(_summary.summary)

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

    def _repr_html_(self) -> str | None:
        """What notebooks show; a class with a text of its own keeps it."""
        from clew._tensor import html as _html

        return _html.module(self) if type(self).__repr__ is Module.__repr__ else None


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


# Errors about arguments, and pickles, name the methods of its bases as Module's own.
for _part in (Conversions, HookMethods, Members):
    for _name, _method in vars(_part).items():
        if isinstance(_method, FunctionType):
            _method.__qualname__, _method.__module__ = f"Module.{_name}", __name__

clew._C._quick_attributes(Module, Module)
_state.without_extra_state.update(
    get_extra_state=Module.get_extra_state, set_extra_state=Module.set_extra_state
)


# PyTorch's names for the tables of hooks of all modules.
_global_forward_hooks = _hooks.global_forward
_global_forward_pre_hooks = _hooks.global_forward_pre
_global_backward_hooks = _hooks.global_backward
_global_backward_pre_hooks = _hooks.global_backward_pre
_global_parameter_registration_hooks = _hooks.global_parameter_registration
_global_buffer_registration_hooks = _hooks.global_buffer_registration
_global_module_registration_hooks = _hooks.global_module_registration
