"""The region in which operations choose their dtype, and custom functions inside it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import clew
from clew import _C
from clew._base.arguments import need_bools
from clew._base.provenance import user_level

from ._state import (
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class autocast:
    """A region in which operations choose the dtype they run in; also a decorator.

    On the CPU products, convolutions and attention run in `dtype`; losses, decompositions,
    transforms and a few more in float32; `cat` and `stack` in the widest dtype they are given.
    What is float64, integer or complex stays as it is, and so do in-place operations and those
    with `out`. Backward belongs outside of the region; inside it runs in the same dtypes.

    Args:
        device_type: "cpu". Regions of other devices change nothing here; that of "cuda" warns.
        dtype: bfloat16 or float16; by default what `get_autocast_dtype` says, bfloat16.
        enabled: False: a region without autocast, inside one with it.
        cache_enabled: whether a parameter is cast once in the outermost region, rather than at
            each use.

    Example:
        >>> x, w = clew.ones(2, 2), clew.ones(2, 2, requires_grad=True)
        >>> with clew.autocast("cpu", dtype=clew.bfloat16):
        ...     y = x @ w
        >>> y.dtype
        clew.bfloat16
        >>> y.float().sum().backward()
        >>> w.grad.dtype
        clew.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: clew.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: expected `device_type` of type `str`, got: `{type(device_type)}`"
            )
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"autocast: the device type must be one that has autocast; got {device_type!r}"
            )
        if enabled is not True:
            need_bools("autocast", enabled=enabled)
        if cache_enabled is not None:
            need_bools("autocast", cache_enabled=cache_enabled)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        if enabled and device_type == "cuda":
            warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=user_level())
            enabled = False
        elif enabled and self.fast_dtype not in (clew.bfloat16, clew.float16):
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. "
                f"Disabling autocast.\nIt must be {clew.bfloat16} or {clew.float16}; "
                f"got {self.fast_dtype}",
                stacklevel=user_level(),
            )
            enabled = False
        self._enabled = bool(enabled)
        self._before: list[tuple[bool, clew.dtype, bool]] = []  # one entry each time it is entered

    def __enter__(self) -> autocast:
        device = self.device
        if device == "cpu":
            self._before.append(_C._autocast_state())
            _C._set_autocast(self._enabled, self.fast_dtype, self._cache_enabled)
        else:
            cache = is_autocast_cache_enabled()
            self._before.append((is_autocast_enabled(device), get_autocast_dtype(device), cache))
            set_autocast_enabled(device, self._enabled)
            set_autocast_dtype(device, self.fast_dtype)
            set_autocast_cache_enabled(self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, *error: Any) -> None:
        _C.autocast_decrement_nesting()
        enabled, dtype, cache = self._before.pop()
        if self.device == "cpu":
            _C._set_autocast(enabled, dtype, cache)
        else:
            set_autocast_enabled(self.device, enabled)
            set_autocast_dtype(self.device, dtype)
            set_autocast_cache_enabled(cache)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}; a region "
                "is opened with: with clew.autocast(device_type=...):"
            )

        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return run


def _cast(value: Any, device_type: str, dtype: clew.dtype) -> Any:
    """The floating-point tensors in nested containers in another dtype."""
    if isinstance(value, clew.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type
        return value.to(dtype) if fits and value.dtype is not clew.float64 else value
    if isinstance(value, (str, bytes)) or type(value).__module__ == "numpy":
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        parts = (_cast(v, device_type, dtype) for v in value)
        return type(value)(parts) if isinstance(value, (list, tuple)) else parts
    return value


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: clew.dtype | None = None,
) -> Any:
    """Decorates the `forward` of a custom Function that may be called inside autocast.

    Args:
        fwd: the function.
        device_type: "cpu".
        cast_inputs: inside a region, floating-point arguments are cast to this dtype and the
            function runs with autocast off; None: it runs with autocast as it is.

    Example:
        >>> class Double(clew.autograd.Function):
        ...     @staticmethod
        ...     @clew.amp.custom_fwd(device_type="cpu", cast_inputs=clew.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @clew.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> with clew.autocast("cpu"):
        ...     Double.apply(clew.ones(1, dtype=clew.bfloat16)).dtype
        clew.float32
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = on
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        if not on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return run


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the `backward` of a custom Function: it runs with autocast as `forward` did.

    Args:
        bwd: the function.
        device_type: "cpu".

    Returns:
        the decorated function, or a decorator without `bwd`.

    >>> class Double(clew.autograd.Function):
    ...     @staticmethod
    ...     @clew.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...
    ...     @staticmethod
    ...     @clew.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return run
