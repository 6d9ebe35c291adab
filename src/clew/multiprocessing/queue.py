"""Queues between processes, which are Python's own: those send tensors as shared memory."""

from __future__ import annotations

from multiprocessing.queues import JoinableQueue, Queue, SimpleQueue

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]
