"""Whether mixed precision can work on a CUDA device."""

from __future__ import annotations

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device for mixed precision: True, for there is none.

    Example:
        >>> from clew.cuda.amp import amp_definitely_not_available
        >>> amp_definitely_not_available()
        True
    """
    return True
