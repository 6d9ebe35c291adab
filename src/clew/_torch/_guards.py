"""What is being compiled: nothing."""

from __future__ import annotations

from typing import Any


class TracingContext:
    """The state of a compiler: there is none."""

    @staticmethod
    def try_get() -> None:
        """None."""
        return None

    @staticmethod
    def get() -> Any:
        """Raises: nothing is compiled."""
        raise RuntimeError("TracingContext.get: nothing is being compiled")


def detect_fake_mode(inputs: Any = None) -> None:
    """None: there are no such tensors."""
    return None


active_fake_mode = detect_fake_mode
