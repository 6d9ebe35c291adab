"""The older name of `autocast("cpu")`."""

from __future__ import annotations

import warnings

import clew
from clew import amp
from clew._base.provenance import user_level

__all__ = ["autocast"]


class autocast(amp.autocast):
    """The deprecated name of `clew.autocast("cpu")`; it warns.

    Args:
        enabled: whether it does anything.
        dtype: the dtype of operations that take a narrower one.
        cache_enabled: keep converted weights within the block.

    Example:
        >>> from clew.cpu.amp import autocast
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> with autocast():
        ...     (clew.ones(1, 1) @ clew.ones(1, 1)).dtype
        clew.bfloat16
    """

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
