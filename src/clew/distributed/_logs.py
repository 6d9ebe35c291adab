"""Where the output of ranks goes: files for each rank, and lines of them shown as they come.

`clew launch --redirects` has each rank write to files of its own, `--tee` shows their lines, too.
A rank opens its files itself, so that nothing lies between it and them that could lose its last
words; the launcher reads what is new.
"""

from __future__ import annotations

import json
import os
import string
import sys
import tempfile
from typing import Any

__all__ = ["Logs", "take"]

_VARIABLE = "CLEW_RANK_LOGS"
_STREAMS = ("stdout", "stderr")  # bits 1 and 2 of what options say
_PREFIX = "[${role_name}${local_rank}]:"


def _streams(option: str, text: str, each: int) -> list[int]:
    """Which streams an option names, as bits, for each rank of a machine.

    Args:
        option: its name, for messages.
        text: a number for all, or pairs of a rank of the machine and a number, with commas.
        each: how many ranks a machine has.
    """
    made = [0] * each
    for word in text.split(","):
        rank, colon, bits = word.rpartition(":")
        if bits not in ("0", "1", "2", "3") or (bool(colon) != rank.isdigit()):
            raise SystemExit(
                f"clew launch: --{option} takes 0 (nothing), 1 (stdout), 2 (stderr) or 3 (both), "
                f"or pairs as 0:3,1:1 for ranks of a machine; got {text!r}"
            )
        if colon and int(rank) >= each:
            raise SystemExit(
                f"clew launch: --{option}: a machine has ranks 0 to {each - 1}; got {rank}"
            )
        for r in [int(rank)] if colon else range(each):
            made[r] = int(bits)
    return made


class Logs:
    """What becomes of the output of a launch's ranks.

    Args:
        parsed: the options.
        each: how many ranks a machine has.
        here: whether all ranks are on this machine.
    """

    def __init__(self, parsed: Any, each: int, here: bool) -> None:
        self.role = parsed.role
        self.prefix = os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", _PREFIX)
        redirected = _streams("redirects", parsed.redirects, each)
        teed = _streams("tee", parsed.tee, each)
        self.written = [a | b for a, b in zip(redirected, teed)]
        shown = _shown(parsed.local_ranks_filter, each)
        self.shown = [bits if r in shown else 0 for r, bits in enumerate(teed)]
        self.silent = [r not in shown for r in range(each)]
        if any(self.shown) and not here:
            raise SystemExit("clew launch: --tee needs all ranks on this machine; use --redirects")
        self.base = ""
        if parsed.log_dir or any(self.written):
            folder = parsed.log_dir or tempfile.mkdtemp(prefix="clew-logs-")
            os.makedirs(folder, exist_ok=True)
            name = (parsed.rdzv_id or "none") + "_"
            self.base = os.path.abspath(tempfile.mkdtemp(prefix=name, dir=folder))
            if not parsed.log_dir:
                print(f"clew launch: the ranks' files are in {self.base}", file=sys.stderr)
        self.folder = ""
        self.read: dict[tuple[int, int], tuple[int, bytes]] = {}  # (how far, an unended line)

    def begin(self, attempt: int, env: dict[str, str]) -> None:
        """Tells the ranks of one attempt where to write.

        Args:
            attempt: its number.
            env: their environment; is changed.
        """
        env.pop(_VARIABLE, None)
        if not (self.base or any(self.silent)):
            return
        self.folder = os.path.join(self.base, f"attempt_{attempt}") if self.base else ""
        told = {"folder": self.folder, "written": self.written, "silent": self.silent}
        env[_VARIABLE] = json.dumps(told)
        self.read = {
            (r, s): (0, b"") for r, bits in enumerate(self.shown) for s in (0, 1) if bits >> s & 1
        }

    def show(self, last: bool = False) -> None:
        """Prints the lines that have come since.

        Args:
            last: that no more come: what has no end of line is shown, too.
        """
        for (rank, s), (at, rest) in self.read.items():
            try:
                with open(os.path.join(self.folder, str(rank), f"{_STREAMS[s]}.log"), "rb") as file:
                    file.seek(at)
                    new = file.read()
            except OSError:
                new = b""  # it has not begun
            *lines, rest = (rest + new).split(b"\n")
            if last and rest:
                lines, rest = [*lines, rest], b""
            self.read[rank, s] = at + len(new), rest
            if lines:
                names = {"role_name": self.role, "local_rank": str(rank), "rank": str(rank)}
                prefix = string.Template(self.prefix).safe_substitute(names)
                text = "".join(f"{prefix}{line.decode(errors='replace')}\n" for line in lines)
                getattr(sys, _STREAMS[s]).write(text)
                getattr(sys, _STREAMS[s]).flush()


def _shown(text: str, each: int) -> set[int]:
    if not text:
        return set(range(each))
    words = text.split(",")
    if not all(word.strip().isdigit() for word in words):
        raise SystemExit(
            f"clew launch: --local-ranks-filter takes ranks of a machine, with commas; got {text!r}"
        )
    return {int(word) for word in words}


def take() -> None:
    """Has this rank's output go where the launcher says, that of programs it starts, too."""
    text = os.environ.pop(_VARIABLE, "")
    if not text:
        return
    told = json.loads(text)
    rank = int(os.environ["LOCAL_RANK"])
    for s, name in enumerate(_STREAMS):
        if told["written"][rank] >> s & 1:
            folder = os.path.join(told["folder"], str(rank))
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, f"{name}.log")
        elif told["silent"][rank]:
            path = os.devnull
        else:
            continue
        getattr(sys, name).flush()
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(target, s + 1)
        os.close(target)
