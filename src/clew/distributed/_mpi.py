"""What carries data between processes: MPI where there are several, copies where there is one.

`OneComm` and `MpiComm` have the same methods. Each begins an operation on NumPy arrays and gives a
request with `Test()`, or None where it is done already. Nothing blocks within MPI: `Work` asks
`Test()` again and again, so that signals are handled, time limits hold and no processor is kept
from another rank.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np

INSTALL = "pip install mpi4py mpich"

# What launchers tell their ranks: (rank, size, local rank, local size).
_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)  # fmt: skip


def _number(name: str) -> int | None:
    text = os.environ.get(name, "").split("(")[0]
    return int(text) if text.isdigit() else None


def started() -> tuple[int, int, int, int] | None:
    """(rank, size, local rank, local size) as an MPI launcher tells them; None without one."""
    for names in _VARIABLES:
        rank, size, local, local_size = map(_number, names)
        if rank is not None and size is not None:
            return rank, size, rank if local is None else local, local_size or size
    return None


def fill_environment() -> None:
    """Sets the variables that torchrun sets, where an MPI launcher started this process."""
    found = started()
    if found is None:
        return
    rank, size, local, local_size = found
    nodes = max(1, size // local_size)
    values = {
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": local_size,
        "GROUP_RANK": rank // local_size,
        "GROUP_WORLD_SIZE": nodes,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
    }
    for name, value in values.items():
        os.environ.setdefault(name, str(value))


def load() -> Any:
    """mpi4py's MPI; raises with the command that installs it."""
    try:
        from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"clew.distributed: several processes need MPI, which could not be loaded ({error}); "
            f"install it with: {INSTALL}"
        ) from error
    return MPI


def world() -> Any:
    """The communicator of all processes."""
    found = started()
    if found is None or found[1] == 1:
        return OneComm()
    return MpiComm(load().COMM_WORLD)


class OneComm:
    """The communicator of this process alone: what it gives is what it gets."""

    rank, size = 0, 1

    def allreduce(self, array: Any, op: str) -> None:
        """Nothing to combine."""

    def reduce(self, array: Any, op: str, root: int) -> None:
        """Nothing to combine."""

    def bcast(self, array: Any, root: int) -> None:
        """Nobody to send to."""

    def barrier(self) -> None:
        """Nobody to wait for."""

    def allgather(self, source: Any, target: Any) -> None:
        """Copies."""
        np.copyto(target.reshape(source.shape), source)

    def gather(self, source: Any, target: Any, root: int) -> None:
        """Copies."""
        self.allgather(source, target)

    def scatter(self, source: Any, target: Any, root: int) -> None:
        """Copies."""
        np.copyto(target.reshape(-1), source.reshape(-1))

    def reduce_scatter(self, source: Any, target: Any, op: str) -> None:
        """Copies."""
        self.scatter(source, target, 0)

    def alltoall(self, source: Any, counts: Any, target: Any, target_counts: Any) -> None:
        """Copies."""
        self.scatter(source, target, 0)

    def isend(self, array: Any, peer: int, tag: int) -> Any:
        """Raises: there is nobody."""
        raise ValueError("distributed.send: there is no other process to send to or receive from")

    irecv = irecv_all = isend

    def subset(self, ranks: list[int], tag: int) -> OneComm:
        """This one."""
        return self

    def abort(self, code: int) -> None:
        """Nobody else to end."""

    def free(self) -> None:
        """Nothing to give back."""


class Received:
    """A message that is to fill an array to its end.

    Args:
        mpi: mpi4py's MPI.
        request: asks whether it is there.
        size: how many bytes the array has.
    """

    def __init__(self, mpi: Any, request: Any, size: int) -> None:
        self._mpi, self._request, self._size = mpi, request, size
        self._status = mpi.Status()

    def Test(self) -> bool:
        """Whether it is there.

        Raises:
            RuntimeError: if it is longer or shorter than the array.
        """
        try:
            done = bool(self._request.Test(self._status))
        except self._mpi.Exception as error:
            if error.Get_error_class() != self._mpi.ERR_TRUNCATE:
                raise
            self._refuse("more")
        if done and self._status.Get_count(self._mpi.BYTE) != self._size:
            self._refuse(str(self._status.Get_count(self._mpi.BYTE)))
        return done

    def _refuse(self, came: str) -> NoReturn:
        raise RuntimeError(
            f"distributed.recv: a message must have the tensor's size and dtype, {self._size} "
            f"bytes; got {came} from rank {self.source()} of the group; sender and receiver must "
            "give tensors of one shape and dtype"
        ) from None

    def source(self) -> int:
        """The place in the group of who sent."""
        return int(self._status.Get_source())


class MpiComm:
    """An MPI communicator of several processes."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        mpi = load()
        self._here, self._mpi = mpi.IN_PLACE, mpi
        self._ops = {
            "sum": mpi.SUM, "product": mpi.PROD, "min": mpi.MIN, "max": mpi.MAX,
            "band": mpi.BAND, "bor": mpi.BOR, "bxor": mpi.BXOR,
        }  # fmt: skip

    def allreduce(self, array: Any, op: str) -> Any:
        """Combines in place."""
        return self.comm.Iallreduce(self._here, array, self._ops[op])

    def reduce(self, array: Any, op: str, root: int) -> Any:
        """Combines in place at root."""
        if self.rank == root:
            return self.comm.Ireduce(self._here, array, self._ops[op], root)
        return self.comm.Ireduce(array, None, self._ops[op], root)

    def bcast(self, array: Any, root: int) -> Any:
        """Fills the array with root's."""
        return self.comm.Ibcast(array, root)

    def barrier(self) -> Any:
        """Waits for all."""
        return self.comm.Ibarrier()

    def allgather(self, source: Any, target: Any) -> Any:
        """Fills target with all sources, by rank."""
        return self.comm.Iallgather(source, target)

    def gather(self, source: Any, target: Any, root: int) -> Any:
        """Fills root's target with all sources."""
        return self.comm.Igather(source, target, root)

    def scatter(self, source: Any, target: Any, root: int) -> Any:
        """Fills targets with parts of root's source."""
        return self.comm.Iscatter(source, target, root)

    def reduce_scatter(self, source: Any, target: Any, op: str) -> Any:
        """Combines the sources; each rank's target gets its part."""
        return self.comm.Ireduce_scatter_block(source, target, self._ops[op])

    def alltoall(self, source: Any, counts: Any, target: Any, target_counts: Any) -> Any:
        """Sends a part to each rank."""
        return self.comm.Ialltoallv([source, counts], [target, target_counts])

    def isend(self, array: Any, peer: int, tag: int) -> Any:
        """Begins to send a message, as bytes: MPI aborts where a part of an element comes."""
        return self.comm.Isend([array, self._mpi.BYTE], peer, tag)

    def irecv(self, array: Any, peer: int, tag: int) -> Any:
        """Begins to receive a message; peer -1: from anyone, which `Work` is told afterwards."""
        source = self._mpi.ANY_SOURCE if peer < 0 else peer
        return self.comm.Irecv([array, self._mpi.BYTE], source, tag)

    def irecv_all(self, array: Any, peer: int, tag: int) -> Received:
        """Begins to receive a message that must be as long as the array; peer -1: from anyone."""
        return Received(self._mpi, self.irecv(array, peer, tag), array.nbytes)

    def subset(self, ranks: list[int], tag: int) -> Any:
        """The communicator of some ranks, in this order; only they call it."""
        group = self.comm.Get_group().Incl(ranks)
        if len(ranks) == 1:
            return OneComm()
        return MpiComm(self.comm.Create_group(group, tag))

    def ordered(self, rank: int) -> MpiComm:
        """All processes, each with the rank that it asks for."""
        return MpiComm(self.comm.Split(0, rank))

    def duplicate(self) -> MpiComm:
        """The same processes, whose messages do not meet those of this communicator."""
        return MpiComm(self.comm.Dup())

    def abort(self, code: int) -> None:
        """Ends all processes."""
        self.comm.Abort(code)

    def free(self) -> None:
        """Gives the communicator back."""
        if self.comm != self._mpi.COMM_WORLD:
            self.comm.Free()
