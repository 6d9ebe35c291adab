"""Helpers that optimizers of libraries are written with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of `step`: it records only where the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with clew.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether a step is one kernel, and whether it works on lists.

    Args:
        params: the parameters.
        differentiable: whether the step is recorded, which neither can be.
        use_fused: whether one kernel may be chosen.
    """
    plain = all(
        p is None or (type(p) in (Tensor, clew.nn.Parameter) and p.is_floating_point())
        for p in params
    )
    return bool(use_fused and not differentiable and plain), False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose steps can be captured as graphs; none of them is here."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_value(x: Any) -> Any:
    """A number, also of a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x


def _get_scalar_dtype(is_fused: Any = None) -> Any:
    """The dtype in which steps are counted."""
    double = clew.get_default_dtype() == clew.float64 and not is_fused
    return clew.float64 if double else clew.float32


def _stack_if_compiling(x: Any) -> Any:
    """The numbers themselves: nothing is compiled."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """The root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Puts views of real numbers in place of complex tensors in lists.

    Args:
        params: parameters.
        state_and_grads: lists as long.
    """
    for i, p in enumerate(params):
        if clew.is_complex(p):
            params[i] = clew.view_as_real(p)
            for others in state_and_grads:
                others[i] = clew.view_as_real(others[i])


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that returns the function itself: no such compiler is here."""
    return lambda func: func


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dims; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x
