"""One rank of `clew launch`: runs the program and leaves word of how it ended."""

from __future__ import annotations

import os
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


def main(args: list[str]) -> None:
    """Runs a program as a rank.

    Args:
        args: a script and its arguments, or -m, a module and its arguments.
    """
    from clew.distributed import _faults, _mpi

    _mpi.fill_environment()
    _faults.enter()
    if os.environ.pop("CLEW_TELL_LOCAL_RANK", ""):
        after = 2 if args[0] == "-m" else 1
        args = [*args[:after], f"--local-rank={os.environ['LOCAL_RANK']}", *args[after:]]
    code = _run(args)
    sys.stdout.flush()
    sys.stderr.flush()
    if code:
        _faults.failed(SystemExit(code))
        # MPI's own end would wait for ranks that wait for this one.
        os._exit(code)
    _faults.leave("it came to the end of its program")


if __name__ == "__main__":
    main(sys.argv[1:])
