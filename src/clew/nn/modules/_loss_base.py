"""What loss modules share: the reduction, and weights of classes."""

from __future__ import annotations

from typing import Any

from ..functional._loss import legacy_reduction
from .module import Module

__all__ = ["_Loss", "_WeightedLoss"]


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = legacy_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    weight: Any

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
