"""What needs an accelerator raises."""

from __future__ import annotations

from clew._torch._more._raising import raising

_NAMES = """
current_device_idx current_device_index current_stream device_index empty_cache
get_device_capability get_memory_info max_memory_allocated max_memory_reserved memory_allocated
memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats
set_device_idx set_device_index set_stream synchronize
"""
globals().update(raising("accelerator", _NAMES, RuntimeError, "there is no accelerator"))
