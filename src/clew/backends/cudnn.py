"""cuDNN: not part of clew; the settings exist, and there is no device that they would change."""

from __future__ import annotations

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available", "version"]

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN is there: no."""
    return False


def version() -> int | None:
    """The version of cuDNN: None."""
    return None
