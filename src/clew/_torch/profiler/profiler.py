"""The profiler, by the module that PyTorch has it in."""

from __future__ import annotations

from clew.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Records every step."""
    return ProfilerAction.RECORD
