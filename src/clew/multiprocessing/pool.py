"""Pools of processes, which are Python's own: arguments and results may hold tensors."""

from __future__ import annotations

from multiprocessing.pool import Pool, ThreadPool

__all__ = ["Pool", "ThreadPool"]
