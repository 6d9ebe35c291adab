"""What programs ask of a CUDA device: there is none, and this module says so.

Questions are answered (`is_available()` is False, there are 0 devices, 0 bytes in use); what
would need a device raises, as PyTorch does when it was built without CUDA.
"""

from __future__ import annotations

from typing import Any

from clew import OutOfMemoryError

__all__ = [
    "OutOfMemoryError",
    "current_device",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state_all",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state_all",
    "synchronize",
]


def _absent(name: str) -> Any:
    raise AssertionError(f"cuda.{name}: clew has no CUDA device")


def is_available() -> bool:
    """Whether there is a device: no."""
    return False


def is_initialized() -> bool:
    """Whether a device is in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a device computes in bfloat16: there is none."""
    return False


def device_count() -> int:
    """How many devices there are: 0."""
    return 0


def get_arch_list() -> list[str]:
    """The kinds of devices compiled for: none."""
    return []


def init() -> None:
    """Raises: there is no device."""
    _absent("init")


def current_device() -> int:
    """Raises: there is no device."""
    return _absent("current_device")


def set_device(device: Any) -> None:
    """Raises: there is no device."""
    _absent("set_device")


def get_device_name(device: Any = None) -> str:
    """Raises: there is no device."""
    return _absent("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Raises: there is no device."""
    return _absent("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """Raises: there is no device."""
    return _absent("get_device_properties")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Raises: there is no device."""
    return _absent("mem_get_info")


def synchronize(device: Any = None) -> None:
    """Raises: there is no device."""
    _absent("synchronize")


def empty_cache() -> None:
    """Gives back a device's unused memory: there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the present device: there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds all devices: there are none."""
    int(seed)


def seed() -> None:
    """Seeds the present device: there is none."""


def seed_all() -> None:
    """Seeds all devices: there are none."""


def get_rng_state_all() -> list[Any]:
    """The random states of all devices: an empty list."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Sets the random states of all devices; a state given raises, there is no device for it."""
    if list(new_states):
        _absent("set_rng_state_all")


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a device: 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Bytes held on a device: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes in use on a device: 0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Most bytes held on a device: 0."""
    return 0


def __getattr__(name: str) -> Any:
    if name == "amp":
        import importlib

        return importlib.import_module("clew.cuda.amp")
    raise AttributeError(f"module 'clew.cuda' has no attribute {name!r}: there is no CUDA device")
