"""What torchvision's operations require of their arguments."""

from __future__ import annotations

import clew
from clew import Tensor


def need(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def need_kind(name: str, tensor: Tensor, half: bool) -> None:
    """Raises for data that the operation is not for."""
    kinds = (clew.float32, clew.float64, clew.float16) if half else (clew.float32, clew.float64)
    if tensor.dtype not in kinds:
        raise NotImplementedError(f"{name}: not implemented for {tensor.dtype}")
