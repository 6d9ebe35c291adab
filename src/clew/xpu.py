"""What programs ask of an XPU device: there is none."""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]


def is_available() -> bool:
    """Whether there is a device: no."""
    return False


def device_count() -> int:
    """How many devices there are: 0."""
    return 0


def empty_cache() -> None:
    """Gives back a device's unused memory: there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the device: there is none."""
    int(seed)
