"""Marks for PyTorch's compiler: functions stay as they are."""

from __future__ import annotations

from clew._torch._dynamo import (
    allow_in_graph,
    disable,
    mark_dynamic,
    mark_static,
    mark_static_address,
)

__all__ = ["allow_in_graph", "disable", "mark_dynamic", "mark_static", "mark_static_address"]
