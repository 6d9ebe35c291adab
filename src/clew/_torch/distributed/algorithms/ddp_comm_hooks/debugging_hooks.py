"""Hooks of DistributedDataParallel that show what communication costs."""

from __future__ import annotations

from typing import Any

from clew.futures import Future


def noop_hook(_: Any, bucket: Any) -> Any:
    """Leaves gradients as each process has them, so that a step can be timed without sending.

    Args:
        _: nothing is kept.
        bucket: the gradients.
    """
    made: Any = Future()
    made.set_result(bucket.buffer())
    return made
