"""Metal: not part of clew."""

from __future__ import annotations

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Whether a Metal device is there: no.

    Example:
        >>> clew.backends.mps.is_available()
        False
    """
    return False


def is_built() -> bool:
    """Whether clew was built with Metal: no.

    Example:
        >>> clew.backends.mps.is_built()
        False
    """
    return False
