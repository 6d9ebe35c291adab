"""The older name of `GradScaler("cuda")`."""

from __future__ import annotations

import warnings

from clew import amp
from clew._base.provenance import user_level
from clew.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(amp.GradScaler):
    """The deprecated name of `clew.amp.GradScaler("cuda")`; it warns, and without a device is
    disabled.

    Args:
        init_scale: the first factor of losses.
        growth_factor: what the factor is multiplied by after steps without infinities.
        backoff_factor: what it is multiplied by after gradients with infinities.
        growth_interval: how many steps without infinities come before it grows.
        enabled: whether it would do anything.

    Example:
        >>> from clew.cuda.amp import GradScaler
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> scaler = GradScaler()
        >>> scaler.is_enabled(), scaler.scale(clew.ones(1))
        (False, tensor([1.]))
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
            "cuda.amp.GradScaler(args...) is deprecated; use amp.GradScaler('cuda', args...)",
            FutureWarning,
            stacklevel=user_level(),
        )
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
