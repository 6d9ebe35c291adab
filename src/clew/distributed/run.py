"""`clew launch`: starts a program's ranks with mpiexec and watches over them."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from clew.distributed import _faults, _logs
from clew.distributed._mpi import INSTALL

_GRACE = 3.0  # seconds in which ranks may say that they end


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of `clew launch`: torchrun's options and clew's own.

    Example:
        >>> from clew.distributed.run import get_args_parser
        >>> parsed = get_args_parser().parse_args(["-n", "2", "train.py", "--lr", "0.1"])
        >>> parsed.nproc_per_node, parsed.script, parsed.arguments
        ('2', 'train.py', ['--lr', '0.1'])
    """
    p = argparse.ArgumentParser(
        prog="clew launch", description="start the ranks of a program through MPI"
    )

    def add(*names: str, **kwargs: Any) -> None:
        both = [n for name in names for n in dict.fromkeys((name, "--" + name[2:].replace("-", "_")
                if name.startswith("--") else name))]  # fmt: skip
        p.add_argument(*both, **kwargs)

    add("-n", "--nproc-per-node", default="1", help="ranks on each machine, or auto")
    add("--nnodes", default="1", help="machines, or fewest:most; needs --hosts if more than 1")
    add("--hosts", default="", help="the machines' names, with commas")
    add("--master-addr", default="127.0.0.1", help="told to the program")
    add("--master-port", default="0", help="told to the program; 0 for a free one")
    add("--restarts", "--max-restarts", dest="restarts", type=int, default=0,
        help="start again so often after a failure")  # fmt: skip
    add("--check", action="store_true", help="compare all collectives over the ranks")
    add("--standalone", action="store_true", help="as without: one machine")
    for name in ("backend", "endpoint", "id", "conf"):
        add(f"--rdzv-{name}", default="", help="not needed: MPI's ranks know each other")
    add("--node-rank", default="0", help="not needed: mpiexec is started on one machine")
    add("--role", default="default", help="told to the program as ROLE_NAME")
    for name, why in (
        ("monitor-interval", "ranks say at once how they end"),
        ("start-method", "mpiexec starts ranks"),
        ("local-addr", "mpiexec knows the machines"),
    ):
        add(f"--{name}", default="", help=f"not needed: {why}")
    add("-m", "--module", action="store_true", help="the program is a module's name")
    add("--no-python", action="store_true", help="the program is a command, not a script")
    add("--run-path", action="store_true", help="as without: scripts run within the rank")
    add("--log-dir", default="", help="where ranks write; a new folder for each launch within it")
    add(
        "-r",
        "--redirects",
        default="0",
        help="ranks write to files: 1 stdout, 2 stderr, 3 both; or 0:3,1:1 by local rank",
    )
    add("-t", "--tee", default="0", help="ranks write to files and their lines are shown, too")
    add("--local-ranks-filter", default="", help="show only the output of these, with commas")
    add(
        "--mpiexec", default="", help="the launcher; beside this Python or on the PATH if not given"
    )
    p.add_argument("script")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p


def find_mpiexec() -> str:
    """The path of `mpiexec`: the one beside this Python, or the first on the PATH.

    Raises:
        SystemExit: if there is none; its text says how to install MPI.

    Example:
        >>> import os
        >>> from clew.distributed.run import find_mpiexec
        >>> try:
        ...     name = os.path.basename(find_mpiexec())
        ... except SystemExit:  # MPI is not installed
        ...     name = "mpiexec"
        >>> name
        'mpiexec'
    """
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise SystemExit(f"clew launch: there is no mpiexec; install MPI with: {INSTALL}")
    return found


def _ranks(text: str) -> int:
    if text in ("auto", "cpu"):
        return len(os.sched_getaffinity(0))
    if not text.isdigit() or int(text) < 1:
        raise SystemExit(f"clew launch: --nproc-per-node must be a number or auto; got {text!r}")
    return int(text)


def main(args: Sequence[str] | None = None) -> int:
    """Starts the ranks of a program and waits for them.

    Args:
        args: the words after `clew launch`; those of this process if None.

    Returns:
        The exit status: 0, 1 where a rank failed, or 130 after Ctrl+C.

    Example:
        >>> from clew.distributed.run import main
        >>> main(["--nproc-per-node", "many", "train.py"])
        Traceback (most recent call last):
        SystemExit: clew launch: --nproc-per-node must be a number or auto; got 'many'
    """
    return run(get_args_parser().parse_args(args))


def run(parsed: argparse.Namespace) -> int:
    """Starts ranks as parsed options say, and waits for them.

    Args:
        parsed: what `get_args_parser()` parsed.

    Returns:
        The exit status: 0, 1 where a rank failed, or 130 after Ctrl+C.

    Raises:
        SystemExit: if the options do not fit together, or MPI is missing.

    Example:
        >>> from clew.distributed.run import get_args_parser, run
        >>> run(get_args_parser().parse_args(["--nnodes", "2", "train.py"]))
        Traceback (most recent call last):
        SystemExit: clew launch: --nnodes 2 needs as many --hosts; got []
    """
    hosts = [h for h in parsed.hosts.split(",") if h]
    nodes = _nodes(str(parsed.nnodes), hosts)
    conf = dict(pair.strip().partition("=")[::2] for pair in parsed.rdzv_conf.split(","))
    if parsed.node_rank != "0" or conf.get("rank", "0") != "0":
        raise SystemExit("clew launch: start it on one machine, with --hosts for the others")
    each = _ranks(parsed.nproc_per_node)
    count = each * max(nodes, len(hosts))
    if count > 1 and importlib.util.find_spec("mpi4py") is None:
        raise SystemExit(f"clew launch: {count} ranks need MPI; install it with: {INSTALL}")
    if parsed.module and parsed.no_python:
        raise SystemExit("clew launch: a program is a module (-m) or a command (--no-python)")
    here = set(hosts) <= {"localhost", "127.0.0.1", socket.gethostname()}
    logs = _logs.Logs(parsed, each, here)
    for attempt in range(parsed.restarts + 1):
        code = _once(parsed, hosts, each, count, attempt, logs, here)
        if code in (0, 130):
            return code
        if attempt < parsed.restarts:
            print(f"clew launch: restart {attempt + 1} of {parsed.restarts}", file=sys.stderr)
    return code


def _nodes(given: str, hosts: list[str]) -> int:
    """How many machines: of a range, as many as there are hosts, or the fewest."""
    low, colon, high = given.partition(":")
    if not low.isdigit() or (colon and not high.isdigit()):
        raise SystemExit(f"clew launch: --nnodes must be a number or fewest:most; got {given!r}")
    fewest, most = int(low), int(high if colon else low)
    nodes = len(hosts) if hosts and most > 1 else fewest
    if not fewest <= nodes <= most or nodes < 1 or (nodes > 1 and not hosts):
        raise SystemExit(f"clew launch: --nnodes {given} needs as many --hosts; got {hosts}")
    return nodes


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _once(
    parsed: Any, hosts: list[str], each: int, count: int, attempt: int, logs: _logs.Logs, here: bool
) -> int:
    env = dict(os.environ)
    for name in [n for n in env if n.startswith(("PMI_", "PMIX_", "MPI_LOCAL", "OMPI_"))] + [
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
    ]:  # fmt: skip
        env.pop(name, None)
    if count > 1:
        env.setdefault("OMP_NUM_THREADS", "1")
    env["MASTER_ADDR"] = hosts[0] if hosts else parsed.master_addr
    env["MASTER_PORT"] = parsed.master_port if parsed.master_port != "0" else str(_free_port())
    env["ROLE_NAME"] = parsed.role
    if getattr(parsed, "tell_local_rank", False):
        env["CLEW_TELL_LOCAL_RANK"] = "1"
    env["TORCHELASTIC_RUN_ID"] = parsed.rdzv_id or "none"
    env["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
    env["TORCHELASTIC_MAX_RESTARTS"] = str(parsed.restarts)
    if parsed.check:
        env["CLEW_CHECK"] = "1"
    logs.begin(attempt, env)
    command = [parsed.mpiexec or find_mpiexec(), "-n", str(count)]
    if hosts:
        command += ["-hosts", ",".join(hosts), "-ppn", str(each)]
    folder = tempfile.mkdtemp(prefix="clew-launch-")
    if here:
        env["CLEW_LAUNCH_FOLDER"] = folder
        # The ranks that live say who failed; then this process ends them.
        command.append("-disable-auto-cleanup")
    command += [sys.executable, "-m", "clew.distributed._rank"]
    kind = ["-m"] if parsed.module else ["--no-python"] if parsed.no_python else []
    command += [*kind, parsed.script, *parsed.arguments]
    process = subprocess.Popen(command, env=env, start_new_session=True)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _watch(process, folder, count, here, logs)
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(process, folder)
        logs.show(last=True)
        shutil.rmtree(folder, ignore_errors=True)


def _pid(path: str) -> int | None:
    """The rank's process, where it lives: it holds the lock."""
    try:
        with open(path, "r+") as file:
            text = file.read()
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(text) if text else None
    except OSError:
        return None
    return None


class _Ends:
    """The ranks whose processes have ended, in this order.

    Where one is killed, MPI's launcher may kill the others a few milliseconds later.
    """

    def __init__(self, folder: str, count: int) -> None:
        self.order: list[int] = []
        self._folder, self._coming = folder, set(range(count))
        self._poll, self._ranks = select.poll(), dict[int, int]()  # by file descriptor

    def wait(self, seconds: float) -> None:
        """Waits so long, or until a rank's process ends."""
        for rank in sorted(self._coming):
            if pid := _pid(os.path.join(self._folder, f"rank-{rank}.alive")):
                self._coming.discard(rank)
                with contextlib.suppress(OSError, AttributeError):  # ended, or not on Linux
                    fd = os.pidfd_open(pid)
                    self._ranks[fd] = rank
                    self._poll.register(fd, select.POLLIN)
        for fd, _ in self._poll.poll(seconds * 1000):
            self.order.append(self._ranks.pop(fd))
            self._poll.unregister(fd)
            os.close(fd)

    def close(self) -> None:
        """Looks no longer."""
        for fd in self._ranks:
            os.close(fd)


def _find_failed(folder: str, count: int, ends: list[int]) -> tuple[int, str, str] | None:
    """(rank, what happened, traceback) of the first rank that failed.

    Args:
        folder: the launch's.
        count: how many ranks there are.
        ends: ranks that have ended, in this order, as far as it is known.
    """
    for rank in range(count):
        path = os.path.join(folder, f"rank-{rank}.")
        if os.path.exists(path + "failed"):
            with open(path + "failed") as file:
                told = json.load(file)
            return rank, f"failed at {told['where']}: {told['what']}", told["traceback"]
    silent: list[int] = []
    for rank in range(count):
        path = os.path.join(folder, f"rank-{rank}.")
        with contextlib.suppress(OSError):
            if os.path.getsize(path + "alive") == 0 or os.path.exists(path + "ended"):
                continue
            if _pid(path + "alive") is None:
                if os.path.exists(path + "failed") or os.path.exists(path + "ended"):
                    return None  # it has only now said why
                silent.append(rank)
    if silent:
        silent.sort(key=lambda r: ends.index(r) if r in ends else count)
        others = "".join(f", rank {r} was killed or ended, too" for r in silent[1:])
        return silent[0], f"was killed, or ended by os._exit, without a word{others}", ""
    return None


def _watch(process: Any, folder: str, count: int, here: bool, logs: _logs.Logs) -> int:
    ends = _Ends(folder, count if here else 0)
    with contextlib.closing(ends):
        while process.poll() is None:
            ends.wait(0.05)
            logs.show()
            if here and (found := _find_failed(folder, count, ends.order)):
                return _tell(process, folder, count, found)
    found = _find_failed(folder, count, ends.order) if here else None
    if found:
        return _tell(process, folder, count, found)
    if process.returncode:
        print(f"clew launch: mpiexec ended with status {process.returncode}", file=sys.stderr)
    return 1 if process.returncode else 0


def _tell(process: Any, folder: str, count: int, found: tuple[int, str, str]) -> int:
    rank, what, trace = found
    with open(os.path.join(folder, "reason"), "w") as file:
        file.write(f"rank {rank} {what}" + (f"\n{trace}" if trace else ""))
    print(f"clew launch: rank {rank} {what}; the other ranks are ended", file=sys.stderr)
    if trace:
        print(trace, file=sys.stderr, end="", flush=True)
    _signal(folder, signal.SIGTERM)
    end = time.monotonic() + _GRACE
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    return 1


def _signal(folder: str, number: int) -> None:
    for name in os.listdir(folder):
        if name.endswith(".alive") and (pid := _pid(os.path.join(folder, name))):
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def _end(process: Any, folder: str) -> None:
    if process.poll() is not None:
        return
    _signal(folder, signal.SIGKILL)
    _faults.end_groups(folder)
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
