"""Times, bytes and the order of rows, as tables of a profile show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["format_memory", "format_time", "sort_key"]


def format_time(time_us: float, unit: str | None = None) -> str:
    """A time in the unit in which it reads best, or in the given one ("s", "ms", "us")."""
    if unit is None:
        unit = "s" if abs(time_us) >= 1e6 else "ms" if abs(time_us) >= 1e3 else "us"
    if unit not in _UNITS:
        raise ValueError(f"table: time_unit must be 's', 'ms' or 'us'; got {unit!r}")
    return f"{time_us / _UNITS[unit]:.3f}{unit}"


_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_memory(nbytes: float) -> str:
    """Bytes in the unit in which they read best: ``24.00 KB``."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes:.0f} B"


def sort_key(name: str) -> Callable[[Any], Any]:
    """How to sort by an attribute that `EventList.table` names."""
    name = name.replace("cuda", "device").replace("xpu", "device")
    if name not in _SORTABLE:
        raise ValueError(
            f"table: sort_by must be one of {', '.join(sorted(_SORTABLE))}; got {name!r}"
        )
    return lambda event: getattr(event, name)


_SORTABLE = frozenset(
    """
    cpu_time cpu_time_total self_cpu_time_total cpu_memory_usage self_cpu_memory_usage flops count
    device_time device_time_total self_device_time_total device_memory_usage
    self_device_memory_usage
    """.split()
)
