"""OpenMP, which runs loops on several threads."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether loops run on several threads: yes.

    Example:
        >>> clew.backends.openmp.is_available()
        True
    """
    return True
