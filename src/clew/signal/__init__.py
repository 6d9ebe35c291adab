"""Signal processing: window functions."""

from __future__ import annotations

from clew import _namespace
from clew.signal import windows

__all__ = ["windows"]

__getattr__ = _namespace.module_getattr(__name__, globals())
