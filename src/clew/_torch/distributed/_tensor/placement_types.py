"""The name that `clew.distributed.tensor.placement_types` had in older versions of PyTorch."""

from __future__ import annotations

from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
