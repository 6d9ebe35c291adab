"""Processes of `spawn` as MPI's ranks, so that they can form a process group.

Processes that start by themselves cannot connect to each other, so where the program has imported
`clew.distributed` they are started together, by mpiexec. The function and its arguments go through
a file; what fails comes back through files.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import spawn as _spawn
from multiprocessing.reduction import ForkingPickler
from typing import Any

from clew.multiprocessing._context import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
)

_OTHERS = 1.0  # seconds for the other ranks to end by themselves after one has failed


def start(
    fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, daemon: bool
) -> RankContext | None:
    """Starts ranks; None where that cannot be: there is no MPI, this is a rank itself, or what the
    function gets can only be inherited (a queue, a lock).

    Args:
        fn: the function.
        args: its arguments after the number.
        nprocs: how many.
        daemon: end them with this process, instead of waiting for them.
    """
    if nprocs < 2 or importlib.util.find_spec("mpi4py") is None or "PMI_RANK" in os.environ:
        return None
    from clew.distributed.run import find_mpiexec

    try:
        # Once for each: what a shared tensor's memory is reached by serves one receiver.
        packed = [bytes(ForkingPickler.dumps((fn, args))) for _ in range(nprocs)]
        command = [find_mpiexec(), "-n", str(nprocs), "-disable-auto-cleanup"]
    except (RuntimeError, TypeError, pickle.PicklingError, AttributeError, SystemExit):
        return None
    folder = tempfile.mkdtemp(prefix="clew-spawn-")
    data = _spawn.get_preparation_data("rank")
    if "authkey" in data:  # which pickles by itself only for a child; the folder is the user's own
        data["authkey"] = bytes(data["authkey"])
    for rank, each in enumerate(packed):
        with open(os.path.join(folder, f"work-{rank}"), "wb") as file:
            pickle.dump((data, each), file)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI_LOCAL", "OMPI_"))}
    command += [sys.executable, "-m", "clew.multiprocessing._ranks", folder]
    context = RankContext(subprocess.Popen(command, env=env), folder, nprocs)
    atexit.register(context._at_exit, daemon)
    return context


class RankContext(ProcessContext):
    """Ranks that were started together.

    Args:
        process: mpiexec.
        folder: through which they speak.
        count: how many there are.
    """

    def __init__(self, process: Any, folder: str, count: int) -> None:
        super().__init__([], [])
        self._process, self._folder, self._count = process, folder, count

    def _told(self, what: str, rank: int) -> str | None:
        with contextlib.suppress(OSError), open(f"{self._folder}/{what}-{rank}") as file:
            return file.read()
        return None

    def pids(self) -> list[int]:
        """The numbers of the processes that have begun."""
        return [int(t) for i in range(self._count) if (t := self._told("pid", i))]

    def _failed(self) -> Exception | None:
        for i in range(self._count):
            pid = int(self._told("pid", i) or 0)
            error = self._told("error", i)
            if error is not None:
                text = f"\n\n-- Process {i} terminated with the following error:\n{error}"
                return ProcessRaisedException(text, i, pid)
            status = self._told("exit", i)
            if status is not None:
                text = f"process {i} terminated with exit code {status}"
                return ProcessExitedException(text, i, pid, int(status))
        silent = []
        for i in range(self._count):
            pid = int(self._told("pid", i) or 0)
            if pid and self._told("end", i) is None and not _lives(pid):
                if any(self._told(what, i) is not None for what in ("end", "error", "exit")):
                    return self._failed()
                silent.append((i, pid))
        if silent:
            # One that is killed may take others with it before anybody looks.
            others = "".join(f"; process {i}, too" for i, _ in silent[1:])
            text = f"process {silent[0][0]} was killed, or ended without a word{others}"
            return ProcessExitedException(text, *silent[0], 1)
        code = self._process.poll()
        if code:
            return ProcessExitedException(f"mpiexec ended with status {code}", 0, 0, code)
        return None

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one process fails or all end.

        Args:
            timeout: most seconds to wait.
            grace_period: seconds that the others get after one has failed.

        Returns:
            Whether all have ended.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            over = self._process.poll() is not None
            failed = self._failed()
            if failed is not None:
                self._stop(grace_period or _OTHERS)
                raise failed
            if over:
                self._over()
                return True
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(0.02)

    def _at_exit(self, daemon: bool) -> None:
        if self._process.poll() is None:
            if daemon:
                self._process.kill()  # first, or it would report the ranks' end
                self._stop(0)
            else:
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _over(self) -> None:
        atexit.unregister(self._at_exit)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self, grace: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._process.terminate()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._over()


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def main(folder: str) -> None:
    """Runs the function as one rank.

    Args:
        folder: where the work is.
    """
    from clew.distributed import _mpi

    _mpi.fill_environment()
    rank = int(os.environ["RANK"])

    def tell(what: str, text: str) -> None:
        with contextlib.suppress(OSError):
            path = f"{folder}/{what}-{rank}"
            with open(path + ".part", "w") as file:
                file.write(text)
            os.replace(path + ".part", path)

    tell("pid", str(os.getpid()))
    try:
        with open(os.path.join(folder, f"work-{rank}"), "rb") as file:
            data, packed = pickle.load(file)
        _spawn.prepare(data)
        fn, args = ForkingPickler.loads(packed)
        fn(rank, *args)
    except BaseException as error:
        quiet = isinstance(error, KeyboardInterrupt) or (
            isinstance(error, SystemExit) and not error.code
        )
        if not quiet:
            status = 1
            if isinstance(error, SystemExit):
                if not isinstance(error.code, int):
                    print(error.code, file=sys.stderr)
                else:
                    status = error.code & 255
                tell("exit", str(status))
            else:
                tell("error", traceback.format_exc())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)  # MPI's own end would wait for ranks that wait for this one
    tell("end", "")


if __name__ == "__main__":
    main(sys.argv[1])
