"""Running one function in several processes."""

from __future__ import annotations

import multiprocessing as _mp
import signal
import sys
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """One of the processes failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = pid
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended with an exception; its traceback is part of the text."""


class ProcessExitedException(ProcessException):
    """A process was killed, or ended with an exit code other than 0."""

    def __init__(
        self, msg: str, error_index: int, pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (
            self.msg,
            self.error_index,
            self.pid,
            self.exit_code,
            self.signal_name,
        )


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


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes = processes
        self._errors = errors

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one process fails or some end.

        Args:
            timeout: most seconds to wait.
            grace_period: seconds that the others get after one has failed.

        Returns:
            Whether all have ended.
        """
        from multiprocessing.connection import wait

        running = {p.sentinel: i for i, p in enumerate(self.processes) if p.is_alive()}
        if running:
            for sentinel in wait(list(running), timeout):
                # The sentinel may be ready a little before the exit code is known.
                self.processes[running[sentinel]].join()
        for i, process in enumerate(self.processes):
            if process.exitcode:
                for other in self.processes:
                    if other.is_alive() and grace_period:
                        other.join(grace_period)
                    if other.is_alive():
                        other.terminate()
                for other in self.processes:
                    other.join()
                if self._errors[i].empty():
                    raise _exited(i, process)
                text = f"\n\n-- Process {i} terminated with the following error:\n"
                raise ProcessRaisedException(text + self._errors[i].get(), i, process.pid)
        return all(not p.is_alive() for p in self.processes)


def _exited(i: int, process: Any) -> ProcessExitedException:
    code = process.exitcode
    if code >= 0:
        text = f"process {i} terminated with exit code {code}"
        return ProcessExitedException(text, i, process.pid, code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"<Unknown signal {-code}>"
    text = f"process {i} terminated with signal {name}"
    return ProcessExitedException(text, i, process.pid, code, name)


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
    """
    if start_method == "spawn" and nprocs > 1 and "clew.distributed" in sys.modules:
        from clew.multiprocessing import _ranks

        started = _ranks.start(fn, args, nprocs, daemon)
        if started is not None:
            while join and not started.join():
                pass
            return None if join else started
    return start_processes(fn, args, nprocs, join, daemon, start_method)
