"""A process group: its ranks, its backend's name, and the methods that begin its collectives."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar

# So many first collectives of a group are compared over the ranks; all with CLEW_CHECK=1.
CHECKED = 64


class Backend(str):
    """The name of what moves data between processes.

    Args:
        name: such as "gloo".

    Example:
        >>> import clew.distributed as dist
        >>> dist.Backend("GLOO")
        'gloo'
        >>> dist.Backend.MPI
        'mpi'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map: ClassVar[dict[str, str]] = {
        "cpu": GLOO,
        "cuda": NCCL,
        "xpu": XCCL,
        "mps": GLOO,
    }
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu"],
        NCCL: ["cuda"],
        MPI: ["cpu"],
    }

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend: the name must be a str; got {name!r}")
        return super().__new__(cls, name.lower())


class ReduceOp(IntEnum):
    """How collectives combine what the processes give."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"  # not the number, as PyTorch

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __format__(self, spec: str) -> str:
        return format(self.value if spec[-1:] in "bcdoxXneEfFgG%" and spec else str(self), spec)


reduce_op = ReduceOp
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


# The collectives that a group's methods begin; clew.distributed._collectives fills it.
begin: dict[str, Callable[..., Any]] = {}


class ProcessGroup:
    """A group of processes that this one is a member of; `new_group` makes them.

    Args:
        comm: its communicator.
        ranks: the members' global ranks, in this group's order.
        name: the group's name.
        backend: the backend's name that the program asked for.
        timeout: how long an operation may take, a timedelta.
        desc: what the group is for.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> group: dist.ProcessGroup = dist.group.WORLD
        >>> group.rank(), group.size(), group.name()
        (0, 1, 'gloo')
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, comm: Any, ranks: list[int], name: str, backend: str, timeout: Any, desc: str = ""
    ) -> None:
        self._comm, self.ranks = comm, ranks
        self.group_name, self.group_desc = name, desc or name
        self._backend = Backend(backend)
        self.limit = timeout.total_seconds()
        self.global_rank = ranks[comm.rank]
        self.freed = False  # by destroy_process_group
        self.sharded = 0  # how many modules were sharded over it
        self._unchecked = 0 if comm.size > 1 else -1
        self._checker: Any = None
        self._meeting: Any = None  # a communicator for the barriers around shared memory
        self._slots: Any = None  # memory that its ranks share; False where they cannot

    def rank(self) -> int:
        """The place of this process in it."""
        return int(self._comm.rank)

    def size(self) -> int:
        """How many processes it has."""
        return int(self._comm.size)

    def name(self) -> str:
        """The backend's name."""
        return str(self._backend)

    def check(self, what: str, detail: str) -> list[str] | None:
        """Compares with the other ranks what they call, in a group's first operations.

        Args:
            what: the operation's name.
            detail: what must agree too: shapes, dtypes, roots.

        Returns:
            The ranks' lines; None where nothing is compared any more.
        """
        if self._unchecked < 0:
            return None
        from clew.distributed import _check

        places = _check.compare(self, what, detail)
        self._unchecked += 1
        if self._unchecked >= CHECKED and os.environ.get("CLEW_CHECK") != "1":
            self._unchecked = -1
        return places

    def allreduce(self, tensors: Any, opts: Any = ReduceOp.SUM) -> Any:
        """Starts `all_reduce` of a tensor.

        Args:
            tensors: a tensor, or a list of which the first is taken.
            opts: a `ReduceOp`, or an object that has one as `reduceOp`.

        Returns:
            A `Work`.
        """
        one = tensors[0] if isinstance(tensors, (list, tuple)) else tensors
        return begin["all_reduce"](one, getattr(opts, "reduceOp", opts), self, async_op=True)

    def broadcast(self, tensors: Any, root: Any = 0) -> Any:
        """Starts `broadcast` of a tensor.

        Args:
            tensors: a tensor, or a list of which the first is taken.
            root: the source's rank in the group, or an object that has it as `rootRank`.

        Returns:
            A `Work`.
        """
        one = tensors[0] if isinstance(tensors, (list, tuple)) else tensors
        root = getattr(root, "rootRank", root)
        return begin["broadcast"](one, group=self, group_src=root, async_op=True)

    def allgather(self, output_lists: Any, tensors: Any, opts: Any = None) -> Any:
        """Starts `all_gather` of a tensor.

        Args:
            output_lists: a list of which the first is taken: a tensor for each process.
            tensors: a list of which the first is taken.
            opts: not used.

        Returns:
            A `Work`.
        """
        return begin["all_gather"](output_lists[0], tensors[0], self, async_op=True)

    def reduce_scatter(self, tensors: Any, input_lists: Any, opts: Any = ReduceOp.SUM) -> Any:
        """Starts `reduce_scatter` of a list.

        Args:
            tensors: a list of which the first is taken, for the result.
            input_lists: a list of which the first is taken: a tensor for each process.
            opts: a `ReduceOp`, or an object that has one as `reduceOp`.

        Returns:
            A `Work`.
        """
        op = getattr(opts, "reduceOp", opts)
        return begin["reduce_scatter"](tensors[0], input_lists[0], op, self, async_op=True)

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        """Starts to send a tensor.

        Args:
            tensors: a list of which the first is taken.
            dst: the receiver's rank in the group.
            tag: a number that tells messages apart.

        Returns:
            A `Work`.
        """
        return begin["isend"](tensors[0], group=self, tag=tag, group_dst=dst)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        """Starts to receive a tensor.

        Args:
            tensors: a list of which the first is taken.
            src: the sender's rank in the group.
            tag: the number that the sender gave.

        Returns:
            A `Work`.
        """
        return begin["irecv"](tensors[0], group=self, tag=tag, group_src=src)

    def barrier(self, opts: Any = None) -> Any:
        """Starts `barrier`.

        Args:
            opts: not used.

        Returns:
            A `Work`.
        """
        return begin["barrier"](self, async_op=True)

    def __repr__(self) -> str:
        return f"<clew.distributed.ProcessGroup {self.group_name} of ranks {self.ranks}>"
