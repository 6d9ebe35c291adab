"""Operations in two forms: a fast native one, and one of differentiable operations for what the
native form does not know."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor

__all__ = ["twofold"]

_KNOWN = (_dtypes.float32, _dtypes.float64)  # the dtypes that native forms take

_Gradient = Callable[[Any, tuple[Any, ...], list[Any], tuple[bool, ...]], tuple[Any, ...]]


def twofold(
    name: str,
    *,
    native: Callable[..., tuple[Any, ...]],
    gradient: _Gradient,
    composed: Callable[..., Any],
) -> Callable[..., Any]:
    """Makes an operation whose values and first derivatives are native. Higher derivatives, vmap,
    recordings to compile, shapes alone and other dtypes than float32 and float64 go through the
    composed form.

    Args:
        name: what the graph shows, in CamelCase.
        native: tensors and numbers to the result, and what the gradient needs besides.
        gradient: the result's gradient, a tuple of what native gave, native's arguments as a
            list, and for each of these whether its gradient is wanted, to a gradient or None for
            each. (A saved tensor does not say it under saved-tensor hooks.)
        composed: tensors and numbers to the result.

    Returns:
        A function of tensors, then numbers. All its tensors that may have a gradient have one
        dtype, or it takes the composed form.
    """

    @functools.cache
    def function() -> Any:
        return _function(name, native, gradient, composed)

    def run(*args: Any) -> Any:
        kind, wanted = None, False
        for a in args:
            if not isinstance(a, Tensor):
                break  # numbers follow
            dtype = a.dtype
            if dtype is not kind and dtype.is_floating_point:
                if kind is not None or dtype not in _KNOWN:
                    return composed(*args)
                kind = dtype
            if a.is_meta:
                return composed(*args)
            wanted = wanted or a.requires_grad
        if kind is None or _C._vmap_depth() or _C._trace_running():
            return composed(*args)
        if wanted and _C.is_grad_enabled():
            return function().apply(*args)
        return native(*args)[0]

    return run


def _function(
    name: str,
    native: Callable[..., tuple[Any, ...]],
    gradient: _Gradient,
    composed: Callable[..., Any],
) -> Any:
    # Most programs never need these.
    from clew.autograd._backward import grad as grad_of
    from clew.autograd.function import Function

    def forward(ctx: Any, *args: Any) -> Any:
        made = native(*args)
        ctx.numbers = [a for a in args if not isinstance(a, Tensor)]
        tensors = [a for a in args if isinstance(a, Tensor)]
        ctx.count = len(tensors)
        ctx.save_for_backward(*tensors, *made)
        return made[0]

    def backward(ctx: Any, grad: Any) -> Any:
        kept = ctx.saved_tensors
        args = [*kept[: ctx.count], *ctx.numbers]
        if not _C.is_grad_enabled():
            return gradient(grad, kept[ctx.count :], args, ctx.needs_input_grad)
        wanted = [k for k, needed in enumerate(ctx.needs_input_grad) if needed]
        for k in wanted:  # one tensor may have come twice
            args[k] = args[k].view_as(args[k])
        again = composed(*args)
        into: list[Any] = [None] * len(args)
        got = grad_of(again, [args[k] for k in wanted], grad, create_graph=True)
        for k, g in zip(wanted, got, strict=True):
            into[k] = g
        return tuple(into)

    ways = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (Function,), ways)
