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
    """A mark around a block: raises."""
    _absent()
    yield
