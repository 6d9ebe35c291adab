"""Modules with fewer bits."""

from __future__ import annotations

from clew.ao.nn import quantized

__all__ = ["quantized"]
