"""Watches worker processes of loaders that are not clew's own, by PyTorch's names."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

_workers: dict[int, set[int]] = {}
_handling = False


def _set_worker_pids(key: int, child_pids: Iterable[int]) -> None:
    """Begins to watch the workers of a loader.

    Args:
        key: which loader.
        child_pids: numbers of processes that this one started.
    """
    if key in _workers:
        raise ValueError(f"_set_worker_pids: the workers of {key} are watched already")
    _workers[key] = set(child_pids)


def _remove_worker_pids(key: int) -> None:
    """Watches the workers of a loader no more."""
    if key not in _workers:
        raise ValueError(f"_remove_worker_pids: no workers of {key} are watched")
    del _workers[key]


def _error_if_any_worker_fails() -> None:
    """Raises if a worker was killed or ended with an error; it stays to be waited for."""
    for pids in _workers.values():
        for pid in pids:
            try:
                found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # waited for already
                continue
            if found is None or (found.si_code == os.CLD_EXITED and found.si_status == 0):
                continue
            if found.si_code != os.CLD_EXITED and found.si_status == signal.SIGTERM:
                continue  # as this process itself ends workers
            pids.clear()
            if found.si_code == os.CLD_EXITED:
                raise RuntimeError(
                    f"DataLoader worker (pid {pid}) exited unexpectedly with exit code "
                    f"{found.si_status}; num_workers=0 shows the error itself"
                )
            name = signal.Signals(found.si_status).name
            raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {name}")


def _set_worker_signal_handlers() -> None:
    """Makes a worker tell where it was when a signal such as SIGSEGV ends it."""
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)


def _set_SIGCHLD_handler() -> None:
    """Makes the end of a watched worker an error here at once."""
    global _handling
    if _handling or not hasattr(signal, "SIGCHLD"):
        return
    if threading.current_thread() is not threading.main_thread():
        return
    earlier = signal.getsignal(signal.SIGCHLD)

    def handler(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(earlier):
            earlier(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _handling = True
