"""Putting hooks into the tables that nodes and tensors keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.utils.hooks import RemovableHandle


def attach_hook(table: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a hook to a table, and returns the handle that removes it.

    Args:
        table: an OrderedDict, which the handle refers to weakly.
        hook: what is called.

    Raises:
        TypeError: if the hook cannot be called.

    Example:
        >>> from clew.autograd.hooks import attach_hook
        >>> from collections import OrderedDict
        >>> table = OrderedDict()
        >>> handle = attach_hook(table, print)
        >>> len(table)
        1
        >>> handle.remove()
        >>> len(table)
        0
    """
    if not callable(hook):
        raise TypeError(f"a hook must be callable; got {type(hook).__name__}")
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle
