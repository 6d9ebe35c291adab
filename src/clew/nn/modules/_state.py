"""state_dict and load_state_dict of a module; Module's methods of these names call them."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from typing import Any

import clew
from clew.__future__ import get_swap_module_params_on_conversion
from clew._base.provenance import user_level
from clew._tensor.swapping import swap_tensors

from ..parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict found lacking and left over."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return "_IncompatibleKeys" + super().__repr__().removeprefix(type(self).__name__)

    __str__ = __repr__


# What Module has where a class has no extra state; clew.nn.modules.module fills it.
without_extra_state: dict[str, Any] = {}


def has_extra_state(module: Any, method: str) -> bool:
    return getattr(type(module), method, None) is not without_extra_state[method]


def save_own(module: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Writes a module's own parameters, buffers and extra state into destination."""
    for name, param in module._parameters.items():
        if param is not None:
            destination[prefix + name] = param if keep_vars else param.detach()
    for name, buf in module._buffers.items():
        if buf is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = buf if keep_vars else buf.detach()
    if has_extra_state(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


def state_dict(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """A module's whole state, children included."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local
    for hook in list(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for hook in list(module._state_dict_hooks.values()):
        answer = hook(module, destination, prefix, local)
        if getattr(hook, "_from_public_api", False):
            if answer is not None:
                raise RuntimeError("state_dict post-hook must return None")
        elif answer is not None:
            destination = answer
    return destination


def _assign(module: Any, name: str, param: Any, given: Any) -> None:
    """Puts a tensor in the place of a parameter or buffer, as a parameter where that is one."""
    if isinstance(param, Parameter):
        if not isinstance(given, Parameter):
            given = Parameter(given, requires_grad=param.requires_grad)
        else:
            given.requires_grad_(param.requires_grad)
    setattr(module, name, given)


def _swap_in(param: Any, given: Any, assign: bool) -> None:
    """Has a parameter or buffer change places with what it makes of a given tensor."""
    new = param.module_load(given, assign=assign)
    if new is given or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning "
            "one of the inputs in module_load"
        )
    if isinstance(param, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(param.requires_grad)
        else:
            new = Parameter(new, requires_grad=param.requires_grad)
    swap_tensors(param, new)


def _load_tensor(
    module: Any, name: str, param: Any, key: str, given: Any, assign: bool
) -> str | None:
    """Copies a tensor of a state dict into a parameter or buffer; what went wrong, or None."""
    if not isinstance(given, clew.Tensor):
        return (
            f'While copying the parameter named "{key}", expected a Tensor from the checkpoint '
            f"but received {type(given)}"
        )
    if not assign and hasattr(type(given), "full_tensor") > hasattr(type(param), "full_tensor"):
        return (
            f'While copying the parameter named "{key}": it is distributed in the checkpoint '
            "and plain in the model; pass its full_tensor(), or load by "
            "distributed.checkpoint"
        )
    lazy = is_lazy(param)
    if not lazy and param.dim() == 0 and given.dim() == 1 and given.shape[0] == 1:
        given = given[0]
    if not lazy and given.shape != param.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from "
            "checkpoint, "
            f"the shape in current model is {param.shape}."
        )
    if not assign and param.is_meta and not given.is_meta:
        warnings.warn(
            f"for {key}: it is on the meta device in the model, so copying elements into it "
            "does nothing; pass assign=True to take those of the checkpoint",
            stacklevel=user_level(),
        )
    try:
        with clew.no_grad():
            if get_swap_module_params_on_conversion():
                _swap_in(param, given, assign)
            elif assign:
                _assign(module, name, param, given)
            elif lazy and is_lazy(given):
                pass  # there is nothing to copy: both wait for a first input
            elif lazy:
                param.materialize(given.shape)
                param.copy_(given)
            else:
                param.copy_(given)
    except Exception as problem:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{param.size()} and whose dimensions in the checkpoint are {given.size()}, an "
            f"exception occurred: {problem.args}."
        )
    return None


def load_own(
    module: Any,
    state: Any,
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Copies a module's own parameters, buffers and extra state out of a state dict.

    What goes wrong is appended to missing, unexpected and errors; nothing is raised for it.
    """
    for hook in list(module._load_state_dict_pre_hooks.values()):
        hook(state, prefix, local_metadata, strict, missing, unexpected, errors)
    persistent = {
        k: v for k, v in module._buffers.items() if k not in module._non_persistent_buffers_set
    }
    own = {k: v for k, v in [*module._parameters.items(), *persistent.items()] if v is not None}
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, param in own.items():
        key = prefix + name
        if key not in state:
            if strict:
                missing.append(key)
            continue
        problem = _load_tensor(module, name, param, key, state[key], assign)
        if problem is not None:
            errors.append(problem)
    extra = prefix + EXTRA
    if has_extra_state(module, "set_extra_state"):
        if extra in state:
            module.set_extra_state(state[extra])
        elif strict:
            missing.append(extra)
    elif strict and extra in state:
        unexpected.append(extra)
    if strict:
        for key in state:
            if key.startswith(prefix) and key != extra:
                first, *rest = key[len(prefix) :].split(".", 1)
                if first in module._modules if rest else first in own:
                    continue
                unexpected.append(key)


def load_state_dict(module: Any, state_dict: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Loads a state dict into a module and its children."""
    from collections.abc import Mapping

    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"{type(module).__name__}.load_state_dict: Expected state_dict to be dict-like, got "
            f"{type(state_dict)}."
        )
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    work: Any = OrderedDict(state_dict)
    if metadata is not None:
        work._metadata = metadata

    def load(target: Any, local_state: Any, prefix: str) -> None:
        local = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local["assign_to_params_buffers"] = assign
        target._load_from_state_dict(local_state, prefix, local, True, missing, unexpected, errors)
        for name, child in target._modules.items():
            if child is not None:
                start = f"{prefix}{name}."
                load(child, {k: v for k, v in local_state.items() if k.startswith(start)}, start)
        found = IncompatibleKeys(missing, unexpected)
        for hook in list(target._load_state_dict_post_hooks.values()):
            if hook(target, found) is not None:
                raise AssertionError(
                    "load_state_dict: hooks registered with register_load_state_dict_post_hook are "
                    "not expected to return new values; edit the given keys in place instead"
                )

    load(module, work, "")
    if strict:
        if unexpected:
            names = ", ".join(f'"{k}"' for k in unexpected)
            errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
        if missing:
            names = ", ".join(f'"{k}"' for k in missing)
            errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
    if errors:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(
                type(module).__name__, "\n\t".join(errors)
            )
        )
    return IncompatibleKeys(missing, unexpected)
