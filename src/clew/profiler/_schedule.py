"""Which steps of a program a profiler records."""

from __future__ import annotations

import enum
import os
import socket
import time
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """What a profiler does in one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """Devices that a profiler could record; there is only the CPU."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded: the CPU.

    >>> clew.profiler.supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A rule for `profile`: cycles of waiting, warming up and recording.

    Args:
        wait: steps at the begin of a cycle in which nothing is recorded.
        warmup: steps after that which are recorded and thrown away.
        active: steps after that which are recorded.
        repeat: how many cycles; 0 for as long as the program runs.
        skip_first: steps before the first cycle.
        skip_first_wait: when not 0, the first cycle does without its `wait`.

    Returns: a function of a step's number.

    Raises:
        AssertionError: a number is negative, or `active` is 0.

    >>> rule = clew.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [rule(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            "schedule: active must be above 0 and the others not below; got "
            f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}"
        )
    if warmup == 0:
        warnings.warn(
            "schedule: without warmup the first recorded step may be slower than the others",
            stacklevel=2,
        )
    cycle = wait + warmup + active

    def rule(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"schedule: a step must not be below 0; got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return rule


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """A function for `on_trace_ready` that writes each trace to a file of its own.

    Args:
        dir_name: the folder, made when it is not there.
        worker_name: begins the files' names; host and process when not given.
        use_gzip: compress them.
        use_python_export: makes no difference: there is one way to write a trace.

    Returns: the function.

    Raises:
        RuntimeError: the folder cannot be made.

    Example:
        >>> import os
        >>> from clew.profiler import profile, tensorboard_trace_handler
        >>> with profile(on_trace_ready=tensorboard_trace_handler("log", "worker")):
        ...     _ = clew.ones(3) * 2
        >>> [name.split(".")[0] for name in os.listdir("log")]
        ['worker']
    """

    def handler(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError(f"tensorboard_trace_handler: cannot make {dir_name!r}") from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".pt.trace.json" + ".gz" * use_gzip
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{suffix}"))

    return handler
