"""The base class of all optimizers: parameter groups, state, hooks and saving."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from clew import _C, Tensor
from clew._base.arguments import is_structured
from clew._base.origins import note_origin
from clew._base.provenance import user_level
from clew.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT: TypeAlias = Iterable[Any]  # tensors, (name, tensor) pairs, or dicts of a group

_global_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


class _RequiredParameter:
    """Stands for a value in `defaults` that every parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(table: Any, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before every step of every optimizer.

    Args:
        hook: gets the optimizer again as the first of `args`; may return None, or new
            `(args, kwargs)` for the step.

    Returns:
        A handle whose `remove()` takes the hook away.

    Example:
        >>> from clew.optim.optimizer import register_optimizer_step_pre_hook
        >>> handle = register_optimizer_step_pre_hook(lambda opt, args, kwargs: None)
        >>> handle.remove()
    """
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after every step of every optimizer.

    Args:
        hook: what to call; its result is not used.

    Returns:
        A handle whose `remove()` takes the hook away.

    Example:
        >>> from clew.optim.optimizer import register_optimizer_step_post_hook
        >>> handle = register_optimizer_step_post_hook(lambda opt, args, kwargs: None)
        >>> handle.remove()
    """
    return _register(_global_post_hooks, hook)


def _marked(optimizer: Any, what: str) -> Any:
    """What a profile shows for the optimizer's method."""
    if not _C._trace_running():
        return contextlib.nullcontext()
    from clew.autograd.profiler import record_function

    name = type(optimizer).__name__
    return record_function(f"Optimizer.{what}#{name}.{what}")


def _tables(optimizer: Any) -> tuple[Any, Any]:
    """The hooks before and after a step; none of a wrapper that did not call `__init__`."""
    own = optimizer.__dict__
    return own.get("_optimizer_step_pre_hooks", {}), own.get("_optimizer_step_post_hooks", {})


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` with the pre and post hooks around it; nested calls (super().step()) run them once."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        pre, post = _tables(self)
        hooks = pre or post or _global_pre_hooks or _global_post_hooks
        if self._clew_in_step or not (hooks or _C._trace_running()):
            return step(self, *args, **kwargs)
        self._clew_in_step = True
        try:
            with _marked(self, "step"):
                return with_hooks(self, args, kwargs)
        finally:
            self._clew_in_step = False

    def with_hooks(self: Any, args: Any, kwargs: Any) -> Any:
        pre, post = _tables(self)
        args = (self, *args)  # as PyTorch's hooks get them
        for hook in (*_global_pre_hooks.values(), *pre.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        "Optimizer.step: a pre-hook must return None or new (args, kwargs); "
                        f"got {result!r}"
                    )
                args, kwargs = result
                args = tuple(args) if args and args[0] is self else (self, *args)
        out = step(*args, **kwargs)
        for hook in (*post.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    run.hooked = True  # type: ignore[attr-defined]
    return run


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with `params` and options of that group.
        defaults: the options of groups that do not state their own.

    Example:
        >>> w = clew.ones(2, requires_grad=True)
        >>> opt = clew.optim.SGD([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.detach()
        tensor([0., 0.])
    """

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]
    defaults: dict[str, Any]

    _clew_in_step = False
    profile_hook_step = staticmethod(_hooked)
    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def _patch_step_function(self) -> None:
        # Has PyTorch's name because wrappers of optimizers call it where they do not call __init__.
        # Those that call neither are not optimizers to hooks: the wrapped one's step is the step.
        step = type(self).step
        if not getattr(step, "hooked", False):
            type(self).step = _hooked(step)  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        note_origin(self)
        self._patch_step_function()
        self.defaults = defaults
        self._clew_make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: params must be an iterable of tensors or of dicts; "
                f"got one tensor of shape {list(params.shape)}"
            )
        if not isinstance(params, Iterable):
            ask = ": pass its .parameters()" if hasattr(params, "parameters") else ""
            raise TypeError(
                f"{type(self).__name__}: params must be an iterable of tensors or of dicts; "
                f"got {type(params).__name__}{ask}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__}: got an empty parameter list (modules in a plain list or "
                "dict are not registered: use nn.ModuleList or nn.ModuleDict)"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _clew_make_hook_tables(self) -> None:
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._patch_step_function()
        self._clew_make_hook_tables()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join(lines) + "\n)"

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[Any, tuple[list[list[Any]], list[int]]]:
        """Lists split alike by device and dtype of the first one's tensors; the places too."""
        groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
        for i, first in enumerate(tensorlistlist[0]):
            key = (first.device, first.dtype)
            lists, places = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
            for column, items in zip(lists, tensorlistlist):
                if items:
                    column.append(items[i])
            if with_indices:
                places.append(i)
        return groups

    # hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` after `state_dict`; it may return another dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before loading; it may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # saving

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer as a dict of plain values and tensors.

        Returns:
            `state` (by parameter number) and `param_groups` (parameters replaced by numbers).

        Example:
            >>> clew.optim.SGD([clew.zeros(1)], lr=0.1).state_dict()["param_groups"][0]["params"]
            [0]
        """
        for pre in self._optimizer_state_dict_pre_hooks.values():
            pre(self)
        number: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(number[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for post in self._optimizer_state_dict_post_hooks.values():
            other = post(self, result)
            if other is not None:
                result = other
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave.

        Args:
            state_dict: its groups must match this optimizer's in number and length; its tensors
                are converted to the parameters' dtype and device.

        Example:
            >>> a = clew.optim.SGD([clew.zeros(1)], lr=0.1)
            >>> b = clew.optim.SGD([clew.zeros(1)], lr=0.7)
            >>> a.load_state_dict(b.state_dict())
            >>> a.param_groups[0]["lr"]
            0.7
        """
        state_dict = state_dict.copy()
        for pre in self._optimizer_load_state_dict_pre_hooks.values():
            other = pre(self, state_dict)
            if other is not None:
                state_dict = other
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: the number of parameter groups must be "
                f"{len(groups)}; got {len(saved_groups)}"
            )
        for i, (group, saved) in enumerate(zip(groups, saved_groups)):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    f"{type(self).__name__}.load_state_dict: parameter group {i} must have "
                    f"{len(group['params'])} parameters; got {len(saved['params'])}"
                )
        param_of = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in groups),
            )
        )
        options_of = {n: g for g in saved_groups for n in g["params"]}

        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = _fit(value, param_of[key], options_of[key], None)
            else:
                state[key] = value
        for group, saved in zip(groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for post in self._optimizer_load_state_dict_post_hooks.values():
            post(self)

    # the work

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters.

        Args:
            set_to_none: set `grad` to None; otherwise it is filled with zeros in place.

        Example:
            >>> w = clew.ones(2, requires_grad=True)
            >>> w.sum().backward()
            >>> clew.optim.SGD([w], lr=0.1).zero_grad()
            >>> w.grad is None
            True
        """
        if not _C._trace_running():
            return self._clew_forget_gradients(set_to_none)
        with _marked(self, "zero_grad"):
            return self._clew_forget_gradients(set_to_none)

    def _clew_forget_gradients(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            if set_to_none:
                _C._drop_gradients(group["params"])
                continue
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once; subclasses define how.

        Args:
            closure: evaluates the model again and returns the loss; optional for most optimizers.

        Returns:
            What the closure returned, or None.
        """
        raise NotImplementedError(f"{type(self).__name__}.step is not defined")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with its own options, for example while fine-tuning.

        Args:
            param_group: a dict with `params` and any options that differ from the defaults.

        Example:
            >>> opt = clew.optim.SGD([clew.zeros(1)], lr=0.1)
            >>> opt.add_param_group({"params": [clew.zeros(2)], "lr": 0.01})
            >>> len(opt.param_groups)
            2
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{name}: a parameter group must be a dict; got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                f"{name}: params must have an order, which a set has not; pass a list instead"
            )
        params = list(params)
        names = None
        if any(isinstance(p, tuple) for p in params):
            if not all(isinstance(p, tuple) and len(p) == 2 for p in params):
                raise ValueError(f"{name}: either all parameters must be (name, tensor), or none")
            names = [p[0] for p in params]
            params = [p[1] for p in params]
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}: parameters must be tensors; got {type(p).__name__}")
            if is_structured(p):
                raise NotImplementedError(
                    f"{name}: parameters must be dense; got one of {p.layout}; give its .values(), "
                    "which are trained in place"
                )
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                from clew._insight.debug.summary import summary

                raise ValueError(
                    f"{name}: can't optimize a non-leaf Tensor: {summary(p)}; give the parameters "
                    "that it was made from, or a detach().requires_grad_() of it"
                )
        for option, value in self.defaults.items():
            if value is required and option not in param_group:
                raise ValueError(f"{name}: a parameter group must give a value for {option!r}")
            param_group.setdefault(option, value)
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(f"{name}: either all parameter groups must have names, or none")

        mine = {id(p) for p in params}
        if len(mine) != len(params):
            warnings.warn(
                f"{name}: a parameter group holds the same parameter twice; this will be an error",
                stacklevel=user_level(),
            )
        if any(id(p) in mine for group in self.param_groups for p in group["params"]):
            raise ValueError(f"{name}: some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _fit(value: Any, param: Tensor, group: dict[str, Any], key: Any) -> Any:
    """A loaded state value with its tensors in the dtype and device of their parameter."""
    if isinstance(value, Tensor):
        if key == "step":  # a count: kept exact whatever the parameter's dtype
            return value.detach().clone()
        # What belongs to a complex parameter may be real: factors, sizes.
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device, copy=True)
        return value.to(device=param.device, copy=True)
    if isinstance(value, dict):
        return {k: _fit(v, param, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fit(v, param, group, key) for v in value)
    return value
