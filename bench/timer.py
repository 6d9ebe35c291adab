"""Timing of short calls: many repetitions, the loop's own cost taken off, medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def nanoseconds(
    call: Callable[[], object], repeats: int = 9, seconds: float = 0.02
) -> tuple[float, float]:
    """Median and spread (half the interquartile range) of the cost of ``call()``, in ns, without
    the call of a lambda.

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
    samples.sort()
    quarter = repeats // 4
    return statistics.median(samples), (samples[-1 - quarter] - samples[quarter]) / 2


_nothing = lambda: None  # noqa: E731
