"""What programs ask of the CPU as a device: there is one, and it has no queue to wait for."""

from __future__ import annotations

from typing import Any

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def is_initialized() -> bool:
    """Whether the CPU is in use: yes."""
    return True


def device_count() -> int:
    """How many devices the CPU is: 1."""
    return 1


def current_device() -> str:
    """The name of the present device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Chooses a device: there is one."""


def synchronize(device: Any = None) -> None:
    """Waits for operations to end: they have when they return."""
