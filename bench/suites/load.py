"""Training steps beside busy processes and under a quota: how many times the fair share they take.

Where B processes are busy on C processors and a step keeps r threads running, each of them gets
C / (B + r) of a processor at best, and the step takes (B + r) / C times as long as alone: that is
the fair share. Times are means over all steps, for most short steps fall between two interruptions.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.suites import training

UNIT = "times the fair share"
BETTER = "lower"
BUSY = (2, 8)
QUOTA = "quota of one processor"
PARTS = len(training.CASES)
LIMITS = {
    f"{case}: {load}": 2.0
    for case in training.CASES
    for load in (*(f"beside {count}" for count in BUSY), QUOTA)
}


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3)
        yield
    finally:
        for process in others:
            process.kill()
        for process in others:
            process.wait()


def pace(step: Callable[[], None], seconds: float) -> tuple[float, float]:
    """Mean wall time of a step, and how many threads ran meanwhile."""
    step()
    count = 0
    start, used = time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - start) < seconds or count < 3:
        step()
        count += 1
    return took / count, (time.process_time() - used) / took


def one_cpu() -> Path | None:
    """A control group within this process's, with the time of one processor; None where the system
    does not let us make one.
    """
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if not names:
            root, limit = Path("/sys/fs/cgroup"), "cpu.max"
        elif "cpu" in names.split(","):
            root, limit = Path("/sys/fs/cgroup", names), "cpu.cfs_quota_us"
        else:
            continue
        group = Path(f"{root}{path}") / f"load-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            try:
                (group / limit).write_text("100000")
                return group
            except OSError:
                group.rmdir()
    return None


def under_quota(t: Any, case: str, idle: float, threads: float) -> dict[str, float]:
    """The case in a process that starts in a group with one processor's time."""
    group = one_cpu()
    if group is None:
        return {}
    code = (
        f"import importlib, os\n"
        f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        f"from bench.suites import load\n"
        f"t = importlib.import_module({t.__name__!r})\n"
        f"t.manual_seed(0)\n"
        f"step = load.training.CASES[{case!r}](t)\n"
        f"load.pace(step, 0.3)\n"
        f"print(load.pace(step, 2.0)[0])"
    )
    try:
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    finally:
        time.sleep(0.1)
        group.rmdir()
    fair = idle * max(1.0, threads)
    return {f"{case}: {QUOTA}": float(run.stdout.split()[-1]) / fair}


def run(t: Any, part: int) -> dict[str, float]:
    """How many times the fair share a step takes, by load."""
    case, make = list(training.CASES.items())[part]
    t.manual_seed(0)
    step = make(t)
    pace(step, 0.3)
    processors = len(os.sched_getaffinity(0))
    found = {}
    idle, threads = pace(step, 1.0)
    for count in BUSY:
        with busy(count):
            pace(step, 0.5)
            took, _ = pace(step, 2.0)
        runnable = min(max(threads, 1.0), processors)
        fair = idle * max(1.0, (count + runnable) / processors)
        found[f"{case}: beside {count}"] = took / fair
    return {**found, **under_quota(t, case, idle, min(max(threads, 1.0), processors))}
