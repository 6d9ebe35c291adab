"""The generator of a worker process."""

from __future__ import annotations

from typing import Any


def thread_safe_generator() -> Any:
    """None: workers are processes, each with a default generator of its own."""
    return None
