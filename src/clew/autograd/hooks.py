"""Putting hooks into the tables that nodes and tensors keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.utils.hooks import RemovableHandle


def attach_hook(table: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds the hook to the table and returns the handle that removes it."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable; got {type(hook).__name__}")
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle
