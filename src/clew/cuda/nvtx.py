"""Marks for NVIDIA's profilers: without a device they raise, as in PyTorch without CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _absent(*args: Any, **kwargs: Any) -> NoReturn:
    """Marks something for the profiler: raises."""
    raise RuntimeError("cuda.nvtx: clew runs on the CPU here; there is no CUDA device to mark")


mark = range_push = range_pop = range_start = range_end = _absent


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Would mark a block for NVIDIA's profilers; here it raises: there is no CUDA device.

    Args:
        msg: the mark's text.
        args, kwargs: not used.

    Raises:
        RuntimeError: always.

    Example:
        >>> with clew.cuda.nvtx.range("step"):
        ...     pass
        Traceback (most recent call last):
        RuntimeError: cuda.nvtx: clew runs on the CPU here; there is no CUDA device to mark
    """
    _absent()
    yield
