"""The older name of `autocast("cpu")`."""

from __future__ import annotations

import warnings

import clew
from clew import amp
from clew._base.provenance import user_level

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: clew.autocast("cpu")."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: clew.dtype = clew.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        warnings.warn(
            "cpu.amp.autocast(args...) is deprecated; use amp.autocast('cpu', args...)",
            FutureWarning,
            stacklevel=user_level(),
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
