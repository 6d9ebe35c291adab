"""What needs a Metal device raises."""

from __future__ import annotations

from clew._torch._more._raising import raising

_NAMES = """
compile_shader current_allocated_memory driver_allocated_memory get_core_count get_rng_state
is_macos_or_newer recommended_max_memory seed set_per_process_memory_fraction set_rng_state
synchronize
"""
globals().update(raising("mps", _NAMES, RuntimeError, "there is no Metal device"))
