"""What programs ask of an XPU device: there is none."""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]


def is_available() -> bool:
    """Whether there is an XPU device: no.

    Example:
        >>> clew.xpu.is_available()
        False
    """
    return False


def device_count() -> int:
    """How many XPU devices there are: 0.

    Example:
        >>> clew.xpu.device_count()
        0
    """
    return 0


def empty_cache() -> None:
    """Does nothing: there is no XPU device whose unused memory could be given back.

    Example:
        >>> clew.xpu.empty_cache()
    """


def manual_seed(seed: int) -> None:
    """Does nothing but check that the seed is a number: there is no XPU device.

    Args:
        seed: an int.

    Example:
        >>> clew.xpu.manual_seed(0)
    """
    int(seed)
