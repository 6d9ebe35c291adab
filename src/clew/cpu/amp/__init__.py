"""Mixed precision by its older names, for the CPU."""

from __future__ import annotations

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
