"""Process groups: not part of clew yet; programs that ask first run in one process."""

from __future__ import annotations

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """Whether there are process groups: no."""
    return False


def is_initialized() -> bool:
    """Whether this process is part of a group: no."""
    return False
