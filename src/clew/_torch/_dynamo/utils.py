"""Small questions about PyTorch's compiler."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """False: there is no such compiler."""
    return False


class CompileProfiler:
    """Counts what was compiled: nothing."""

    def report(self) -> str:
        """That nothing was compiled."""
        return "nothing was compiled"


counters: dict[str, dict[str, int]] = {}
