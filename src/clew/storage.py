"""The bytes behind tensors."""

from __future__ import annotations

from clew._tensor import UntypedStorage as UntypedStorage

__all__ = ["UntypedStorage"]
