"""What programs ask of any accelerator: there is none."""

from __future__ import annotations

from clew._base.absent_devices import device_count, is_available

__all__ = ["current_accelerator", "device_count", "is_available"]


def current_accelerator(check_available: bool = False) -> None:
    """The kind of accelerator that is there: None.

    Args:
        check_available: not used.

    Example:
        >>> clew.accelerator.current_accelerator() is None
        True
    """
    return None
