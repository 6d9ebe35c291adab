"""One rank of `clew launch`: runs the program and leaves word of how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any


def _run(args: list[str]) -> int:
    from clew._cli.run import run_module, run_script
    from clew.distributed import _faults

    before = sys.excepthook

    def hook(kind: Any, error: Any, tb: Any) -> None:
        before(kind, error, tb)
        _faults.failed(error)

    sys.excepthook = hook
    try:
        code = run_module(args[1], args[2:]) if args[0] == "-m" else run_script(args[0], args[1:])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        if code:
            _faults.failed(error)
    return code


def _run_command(args: list[str]) -> int:
    """Runs a command in the rank's place. It inherits what MPI's launcher gave this process."""
    from clew.distributed import _faults

    try:
        # In a group of its own: it ends with all that it started.
        process = subprocess.Popen(
            args,
            env={**os.environ, _faults.COMMAND: args[0]},
            close_fds=False,
            start_new_session=True,
        )
    except OSError as error:
        _faults.command_failed(args[0], f"it could not be started: {error.strerror}")
        return 1
    # mpiexec sends it where another rank's command, which had begun with MPI, has ended first.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    _faults.stand_for(args[0], process.pid)
    code = process.wait()
    _faults.stand_for(None, 0)
    if code < 0:
        _faults.command_failed(args[0], f"it was ended by {signal.Signals(-code).name}")
    elif code:
        _faults.command_failed(args[0], f"it ended with status {code}")
    return code if code >= 0 else 128 - code


def main(args: list[str]) -> None:
    """Runs a program as a rank.

    Args:
        args: a script and its arguments; or -m, a module and its arguments; or --no-python, a
            command and its arguments.
    """
    from clew.distributed import _faults, _logs, _mpi

    _mpi.fill_environment()
    _logs.take()
    _faults.enter()
    if os.environ.pop("CLEW_TELL_LOCAL_RANK", ""):
        after = 2 if args[0] in ("-m", "--no-python") else 1
        args = [*args[:after], f"--local-rank={os.environ['LOCAL_RANK']}", *args[after:]]
    code = _run_command(args[1:]) if args[0] == "--no-python" else _run(args)
    sys.stdout.flush()
    sys.stderr.flush()
    if code:
        _faults.failed(SystemExit(code))
        # MPI's own end would wait for ranks that wait for this one.
        os._exit(code)
    _faults.leave("it came to the end of its program")


if __name__ == "__main__":
    main(sys.argv[1:])
