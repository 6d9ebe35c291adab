"""Modules as functions of their parameters, the older way."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

from clew import func, nn
from clew._base.provenance import user_level

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def _deprecated(instead: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function by its name in functorch, which warns."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"functorch.{function.__name__} is deprecated, since PyTorch has integrated functorch; "
            f"use {instead}",
            FutureWarning,
            stacklevel=user_level(),
        )
        return function(*args, **kwargs)

    return call


vmap = _deprecated("torch.vmap", func.vmap)
grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, functionalize = (
    _deprecated(f"torch.func.{function.__name__}", function)
    for function in (
        func.grad, func.grad_and_value, func.hessian, func.jacfwd, func.jacrev, func.jvp,
        func.vjp, func.functionalize,
    )
)  # fmt: skip


class FunctionalModuleWithBuffers(nn.Module):
    """A module as a function of (parameters, buffers, *inputs).

    Args:
        stateless_model: the module, whose own values are not used.
        param_names: the names of the parameters, in order.
        buffer_names: the names of the buffers, in order.
    """

    def __init__(self, stateless_model: Any, param_names: Any, buffer_names: Any = ()) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    @classmethod
    def _create_from(cls, model: Any, disable_autograd_tracking: bool = False) -> Any:
        def copied(t: Any, grad: bool) -> Any:
            return t.detach().clone().requires_grad_(grad and not disable_autograd_tracking)

        names, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        made = cls(copy.deepcopy(model), names, buffers)
        parameters = tuple(copied(p, p.requires_grad) for p in names.values())
        return made, parameters, tuple(copied(b, False) for b in buffers.values())

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters and buffers."""
        state = {**dict(zip(self.param_names, params)), **dict(zip(self.buffer_names, buffers))}
        return func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of (parameters, *inputs)."""

    @classmethod
    def _create_from(cls, model: Any, disable_autograd_tracking: bool = False) -> Any:
        return super()._create_from(model, disable_autograd_tracking)[:2]

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters."""
        return super().forward(params, (), *args, **kwargs)


@functools.partial(_deprecated, "torch.func.functional_call")
def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """A function (parameters, buffers, *inputs) of a module, its parameters and its buffers.

    Args:
        model: the module.
        disable_autograd_tracking: the parameters ask for no gradient.
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


@functools.partial(_deprecated, "torch.func.functional_call")
def make_functional(model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
    """A function (parameters, *inputs) of a module without buffers, and its parameters.

    Args:
        model: the module.
        disable_autograd_tracking: the parameters ask for no gradient.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional: the module has buffers; use make_functional_with_buffers"
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


@functools.partial(_deprecated, "torch.func.stack_module_state")
def combine_state_for_ensemble(models: Any) -> tuple[Any, Any, Any]:
    """One function of several modules of one class, and their parameters and buffers, stacked.

    Args:
        models: the modules.
    """
    import clew

    if not models:
        raise RuntimeError("combine_state_for_ensemble: expected at least one model")
    parts = [FunctionalModuleWithBuffers._create_from(m) for m in models]
    stacked = tuple(
        clew.stack(list(column)).detach().requires_grad_() for column in zip(*(p[1] for p in parts))
    )
    buffers = tuple(clew.stack(list(column)) for column in zip(*(p[2] for p in parts)))
    return parts[0][0], stacked, buffers
