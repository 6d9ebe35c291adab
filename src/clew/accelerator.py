"""What programs ask of any accelerator: there is none."""

from __future__ import annotations

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Whether there is an accelerator: no.

    >>> clew.accelerator.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many devices there are: 0.

    >>> clew.accelerator.device_count()
    0
    """
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The kind of accelerator that is there: None.

    Args:
        check_available: not used.

    Example:
        >>> clew.accelerator.current_accelerator() is None
        True
    """
    return None
