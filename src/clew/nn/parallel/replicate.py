"""By PyTorch's name for the module."""

from __future__ import annotations

from .scatter_gather import replicate

__all__ = ["replicate"]
