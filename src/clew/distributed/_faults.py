"""What a rank leaves behind when it ends, so that the others and the launcher know why.

Under `clew launch` each rank holds a lock on a file of its own for as long as it lives. It writes
why it ended beside it. The launcher tells the other ranks with a signal; they say who failed.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

_held: list[Any] = []
# Set for a command that runs in a rank's place, and so has no lock of its own.
COMMAND = "CLEW_COMMAND"
_stands_for: tuple[str, int] | None = None  # this rank's command, and its group of processes


def _folder() -> str | None:
    return os.environ.get("CLEW_LAUNCH_FOLDER")


def _path(kind: str) -> str:
    return os.path.join(_folder() or "", f"rank-{os.environ.get('RANK', '0')}.{kind}")


def _write(kind: str, text: str) -> None:
    path = _path(kind)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def place_of(tb: Any) -> str:
    """The line of a traceback that is the program's own, as "file:line"."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = traceback.extract_tb(tb)
    # Frames of compiled modules have no file.
    own = [
        f
        for f in frames
        if not f.filename.startswith((package, "<frozen")) and os.path.exists(f.filename)
    ]
    last = (own or frames)[-1] if frames else None
    return f"{last.filename}:{last.lineno}" if last else "an unknown line"


def failed(error: BaseException) -> None:
    """Notes the exception that ends this rank."""
    if _folder() and not os.path.exists(_path("failed")):
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        where = place_of(error.__traceback__)
        summary = f"{type(error).__name__}: {error}"
        _write("failed", json.dumps({"where": where, "what": summary, "traceback": text}))


def enter() -> None:
    """Takes part in the launcher's watch: the lock, the signal."""
    if not _folder():
        return
    file = open(_path("alive"), "w")
    # Locked before it has a number: one without the lock counts as dead.
    fcntl.lockf(file, fcntl.LOCK_EX)
    file.write(str(os.getpid()))
    file.flush()
    _held.append(file)
    signal.signal(signal.SIGTERM, _told)


def arrive(ranks: list[int]) -> Callable[[], bool]:
    """Notes that this rank begins with MPI, which waits within its start for all others.

    Args:
        ranks: all ranks.

    Returns:
        Whether all have come so far, as a function to ask; always true without `clew launch`.
    """
    from clew.distributed import _mpi

    folder, mine = _folder(), _mpi.started()
    if folder is None or mine is None:
        return lambda: True
    # By MPI's number: the program may have given itself another rank.
    open(os.path.join(folder, f"rank-{mine[0]}.arrived"), "w").close()
    rest = set(ranks)

    def all_here() -> bool:
        rest.difference_update(
            [r for r in rest if os.path.exists(os.path.join(folder, f"rank-{r}.arrived"))]
        )
        return not rest

    return all_here


def leave(text: str) -> None:
    """Notes that this rank has ended as it should."""
    if _folder():
        _write("ended", text)


def command_failed(name: str, what: str) -> None:
    """Notes how a rank's command failed, unless it did so itself.

    Args:
        name: the command.
        what: what happened.
    """
    if _folder() and not os.path.exists(_path("failed")):
        _write("failed", json.dumps({"where": name, "what": what, "traceback": ""}))


def stand_for(name: str | None, group: int) -> None:
    """Says that a command runs in this rank's place; it ends where the rank is ended.

    Args:
        name: the command; None where it has ended.
        group: its processes.
    """
    global _stands_for
    _stands_for = (name, group) if name is not None else None
    if not _folder():
        return
    if name is not None:
        _write("group", str(group))
    else:
        os.unlink(_path("group"))


def end_groups(folder: str) -> None:
    """Ends commands whose ranks cannot do so any more.

    Args:
        folder: the launch's.
    """
    for name in os.listdir(folder):
        if name.endswith(".group"):
            with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, name)) as file:
                os.killpg(int(file.read()), signal.SIGKILL)


def _told(number: int, frame: Any) -> None:
    """Another rank has failed: says which, and ends."""
    rank = os.environ.get("RANK", "?")
    with contextlib.suppress(OSError, ValueError):
        with open(os.path.join(_folder() or "", "reason")) as file:
            reason = file.read()
        at = traceback.extract_stack(frame)
        here = "no line of its program"  # before its beginning, or after its end
        from clew.distributed._work import _PACKAGE

        for entry in reversed(at):
            if not entry.filename.startswith((_PACKAGE, "<frozen")):
                here = f"{entry.filename}:{entry.lineno}"
                break
        here = _stands_for[0] if _stands_for is not None else here
        print(f"clew: rank {rank} ends at {here}, because {reason}", file=sys.stderr, flush=True)
    if _stands_for is not None:
        with contextlib.suppress(OSError):
            os.killpg(_stands_for[1], signal.SIGKILL)
    sys.stdout.flush()
    os._exit(1)


def watch(comm: Any) -> None:
    """Without `clew launch`: an uncaught exception ends all ranks through MPI.

    In a command of `clew launch --no-python` it is noted for the launcher, which ends them.
    """
    in_command = _folder() is not None and COMMAND in os.environ
    if _held or (_folder() and not in_command):
        return
    _held.append(comm)
    before = sys.excepthook

    def hook(kind: Any, error: Any, tb: Any) -> None:
        before(kind, error, tb)
        if in_command:
            failed(error)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        rank = os.environ.get("RANK", comm.rank)
        print(
            f"clew: rank {rank} failed at {place_of(tb)}, {kind.__name__}: {error}; it ends the "
            "other ranks",
            file=sys.stderr,
            flush=True,
        )
        sys.stdout.flush()
        comm.abort(1)

    sys.excepthook = hook
    atexit.register(sys.stdout.flush)
