"""The older name of `GradScaler("cpu")`."""

from __future__ import annotations

import warnings

from clew import amp
from clew._base.provenance import user_level

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """The deprecated name of `clew.amp.GradScaler("cpu")`; it warns.

    Args:
        init_scale: the first factor of losses.
        growth_factor: what the factor is multiplied by after steps without infinities.
        backoff_factor: what it is multiplied by after gradients with infinities.
        growth_interval: how many steps without infinities come before it grows.
        enabled: whether it does anything.

    Example:
        >>> from clew.cpu.amp import GradScaler
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> GradScaler(init_scale=4.0).scale(clew.ones(1))
        tensor([4.])
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "cpu.amp.GradScaler(args...) is deprecated; use amp.GradScaler('cpu', args...)",
            FutureWarning,
            stacklevel=user_level(),
        )
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
