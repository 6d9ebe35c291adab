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
    """Deprecated: clew.autocast("cuda")."""

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
    """Deprecated: clew.amp.custom_fwd(..., device_type="cuda").

    Args:
        fwd: the function.
        cast_inputs: as there.
    """
    warnings.warn(
        "cuda.amp.custom_fwd(args...) is deprecated; use amp.custom_fwd(args..., "
        "device_type='cuda')",
        FutureWarning,
        stacklevel=user_level(),
    )
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """Deprecated: clew.amp.custom_bwd(..., device_type="cuda").

    Args:
        bwd: the function.
    """
    warnings.warn(
        "cuda.amp.custom_bwd(args...) is deprecated; use amp.custom_bwd(args..., "
        "device_type='cuda')",
        FutureWarning,
        stacklevel=user_level(),
    )
    return amp.custom_bwd(bwd, device_type="cuda")
