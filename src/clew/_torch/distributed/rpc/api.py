"""Calls of other processes' functions: there are no other processes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that may only be called among other processes: it raises."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{func.__name__}: RPC is not part of clew")

    return call
