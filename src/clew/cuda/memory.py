"""The memory of a CUDA device, by the module that PyTorch has it in: there is none."""

from __future__ import annotations

from typing import Any

from clew.cuda._missing import _absent, _NeedsDevice

__all__ = [
    "MemPool",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free and the total bytes of a device; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.mem_get_info(0)
        Traceback (most recent call last):
        AssertionError: cuda.mem_get_info: clew has no CUDA device
    """
    return _absent("mem_get_info")


def empty_cache() -> None:
    """Does nothing: there is no device whose unused memory could be given back.

    Example:
        >>> clew.cuda.empty_cache()
    """


def memory_allocated(device: Any = None) -> int:
    """The bytes in use on a device: 0.

    Args:
        device: not used.

    Example:
        >>> clew.cuda.memory_allocated()
        0
    """
    return 0


def memory_reserved(device: Any = None) -> int:
    """The bytes held on a device: 0.

    Args:
        device: not used.

    Example:
        >>> clew.cuda.memory_reserved()
        0
    """
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use on a device: 0.

    Args:
        device: not used.

    Example:
        >>> clew.cuda.max_memory_allocated()
        0
    """
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes held on a device: 0.

    Args:
        device: not used.

    Example:
        >>> clew.cuda.max_memory_reserved()
        0
    """
    return 0


class MemPool(_NeedsDevice):
    """Memory on a device; here making one raises: there is no CUDA device.

    Raises:
        RuntimeError: always.

    Example:
        >>> clew.cuda.MemPool()
        Traceback (most recent call last):
        RuntimeError: cuda.MemPool: clew runs on the CPU here; there is no CUDA device
    """


def reset_peak_memory_stats(device: Any = None) -> None:
    """Would begin to count a device's most bytes anew; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.reset_peak_memory_stats()
        Traceback (most recent call last):
        AssertionError: cuda.reset_peak_memory_stats: clew has no CUDA device
    """
    _absent("reset_peak_memory_stats")


def reset_max_memory_allocated(device: Any = None) -> None:
    """Would begin to count a device's most bytes anew; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.reset_max_memory_allocated()
        Traceback (most recent call last):
        AssertionError: cuda.reset_max_memory_allocated: clew has no CUDA device
    """
    _absent("reset_max_memory_allocated")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The counters of a device's memory: an empty dict.

    Args:
        device: not used.

    Example:
        >>> clew.cuda.memory_stats()
        {}
    """
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counters of a device's memory as a table: an empty text.

    Args:
        device: not used.
        abbreviated: not used.

    Example:
        >>> clew.cuda.memory_summary()
        ''
    """
    return ""
