"""What programs ask of a kind of device that is not there: `clew.mps`, `clew.xpu`,
`clew.accelerator`.
"""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]


def is_available() -> bool:
    """Whether there is a device of the kind: no.

    Example:
        >>> clew.mps.is_available(), clew.xpu.is_available(), clew.accelerator.is_available()
        (False, False, False)
    """
    return False


def device_count() -> int:
    """How many devices of the kind there are: 0.

    Example:
        >>> clew.mps.device_count(), clew.xpu.device_count(), clew.accelerator.device_count()
        (0, 0, 0)
    """
    return 0


def empty_cache() -> None:
    """Does nothing: there is no device whose unused memory could be given back.

    Example:
        >>> clew.mps.empty_cache()
    """


def manual_seed(seed: int) -> None:
    """Does nothing but check that the seed is a number: there is no device that draws.

    Args:
        seed: an int.

    Example:
        >>> clew.xpu.manual_seed(0)
    """
    int(seed)
