"""MKL: not part of clew, which multiplies with its own kernels and oneDNN."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether MKL is there: no."""
    return False
