"""The scaler of losses for models whose gradients are spread over processes."""

from __future__ import annotations

from typing import Any

from clew import distributed as dist
from clew.amp import GradScaler


class ShardedGradScaler(GradScaler):
    """A GradScaler that leaves a step out on all processes where one has a gradient that is not
    finite.

    Args:
        device: as of GradScaler; "cpu" scales here.
        init_scale: the factor at first.
        backoff_factor: what the factor is multiplied by where gradients are not finite.
        growth_factor: what it is multiplied by after growth_interval steps that were.
        growth_interval: how many.
        enabled: with False nothing is scaled.
        process_group: the processes; all if None.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
        self.process_group = process_group

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool
    ) -> dict[Any, Any]:
        """That of one process, and whether another one found what is not finite."""
        super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        if dist.is_initialized():
            dist.all_reduce(found_inf, dist.ReduceOp.MAX, group=self.process_group)
        return {found_inf.device: found_inf}
