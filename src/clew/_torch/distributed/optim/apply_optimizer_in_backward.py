"""Optimizers that step as soon as a parameter has its gradient, which is let go of then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def _apply_optimizer_in_backward(
    optimizer_class: Any,
    params: Iterable[Any],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Gives each parameter an optimizer that steps in backward.

    Args:
        optimizer_class: the optimizer.
        params: the parameters.
        optimizer_kwargs: its arguments.
        register_hook: False leaves it to the program when the optimizers step.
    """
    for param in params:
        first = not hasattr(param, "_in_backward_optimizers")
        if first:
            param._in_backward_optimizers = []
            param._optimizer_classes, param._optimizer_kwargs = [], []
        param._in_backward_optimizers.append(optimizer_class([param], **optimizer_kwargs))
        param._optimizer_classes.append(optimizer_class)
        param._optimizer_kwargs.append(optimizer_kwargs)
        if first and register_hook:
            param.register_post_accumulate_grad_hook(_step)


def _step(param: Any) -> None:
    for optimizer in param._in_backward_optimizers:
        optimizer.step()
    param.grad = None


def _get_in_backward_optimizers(module: Any) -> list[Any]:
    """The optimizers of a module's parameters that step in backward.

    Args:
        module: the module.
    """
    return [o for p in module.parameters() for o in getattr(p, "_in_backward_optimizers", [])]
