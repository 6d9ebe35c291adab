"""What needs an XPU device raises; what counts memory or states of none has none."""

from __future__ import annotations

from typing import Any

from clew._torch._more._raising import raising

_NAMES = """
current_device current_stream device get_device_capability get_device_name get_device_properties
get_rng_state init initial_seed is_current_stream_capturing mem_get_info reset_peak_memory_stats
seed set_device set_stream stream synchronize
"""
globals().update(raising("xpu", _NAMES, AssertionError, "there is no XPU device"))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a device that computes in bfloat16: no."""
    return False


def is_initialized() -> bool:
    """Whether the device was used: no."""
    return False


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors there: 0."""
    return 0


max_memory_allocated = max_memory_reserved = memory_reserved = memory_allocated


def manual_seed_all(seed: int) -> None:
    """Seeds the devices: there is none."""
    int(seed)


def seed_all() -> None:
    """Seeds the devices: there is none."""


def get_rng_state_all() -> list[Any]:
    """The states of the devices' random numbers: none."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Sets the states of the devices' random numbers: there may be none."""
    if len(list(new_states)):
        raise AssertionError("torch.xpu.set_rng_state_all: there is no XPU device")


def set_rng_state(new_state: Any, device: Any = "xpu") -> None:
    """Sets the state of a device's random numbers once there is one, which there never is."""
