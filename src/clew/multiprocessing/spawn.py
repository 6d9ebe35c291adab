"""Running one function in several processes."""

from __future__ import annotations

import multiprocessing as _mp
import sys
from collections.abc import Callable
from typing import Any

from clew.multiprocessing._context import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
)

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


def _call(fn: Callable[..., Any], i: int, args: tuple[Any, ...], errors: Any) -> None:
    import sys
    import traceback

    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs `fn(i, *args)` in processes number 0 to nprocs - 1.

    Args:
        fn: a function that can be pickled.
        args: what it gets after its number.
        nprocs: how many processes.
        join: wait until all have ended; an exception in one is raised here.
        daemon: end the processes with this one.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None, or with join=False an object with `join()`.

    Example:
        >>> from clew.multiprocessing import start_processes
        >>> def fill(i, out):
        ...     out[i] = i + 1
        >>> total = clew.zeros(2).share_memory_()
        >>> start_processes(fill, (total,), nprocs=2, start_method="fork")
        >>> total
        tensor([1., 2.])
    """
    context = _mp.get_context(start_method)
    processes: list[Any] = []
    errors: list[Any] = []
    for i in range(nprocs):
        error = context.SimpleQueue()
        process = context.Process(  # type: ignore[attr-defined]
            target=_call, args=(fn, i, args, error), daemon=daemon
        )
        process.start()
        processes.append(process)
        errors.append(error)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs `fn(i, *args)` in processes number 0 to nprocs - 1, started anew.

    Where the program has imported `clew.distributed` and MPI is installed, several processes are
    MPI's ranks, which `init_process_group` makes a group of; unless `args` has a queue or a lock.

    Args:
        fn: a function that can be pickled.
        args: what it gets after its number.
        nprocs: how many processes.
        join: wait until all have ended; an exception in one is raised here.
        daemon: end the processes with this one.
        start_method: "spawn"; for others use `start_processes`.

    Returns:
        None, or with join=False an object with `join()`.

    Example:
        >>> from clew.multiprocessing import spawn
        >>> import operator
        >>> spawn(operator.index, nprocs=1)  # operator.index(0), in another process
    """
    if start_method == "spawn" and nprocs > 1 and "clew.distributed" in sys.modules:
        from clew.multiprocessing import _ranks

        started = _ranks.start(fn, args, nprocs, daemon)
        if started is not None:
            while join and not started.join():
                pass
            return None if join else started
    return start_processes(fn, args, nprocs, join, daemon, start_method)
