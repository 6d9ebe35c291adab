"""What programs ask of the CPU as a device: there is one, and it has no queue to wait for."""

from __future__ import annotations

from typing import Any

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """Whether there is a CPU: yes.

    Example:
        >>> clew.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether the CPU is in use: yes."""
    return True


def device_count() -> int:
    """How many devices the CPU is: 1.

    Example:
        >>> clew.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """The name of the present device: "cpu".

    Example:
        >>> clew.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: the CPU is one device.

    Args:
        device: not used.

    Example:
        >>> clew.cpu.set_device("cpu")
    """


def synchronize(device: Any = None) -> None:
    """Does nothing: operations have ended when they return.

    Args:
        device: not used.

    Example:
        >>> clew.cpu.synchronize()
    """
