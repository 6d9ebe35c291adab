"""MKL: not part of clew, which multiplies with its own kernels and oneDNN."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether MKL is there: no.

    Example:
        >>> clew.backends.mkl.is_available()
        False
    """
    return False
