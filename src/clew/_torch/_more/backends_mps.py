"""What needs a Metal device raises."""

from __future__ import annotations

from clew._torch._more._raising import raising

_NAMES = "is_macos13_or_newer is_macos_or_newer get_name get_core_count"
globals().update(raising("backends.mps", _NAMES, RuntimeError, "there is no Metal device"))
