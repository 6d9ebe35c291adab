"""Memory that the ranks of one machine share: each fills a slot of its own, and reads all.

MPI carries a sum of two ranks' tensors through its own buffers piece by piece. Where all ranks of a
group see the same memory, each writes its tensor once, all meet at an MPI barrier, and each reads
what it needs.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

import clew
from clew._C import Tensor
from clew.distributed._check import duplicate
from clew.distributed._mpi import MpiComm
from clew.distributed._work import wait_for

# Every rank reads all slots, so that with many of them MPI's way, where each sums a part, is less.
MOST_RANKS = 4


class Slots:
    """One slot for each rank of a group; `make` has them.

    Args:
        group: the group.
        comm: a communicator of its ranks for these slots' barriers alone.
        memory: what they share.
        nbytes: of a slot.
    """

    def __init__(self, group: Any, comm: MpiComm, memory: Any, nbytes: int) -> None:
        self.group, self.comm = group, comm
        whole = clew.from_numpy(np.frombuffer(memory, np.uint8))
        self.all: list[Tensor] = [whole[r * nbytes : (r + 1) * nbytes] for r in range(comm.size)]
        self.mine = self.all[comm.rank]
        self._read: Any = None

    def written(self) -> Any:
        """Begins to wait until all ranks have written; a request."""
        return self.comm.barrier()

    def read(self) -> None:
        """This rank has read; the others may go on with theirs."""
        self._read = self.comm.barrier()

    def free(self) -> None:
        """Waits until this rank's slot may be written again."""
        if self._read is not None:
            wait_for(self._read.Test, self.group, "all_reduce", self.group.limit or None)
            self._read = None


def shared(group: Any, nbytes: int) -> Slots | None:
    """A group's slots, of at least so many bytes: what one reduction after another uses.

    All ranks ask for the same sizes in the same order.

    Args:
        group: the group.
        nbytes: of a slot.
    """
    found = group._slots
    if found is None or (found and found.mine.numel() < nbytes):
        if found:
            found.free()
        group._slots = make(group, nbytes) or False
    return group._slots or None


def make(group: Any, nbytes: int) -> Slots | None:
    """Slots for a group, on all its ranks or on none: a collective.

    Args:
        group: the group.
        nbytes: of a slot, the same on all ranks; rounded up to pages.

    Returns:
        None where the ranks are too many, or do not see the same memory.
    """
    comm = group._comm
    if not isinstance(comm, MpiComm) or comm.size > MOST_RANKS or not hasattr(os, "memfd_create"):
        return None
    if group._meeting is None:
        group._meeting = duplicate(group, "all_reduce")
    own = group._meeting
    nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    fd, memory = -1, None
    told = np.array([-1, -1, _machine()], np.int64)
    if comm.rank == 0:
        try:
            fd = os.memfd_create("clew-slots", os.MFD_CLOEXEC)
            # Now rather than at the first touch, where a lack of memory would end the process.
            os.posix_fallocate(fd, 0, nbytes * comm.size)
            memory = mmap.mmap(fd, nbytes * comm.size)
            told[:2] = os.getpid(), fd
        except OSError:
            memory = None
    _wait(group, own.bcast(told, 0))
    # Elsewhere the number is another process's, whose files are not to be opened.
    if comm.rank > 0 and told[0] >= 0 and told[2] == _machine():
        try:
            fd = os.open(f"/proc/{told[0]}/fd/{told[1]}", os.O_RDWR | os.O_CLOEXEC)
            memory = mmap.mmap(fd, nbytes * comm.size)
        except (OSError, ValueError):
            memory = None
    # That this is rank 0's memory: in a container of its own the number is another's, too.
    sign = np.frombuffer(os.urandom(8), np.int64).copy()
    if comm.rank == 0 and memory is not None:
        memory[:8] = sign.tobytes()
    _wait(group, own.bcast(sign, 0))
    there = np.array([memory is not None and memory[:8] == sign.tobytes()], np.int64)
    _wait(group, own.allreduce(there, "min"))
    if fd >= 0:
        os.close(fd)
    if not there[0]:
        return None
    return Slots(group, own, memory, nbytes)


def _machine() -> int:
    """A number for this machine since it was started; -1 where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return int(file.read().replace("-", "")[:15], 16)
    except OSError:
        return -1


def _wait(group: Any, request: Any) -> None:
    wait_for(request.Test, group, "all_reduce", group.limit or None)
