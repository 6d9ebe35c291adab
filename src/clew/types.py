"""Names for type annotations, such as Device and Number."""

from __future__ import annotations

import builtins
from typing import Any

import clew

__all__ = ["Device", "Number", "Storage", "Tensor"]

Tensor = clew.Tensor
Number = builtins.int | builtins.float | builtins.bool
Device = clew.device | str | builtins.int | None
Storage = Any

_bool = builtins.bool
_complex = builtins.complex
_device = clew.device
_dtype = clew.dtype
_float = builtins.float
_int = builtins.int
_layout = clew.layout
_size = clew.Size | list[builtins.int] | tuple[builtins.int, ...]
