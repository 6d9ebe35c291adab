"""Noticing ranks that wait for each other in different groups.

What the ranks of one group call is compared within the group. Where one rank calls an operation of
a first group, and another rank one of a second, neither comparison can end. So under `clew launch`
a rank that waits for one for seconds leaves word of it beside the locks, and looks at the others'.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
from typing import Any

_STEADY = 3.0  # seconds in which nothing has changed: what is compared is 512 bytes a rank
_numbers = itertools.count()


class Waiting:
    """A rank's wait for a comparison; a context.

    Args:
        group: of the operation.
        call: the operation, with what must agree.
        place: its line.
    """

    def __init__(self, group: Any, call: str, place: str) -> None:
        self._folder = os.environ.get("CLEW_LAUNCH_FOLDER", "")
        self._rank: int = group.global_rank
        self._mine = {
            "wait": f"{os.getpid()}-{next(_numbers)}",
            "group": group.group_name,
            "ranks": list(group.ranks),
            "call": f"rank {self._rank} calls {call} of group {group.group_name!r} at {place}",
            "looks": 0,
            "told": "",
        }
        self._since: tuple[float, dict[int, Any]] | None = None
        self._wrote = False

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._wrote and not self._mine["told"]:  # the others are to read what is told
            with contextlib.suppress(OSError):
                os.unlink(self._path(self._rank))

    def _path(self, rank: int) -> str:
        return os.path.join(self._folder, f"rank-{rank}.waits")

    def _write(self) -> None:
        path, self._wrote = self._path(self._rank), True
        with open(path + ".new", "w") as file:
            json.dump(self._mine, file)
        os.replace(path + ".new", path)

    def _read(self, rank: int) -> Any:
        try:
            with open(self._path(rank)) as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def look(self) -> None:
        """Looks at what the others wait for; called about once a second.

        Raises:
            RuntimeError: every rank that this one waits for waits, too, not all in one group.
        """
        # Another thread of this rank may still make the call that a rank waits for.
        if not self._folder or threading.active_count() > 1:
            return
        self._mine["looks"] += 1
        try:
            self._write()
        except OSError:
            return
        found = {self._rank: self._mine}
        to_read = set(self._mine["ranks"]) - {self._rank}
        while to_read:
            rank = to_read.pop()
            one = self._read(rank)
            if one is None:
                self._since = None
                return
            if self._mine["wait"] in one["told"].partition("\0")[2].split():
                self._tell(one["told"])
            found[rank] = one
            to_read |= set(one["ranks"]) - found.keys()
        if len({one["group"] for one in found.values()}) == 1:
            self._since = None
            return
        before = self._since[1] if self._since is not None else {}
        if {r: one["wait"] for r, one in found.items()} != {
            r: one["wait"] for r, one in before.items()
        }:
            self._since = time.perf_counter(), {r: dict(one) for r, one in found.items()}
            return
        assert self._since is not None
        # A rank that was stopped does not look.
        if time.perf_counter() - self._since[0] >= _STEADY and all(
            one["looks"] > before[r]["looks"] for r, one in found.items()
        ):
            calls = "; ".join(found[r]["call"] for r in sorted(found))
            self._tell(f"{calls}\0{' '.join(one['wait'] for one in found.values())}")

    def _tell(self, text: str) -> None:
        self._mine["told"] = text
        with contextlib.suppress(OSError):
            self._write()
        raise RuntimeError(
            f"distributed: ranks wait for each other in different groups: "
            f"{text.partition(chr(0))[0]}; all ranks must call the operations of groups that "
            "share ranks in the same order"
        )
