"""Questions about a CUDA device are answered, and what needs one raises."""

from __future__ import annotations

import warnings
from typing import Any

from clew._base.provenance import user_level
from clew._torch._more._raising import raising
from clew._torch.kinds import AcceleratorError as AcceleratorError

_NAMES = """
_sleep caching_allocator_alloc caching_allocator_delete caching_allocator_enable
change_current_allocator check_error clock_rate cudart current_blas_handle current_solver_handle
device_memory_used get_allocator_backend get_per_process_memory_fraction get_stream_from_external
get_sync_debug_mode graph_pool_handle memory_snapshot memory_usage power_draw
reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_cached
reset_peak_host_memory_stats set_per_process_memory_fraction set_sync_debug_mode temperature
use_mem_pool
"""
globals().update(raising("cuda", _NAMES, AssertionError, "there is no CUDA device"))


class CudaError(RuntimeError):
    """What a call of CUDA's library gives; there is none."""


class DeferredCudaCallError(Exception):
    """What a call raises that waited for the first use of a device."""


def _renamed(name: str) -> int:
    now = name.replace("cached", "reserved")
    warnings.warn(
        f"`torch.cuda.{name}` has been renamed to `torch.cuda.{now}`",
        FutureWarning,
        stacklevel=user_level(),
    )
    return 0


def memory_cached(device: Any = None) -> int:
    """0: the older name of memory_reserved."""
    return _renamed("memory_cached")


def max_memory_cached(device: Any = None) -> int:
    """0: the older name of max_memory_reserved."""
    return _renamed("max_memory_cached")


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Nothing is in use."""
    return {}


def host_memory_stats() -> dict[str, Any]:
    """Nothing is in use."""
    return {}


def list_gpu_processes(device: Any = None) -> str:
    """What to print: there is no device."""
    return "no processes are running: there is no CUDA device"
