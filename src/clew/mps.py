"""What programs ask of a Metal device: there is none."""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]


def is_available() -> bool:
    """Whether there is a device: no.

    Example:
        >>> clew.mps.is_available()
        False
    """
    return False


def device_count() -> int:
    """How many devices there are: 0.

    Example:
        >>> clew.mps.device_count()
        0
    """
    return 0


def empty_cache() -> None:
    """Does nothing: there is no device whose unused memory could be given back.

    Example:
        >>> clew.mps.empty_cache()
    """


def manual_seed(seed: int) -> None:
    """Does nothing but check that the seed is a number: there is no Metal device.

    Args:
        seed: an int.

    Example:
        >>> clew.mps.manual_seed(0)
    """
    int(seed)
