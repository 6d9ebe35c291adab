"""What programs ask of an XPU device: there is none."""

from clew._base.absent_devices import device_count, empty_cache, is_available, manual_seed

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]
