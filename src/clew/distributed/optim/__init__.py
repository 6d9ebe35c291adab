"""Optimizers of several processes."""

from typing import Any

from clew.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from clew.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


def __getattr__(name: str) -> Any:
    from clew._torch.absent import lacking  # what programs import and rarely use

    return lacking("distributed.optim", name)
