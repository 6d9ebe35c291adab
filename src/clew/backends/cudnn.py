"""cuDNN: not part of clew; the settings exist, and there is no device that they would change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "fp32_precision",
    "is_available",
    "version",
]

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10
fp32_precision = "none"


def is_available() -> bool:
    """Whether cuDNN is there: no.

    Example:
        >>> clew.backends.cudnn.is_available()
        False
    """
    return False


def version() -> int | None:
    """The version of cuDNN: None.

    Example:
        >>> clew.backends.cudnn.version() is None
        True
    """
    return None


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Sets cuDNN's settings within a block; there is no device that they would change.

    Args:
        enabled: whether to use cuDNN.
        benchmark: whether to try several algorithms.
        benchmark_limit: how many of them.
        deterministic: whether to use deterministic algorithms only.
        allow_tf32: whether to round products to TF32.
        fp32_precision: the precision of products of float32.

    Example:
        >>> with clew.backends.cudnn.flags(enabled=False):
        ...     clew.backends.cudnn.enabled
        False
        >>> clew.backends.cudnn.enabled
        True
    """
    settings = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }
    module = globals()
    before = {name: module[name] for name in settings}
    module.update(settings)
    try:
        yield
    finally:
        module.update(before)
