"""Timing: medians of repeated measurements, the loop's own cost taken off where it matters."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def nanoseconds(call: Callable[[], object], repeats: int = 9, seconds: float = 0.02) -> float:
    """Median cost of a short ``call()``, in ns, without the call of a lambda.

    Args:
        call: what to time; it should be a lambda around one operation.
        repeats: number of measurements.
        seconds: length of one measurement.
    """
    count = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        took = time.perf_counter_ns() - start
        if took > seconds * 1e9 / 4:
            break
        count *= 2
    samples = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        middle = time.perf_counter_ns()
        for _ in range(count):
            _nothing()
        end = time.perf_counter_ns()
        samples.append((2 * middle - start - end) / count)
    return statistics.median(samples)


_nothing = lambda: None  # noqa: E731


def milliseconds(call: Callable[[], object], seconds: float = 0.6, least: int = 5) -> float:
    """Median wall time of a long ``call()``, in ms, after one call that warms up.

    Args:
        call: what to time.
        seconds: how long to go on.
        least: number of calls at least.
    """
    call()
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3
