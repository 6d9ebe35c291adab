"""Modules with integer weights."""

from __future__ import annotations

from clew.ao.nn.quantized import dynamic

__all__ = ["dynamic"]
