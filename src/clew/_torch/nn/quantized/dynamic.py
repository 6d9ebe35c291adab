"""The older name of ao.nn.quantized.dynamic."""

from __future__ import annotations

from clew.ao.nn.quantized.dynamic import Linear

__all__ = ["Linear"]
