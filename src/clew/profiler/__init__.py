"""Where time and memory go: PyTorch's profiler interface, and tables by line and by module.

>>> from clew.profiler import profile, record_function
>>> with profile(record_shapes=True) as prof:
...     with record_function("square"):
...         y = clew.ones(2, 3) ** 2
>>> print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=5))  # doctest: +SKIP
"""

from __future__ import annotations

from clew.autograd.profiler import DeviceType, kineto_available, record_function
from clew.profiler._profile import profile
from clew.profiler._schedule import (
    ProfilerAction,
    ProfilerActivity,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
