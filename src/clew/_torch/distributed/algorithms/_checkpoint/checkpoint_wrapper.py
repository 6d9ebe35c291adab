"""Modules whose values are computed again in backward: real, and not about processes at all."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any

from clew import nn
from clew.autograd.graph import save_on_cpu
from clew.utils.checkpoint import checkpoint

_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(Enum):
    """How values are computed again."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module):
    """A module inside of another that keeps its names in state dicts.

    Args:
        mod: the module.
    """

    def __init__(self, mod: Any) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_hook)

    @staticmethod
    def _post_state_dict_hook(module: Any, state_dict: Any, prefix: str, *args: Any) -> Any:
        for key in [k for k in state_dict if k.startswith(prefix + _PREFIX)]:
            state_dict[prefix + key[len(prefix + _PREFIX) :]] = state_dict.pop(key)
        return state_dict

    @staticmethod
    def _pre_load_hook(module: Any, state_dict: Any, prefix: str, *args: Any) -> None:
        for key in [k for k in state_dict if k.startswith(prefix)]:
            if not key.startswith(prefix + _PREFIX):
                state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """The parameters, by the names that they have without the wrapper."""
        for name, value in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), value

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose values are computed again in backward.

    Args:
        mod: the module.
        checkpoint_impl: how.
        checkpoint_fn: what does it; utils.checkpoint.checkpoint if None.
        checkpoint_fn_kwargs: arguments of that.
    """

    def __init__(
        self,
        mod: Any,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Any = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        again = checkpoint_impl is CheckpointImpl.REENTRANT
        function = checkpoint_fn or partial(checkpoint, use_reentrant=again)
        self.checkpoint_fn = partial(function, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def checkpoint_wrapper(
    module: Any,
    checkpoint_impl: Any = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Any = None,
    **kwargs: Any,
) -> Any:
    """A module whose values are computed again in backward."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """A module whose saved tensors wait for backward elsewhere: `autograd.graph.save_on_cpu`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        with save_on_cpu():
            return self._checkpoint_wrapped_module(*args, **kwargs)


def offload_wrapper(module: Any) -> Any:
    """A module whose saved tensors are offloaded."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Any,
    checkpoint_wrapper_fn: Callable[..., Any] = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wraps the modules inside a model that a test chooses."""
    if auto_wrap_policy is not None:
        raise NotImplementedError("apply_activation_checkpointing: give check_fn, not a policy")
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
