"""What programs ask of an MTIA device: there is none."""

from __future__ import annotations

from clew._torch._more._raising import raising

_NAMES = """
current_device current_stream empty_cache get_device_capability get_rng_state init mem_get_info
memory_stats reset_peak_memory_stats set_device set_rng_state set_stream stream synchronize
"""
globals().update(raising("mtia", _NAMES, RuntimeError, "there is no MTIA device"))


def is_available() -> bool:
    """Whether there is a device: no."""
    return False


def is_built() -> bool:
    """Whether clew was built for one: no."""
    return False


def is_initialized() -> bool:
    """Whether one was used: no."""
    return False


def device_count() -> int:
    """How many devices there are: 0."""
    return 0
