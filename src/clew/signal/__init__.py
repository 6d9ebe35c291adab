"""Signal processing: window functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import _namespace
from clew.signal import windows

__all__ = ["windows"]

if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
