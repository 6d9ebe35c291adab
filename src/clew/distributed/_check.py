"""Comparing what the ranks of a group call, so that a mismatch raises instead of hanging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew.distributed._crossed import Waiting
from clew.distributed._mpi import MpiComm
from clew.distributed._work import caller, wait_for

_BYTES = 512


def duplicate(group: Any, what: str, notice: Callable[[], None] | None = None) -> MpiComm:
    """Another communicator of a group's ranks; waits until all have come, within its limit.

    Args:
        group: the group.
        what: the operation that needs it.
        notice: as of `wait_for`.
    """
    comm = group._comm
    assert isinstance(comm, MpiComm)
    # MPI makes it in a call that blocks: a rank that does not come would never be noticed there.
    wait_for(comm.barrier().Test, group, what, group.limit or None, notice)
    return comm.duplicate()


def compare(group: Any, what: str, detail: str) -> list[str]:
    """Raises on all ranks where they do not call the same.

    Args:
        group: the group; the comparison has a communicator of its own, so that it meets no other.
        what: the operation.
        detail: what must be equal.

    Returns:
        The ranks' lines.

    Raises:
        RuntimeError: naming the two lines.
    """
    place = caller()
    text = f"{what}{detail}\0{place[-200:]}".encode()[:_BYTES]
    mine = np.zeros(_BYTES, np.uint8)
    mine[: len(text)] = np.frombuffer(text, np.uint8)
    all_ = np.zeros((group.size(), _BYTES), np.uint8)
    with Waiting(group, f"{what}{detail}", place) as waiting:
        if group._checker is None:
            group._checker = duplicate(group, what, waiting.look)
        request = group._checker.allgather(mine, all_)
        wait_for(request.Test, group, what, group.limit or None, waiting.look)
    parts = [bytes(row).rstrip(b"\0").decode(errors="replace").partition("\0") for row in all_]
    for other, (call, _, where) in enumerate(parts):
        if call != parts[0][0]:
            zero, first = group.ranks[0], parts[0]
            raise RuntimeError(
                f"distributed: the ranks of group {group.group_name!r} call different things: "
                f"rank {zero} calls {first[0]} at {first[2]}, rank {group.ranks[other]} calls "
                f"{call} at {where}; all ranks must call the same operations in the same order, "
                "with tensors of equal shapes and dtypes"
            )
    return [where for _, _, where in parts]


def compare_parts(
    group: Any, what: str, sent: Sequence[int], wanted: Sequence[int], places: Sequence[str]
) -> None:
    """Raises on all ranks where one sends another more or fewer elements than that one expects.

    Args:
        group: the group.
        what: the operation.
        sent: how many elements go to each rank.
        wanted: how many are to come from each rank.
        places: the ranks' lines.

    Raises:
        RuntimeError: naming the two lines.
    """
    n = group.size()
    all_ = np.zeros((n, 2, n), np.int64)
    request = group._checker.allgather(np.array([sent, wanted], np.int64), all_)
    wait_for(request.Test, group, what, group.limit or None)
    different = np.argwhere(all_[:, 0] != all_[:, 1].T)
    for a, b in different:
        one, other = group.ranks[a], group.ranks[b]
        raise RuntimeError(
            f"distributed.{what}: in group {group.group_name!r} rank {one} sends rank {other} "
            f"{all_[a, 0, b]} elements at {places[a]}, but rank {other} expects {all_[b, 1, a]} at "
            f"{places[b]}; item j of rank i's input must have the size of item i of rank j's output"
        )
