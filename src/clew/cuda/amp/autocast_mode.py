"""The older name of `autocast("cuda")`, and of the decorators of custom functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import clew
from clew import amp
from clew._base.provenance import user_level

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """The deprecated name of `clew.autocast("cuda")`; it warns, and changes nothing: no device.

    Args:
        enabled: whether it would do anything.
        dtype: the dtype of operations that take a narrower one.
        cache_enabled: keep converted weights within the block.

    Example:
        >>> from clew.cuda.amp import autocast
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> with autocast():
        ...     (clew.ones(1, 1) @ clew.ones(1, 1)).dtype
        clew.float32
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: clew.dtype = clew.float16,
        cache_enabled: bool = True,
    ) -> None:
        warnings.warn(
            "cuda.amp.autocast(args...) is deprecated; use amp.autocast('cuda', args...)",
            FutureWarning,
            stacklevel=user_level(),
        )
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: clew.dtype | None = None
) -> Any:
    """The deprecated name of `clew.amp.custom_fwd(..., device_type="cuda")`; it warns.

    Args:
        fwd: the forward of a custom Function; without it this is a decorator.
        cast_inputs: as there.

    Returns:
        The function with autocast as there.

    Example:
        >>> from clew.cuda.amp import custom_fwd
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> class Twice(clew.autograd.Function):
        ...     @staticmethod
        ...     @custom_fwd
        ...     def forward(ctx, x):
        ...         return 2 * x
        >>> Twice.apply(clew.ones(1))
        tensor([2.])
    """
    warnings.warn(
        "cuda.amp.custom_fwd(args...) is deprecated; use amp.custom_fwd(args..., "
        "device_type='cuda')",
        FutureWarning,
        stacklevel=user_level(),
    )
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """The deprecated name of `clew.amp.custom_bwd(..., device_type="cuda")`; it warns.

    Args:
        bwd: the backward of a custom Function.

    Returns:
        The function with autocast as in forward.

    Example:
        >>> from clew.cuda.amp import custom_bwd, custom_fwd
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> class Twice(clew.autograd.Function):
        ...     @staticmethod
        ...     @custom_fwd
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @custom_bwd
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = clew.ones(1, requires_grad=True)
        >>> Twice.apply(x).backward()
        >>> x.grad
        tensor([2.])
    """
    warnings.warn(
        "cuda.amp.custom_bwd(args...) is deprecated; use amp.custom_bwd(args..., "
        "device_type='cuda')",
        FutureWarning,
        stacklevel=user_level(),
    )
    return amp.custom_bwd(bwd, device_type="cuda")
