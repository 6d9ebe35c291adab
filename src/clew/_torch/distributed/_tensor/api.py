"""The name that `clew.distributed.tensor` had in older versions of PyTorch."""

from __future__ import annotations

from clew.distributed.tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
