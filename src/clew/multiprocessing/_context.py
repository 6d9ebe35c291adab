"""Processes that were started together, and what is raised when one fails."""

from __future__ import annotations

import signal
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
]


class ProcessException(Exception):
    """One of the processes failed."""

    __module__ = "clew.multiprocessing.spawn"

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

    __module__ = "clew.multiprocessing.spawn"


class ProcessExitedException(ProcessException):
    """A process was killed, or ended with an exit code other than 0."""

    __module__ = "clew.multiprocessing.spawn"

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


class ProcessContext:
    """Processes that were started together; `start_processes(..., join=False)` gives it.

    Args:
        processes: the processes, started.
        errors: for each a queue that gets the text of its exception.

    Example:
        >>> from clew.multiprocessing import ProcessContext, start_processes
        >>> context: ProcessContext = start_processes(
        ...     lambda i: None, nprocs=1, join=False, start_method="fork"
        ... )
        >>> context.join()
        True
    """

    __module__ = "clew.multiprocessing.spawn"

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
            grace_period: seconds to end that the other processes get after one has failed.

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
