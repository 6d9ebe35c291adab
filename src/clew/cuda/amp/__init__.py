"""Mixed precision by its older names, for CUDA devices: there is none, so that it changes nothing.

A program that says `with cuda.amp.autocast():` runs as it would without; PyTorch on a computer
without CUDA does the same.
"""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd
from .common import amp_definitely_not_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
