"""Whether deterministic algorithms fill what `empty` gives: in clew they do not."""

from __future__ import annotations

import sys
import types
from typing import Any


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """False: the elements of `empty` are whatever lies there."""
        return False

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: Any) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(
                f"fill_uninitialized_memory: must be a bool; got {type(mode).__name__}"
            )
        if mode:
            raise NotImplementedError(
                "fill_uninitialized_memory: clew does not fill the elements of empty(); make "
                "tensors with zeros() or full()"
            )


sys.modules[__name__].__class__ = _Deterministic
