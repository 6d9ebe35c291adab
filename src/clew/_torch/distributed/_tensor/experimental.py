"""The name that `clew.distributed.tensor.experimental` had in older versions of PyTorch."""

from __future__ import annotations

from clew.distributed.tensor.experimental import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
