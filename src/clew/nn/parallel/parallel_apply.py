"""By PyTorch's name for the module."""

from __future__ import annotations

from .scatter_gather import parallel_apply

__all__ = ["parallel_apply"]
