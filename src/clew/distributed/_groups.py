"""Process groups: of one process without MPI, of MPI's ranks otherwise."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from clew.distributed import _mpi
from clew.distributed._stores import FileStore, HashStore, Store, default_pg_timeout
from clew.distributed._work import wait_for

default_pg_nccl_timeout = datetime.timedelta(minutes=10)
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

    def check(self, what: str, detail: str) -> None:
        """Compares with the other ranks what they call, in a group's first operations.

        Args:
            what: the operation's name.
            detail: what must agree too: shapes, dtypes, roots.
        """
        if self._unchecked < 0:
            return
        from clew.distributed import _check

        _check.compare(self, what, detail)
        self._unchecked += 1
        if self._unchecked >= CHECKED and os.environ.get("CLEW_CHECK") != "1":
            self._unchecked = -1

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


class _State:
    default: ProcessGroup | None = None
    store: Store | None = None
    groups: ClassVar[list[ProcessGroup]] = []
    count = 0
    said = False


_state = _State()


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _state.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _state.default = value


class GroupMember(metaclass=_GroupMeta):
    """What tells members of a group from others: `new_group` gives others `NON_GROUP_MEMBER`.

    `WORLD` is the group of all processes; None before `init_process_group`.

    Example:
        >>> import clew.distributed as dist
        >>> dist.GroupMember.NON_GROUP_MEMBER
        -100
    """

    NON_GROUP_MEMBER = -100


class group(metaclass=_GroupMeta):
    """Holds the group of all processes, as `group.WORLD`; None before `init_process_group`.

    Example:
        >>> import clew.distributed as dist
        >>> dist.group.WORLD is None
        True
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.group.WORLD.size()
        1
        >>> dist.destroy_process_group()
    """


def _say_once(text: str) -> None:
    if not _state.said:
        _state.said = True
        print(text, file=sys.stderr)


def _backend(name: str | None) -> str:
    asked = [part.rpartition(":")[2].lower() for part in (name or "gloo").split(",")]
    for one in asked:
        if one not in Backend.backend_list:
            raise RuntimeError(
                f"init_process_group: clew has no backend {name!r}; use 'mpi', 'gloo' or 'nccl', "
                "which all are MPI where there are several processes"
            )
    return asked[0] if asked[0] != "undefined" else "gloo"


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the group of all processes: MPI's ranks, or this process alone.

    Args:
        backend: "mpi", "gloo" or "nccl": all are MPI.
        init_method: as PyTorch's; the ranks have found each other through MPI.
        timeout: how long an operation may take; half an hour if None.
        world_size: how many processes; as MPI says if -1.
        rank: which of them this is; as RANK or MPI says if -1.
        store: what they tell each other with; one of its own if None.
        group_name: a name for messages.
        pg_options: must be None.
        device_id: not used: tensors are on the CPU.

    Raises:
        RuntimeError: where MPI is missing, or the processes were not started by it.

    Example:
        >>> from clew.distributed import destroy_process_group, init_process_group
        >>> init_process_group("gloo", rank=0, world_size=1)
        >>> destroy_process_group()
    """
    if _state.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if pg_options is not None:
        raise NotImplementedError("init_process_group: pg_options must be None")
    name = _backend(backend)
    found = _mpi.started()
    if init_method and "?" in init_method:
        parts = dict(p.partition("=")[::2] for p in init_method.split("?")[1].split("&"))
        world_size = int(parts.get("world_size", world_size))
        rank = int(parts.get("rank", rank))
    if world_size < 0:
        world_size = int(os.environ.get("WORLD_SIZE", found[1] if found else 1))
    if rank < 0:
        rank = int(os.environ.get("RANK", found[0] if found else 0))
    if not 0 <= rank < world_size:
        raise ValueError(
            f"init_process_group: the rank must be 0 to {world_size - 1}, since there are "
            f"{world_size} processes; got {rank}"
        )
    started = found[1] if found else 1
    if world_size not in (1, started):
        if started == 1:
            _mpi.load()  # says how to install it where that is what is missing
        raise RuntimeError(
            f"init_process_group: a world of {world_size} processes was asked for, and MPI started "
            f"{started}: processes that were started on their own cannot find each other; start "
            f"them with: clew launch --nproc-per-node {world_size} script.py"
        )
    if name == "nccl":
        _say_once("clew.distributed: backend 'nccl' is MPI here, for tensors on the CPU")
    ranks, limit = list(range(world_size)), timeout or default_pg_timeout
    made = ProcessGroup(_mpi.OneComm(), ranks, "default", name, limit, group_name)
    if world_size > 1:
        _find_each_other(made, rank)
    _state.default, _state.count, _state.store = made, 0, store
    _state.groups[:] = [made]


def _find_each_other(made: ProcessGroup, rank: int) -> None:
    """Gives the group of all a communicator in which each process has the rank it asks for.

    MPI's start, and making communicators, block within MPI. So all ranks must have come first,
    which can be waited for.
    """
    from clew.distributed import _check, _faults

    made.global_rank, made._unchecked = rank, 0
    wait_for(_faults.arrive(made.ranks), made, "init_process_group", made.limit or None)
    made._comm = _mpi.world()
    _faults.watch(made._comm)
    asked = np.zeros(made.size(), np.int64)
    request = made._comm.allgather(np.array([rank], np.int64), asked)
    wait_for(request.Test, made, "init_process_group", made.limit or None)
    ranks = asked.tolist()
    for one in ranks:
        if ranks.count(one) > 1:
            raise RuntimeError(f"init_process_group: two processes say that they are {one}")
    in_order = ranks == made.ranks
    made._comm = made._comm.duplicate() if in_order else made._comm.ordered(rank)
    made._checker = _check.duplicate(made, "init_process_group")


def destroy_process_group(group: Any = None) -> None:
    """Frees a group, or all groups; `init_process_group` may be called again afterwards.

    Args:
        group: the group; all if None or the group of all processes.

    Raises:
        ValueError: if there is no group of all processes.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.destroy_process_group()
        >>> dist.is_initialized()
        False
    """
    default = _get_default_group()
    if group is None or group is default:
        for one in reversed(_state.groups):
            _free(one)
        _state.groups.clear()
        _state.default = _state.store = None
    elif group != GroupMember.NON_GROUP_MEMBER and group in _state.groups:
        _state.groups.remove(group)
        _free(group)


def _free(group: ProcessGroup) -> None:
    for one in (group._checker, group._meeting):
        if one is not None:
            one.free()
    group._checker = group._meeting = group._slots = None
    group._comm.free()
    group.freed = True


def abort_process_group(group: Any = None) -> None:
    """Ends all processes of a group at once, this one included, through MPI's Abort.

    Args:
        group: the group; the one of all processes if None.

    A group of one process without MPI has nothing to end: the call does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.distributed_c10d.abort_process_group()
        >>> dist.destroy_process_group()
    """
    (_of(group) or _get_default_group())._comm.abort(1)


def is_initialized() -> bool:
    """Whether there is a group of all processes.

    Example:
        >>> import clew.distributed as dist
        >>> dist.is_initialized()
        False
    """
    return _state.default is not None


def _get_default_group() -> ProcessGroup:
    if _state.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _state.default


def _get_default_store() -> Store:
    default = _get_default_group()
    if _state.store is None:
        if default.size() == 1:
            _state.store = HashStore()
        else:
            port = os.environ.get("MASTER_PORT", "0")
            launch = os.environ.get("CLEW_LAUNCH_FOLDER", tempfile.gettempdir())
            _state.store = FileStore(os.path.join(launch, f"clew-store-{os.getuid()}-{port}"))
    return _state.store


def _of(group: Any) -> ProcessGroup | None:
    """The group asked for; None where this process is no member."""
    if group is None:
        return _get_default_group()
    _get_default_group()
    if isinstance(group, ProcessGroup):
        if group.freed:
            raise ValueError(f"distributed: {group} was destroyed")
        return group
    if group == GroupMember.NON_GROUP_MEMBER:
        return None
    raise TypeError(f"distributed: expected a ProcessGroup; got {type(group).__name__}")


def get_rank(group: Any = None) -> int:
    """The rank of this process in a group; -1 if it is not a member.

    Args:
        group: the group; the one of all processes if None.

    Raises:
        ValueError: before `init_process_group`.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_rank()
        0
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """How many processes a group has; -1 if this process is not a member.

    Args:
        group: the group; the one of all processes if None.

    Raises:
        ValueError: before `init_process_group`.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    return -1 if found is None else found.size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank of this process among those of its machine, from the variable LOCAL_RANK.

    Args:
        fallback_rank: the result where LOCAL_RANK is not set.

    Raises:
        RuntimeError: where LOCAL_RANK is not set and there is no `fallback_rank`.

    Example:
        >>> import clew.distributed as dist, os
        >>> "LOCAL_RANK" in os.environ or dist.get_node_local_rank(fallback_rank=0) == 0
        True
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not set; give fallback_rank")
    return int(fallback_rank)


def get_backend(group: Any = None) -> Backend:
    """The name of a group's backend, as the program gave it.

    Args:
        group: the group; the one of all processes if None.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_backend()
        'gloo'
        >>> dist.destroy_process_group()
    """
    return (_of(group) or _get_default_group())._backend


def get_backend_config(group: Any = None) -> str:
    """A group's backend by kind of device, "cpu:name".

    Args:
        group: the group; the one of all processes if None.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.distributed_c10d.get_backend_config()
        'cpu:gloo'
        >>> dist.destroy_process_group()
    """
    return f"cpu:{get_backend(group)}"


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The global ranks of a group's processes; empty if this process is not a member.

    Args:
        group: the group; the one of all processes if None.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_process_group_ranks()
        [0]
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    return [] if found is None else list(found.ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of the process that has a rank in a group.

    Args:
        group: the group; the one of all processes if None.
        group_rank: the rank in the group.

    Raises:
        ValueError: if the group has no such rank, or this process is not a member.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_global_rank(dist.group.WORLD, 0)
        0
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None or not 0 <= group_rank < found.size():
        raise ValueError(f"distributed.get_global_rank: no rank {group_rank} in {found}")
    return found.ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of the process that has a global rank.

    Args:
        group: the group; the one of all processes if None.
        global_rank: the rank among all processes.

    Raises:
        ValueError: if the process is not in the group, or this one is not a member.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_group_rank(dist.group.WORLD, 0)
        0
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None or global_rank not in found.ranks:
        raise ValueError(f"distributed.get_group_rank: rank {global_rank} is not in {found}")
    return found.ranks.index(global_rank)


def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Makes a group of some processes; all processes call it, in the same order.

    Args:
        ranks: the members' global ranks; all if None. The group's order is ascending.
        timeout: how long an operation may take, a timedelta; as the group of all if None.
        backend: as the group of all if None.
        pg_options: must be None.
        use_local_synchronization: True where only the members call it.
        group_desc: what it is for.
        device_id: not used: tensors are on the CPU.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` where this process is not in it.

    Raises:
        ValueError: if the ranks are not distinct ranks of the group of all.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.new_group([0]).size()
        1
        >>> dist.destroy_process_group()
    """
    default = _get_default_group()
    if pg_options is not None:
        raise NotImplementedError("new_group: pg_options must be None")
    wanted = sorted(default.ranks if ranks is None else ranks)
    if len(set(wanted)) != len(wanted) or any(not 0 <= r < default.size() for r in wanted):
        raise ValueError(
            f"new_group: the ranks must be distinct, of 0 to {default.size() - 1}; got {wanted}"
        )
    if use_local_synchronization:  # others have not counted this group
        tag = hash((len(wanted), *wanted)) % 20000
        name = f"group_of_{'_'.join(map(str, wanted))}"
    else:
        _state.count += 1
        tag, name = 20000 + _state.count % 10000, f"group_{_state.count}"
    if default.rank() not in wanted:
        return GroupMember.NON_GROUP_MEMBER
    if len(wanted) > 1:
        _meet(default, wanted, tag)
    comm = default._comm.subset(wanted, tag)
    limit = timeout or datetime.timedelta(seconds=default.limit)
    kind = default._backend if backend is None else _backend(backend)
    made = ProcessGroup(comm, wanted, name, kind, limit, group_desc or "")
    _state.groups.append(made)
    return made


def _meet(default: ProcessGroup, wanted: list[int], tag: int) -> None:
    """Waits until all members have come: making a communicator would block for ever.

    They tell the first of them, and it answers, where no message of the program can come between.
    """
    comm, none = default._checker, np.zeros(0, np.uint8)
    rank, first = default.rank(), wanted[0]
    told = wanted[1:] if rank == first else [first]
    steps = (comm.irecv, comm.isend) if rank == first else (comm.isend, comm.irecv)
    for step in steps:
        for request in [step(none, other, tag) for other in told]:
            wait_for(request.Test, default, "new_group", default.limit or None)


def new_subgroups(
    group_size: Any = None, group: Any = None, timeout: Any = None, backend: Any = None, **args: Any
) -> tuple[Any, list[Any]]:
    """Makes groups of equal size, each of consecutive ranks.

    Args:
        group_size: how many processes each has; if None, as many as one machine has (the variable
            LOCAL_WORLD_SIZE), or all.
        group: must be None.
        timeout: as in `new_group`.
        backend: as in `new_group`.
        args: further options of `new_group`.

    Returns:
        The group of this process, and a list with a place for each group (`NON_GROUP_MEMBER` for
        those that this process is not in).

    Raises:
        ValueError: if the number of processes is no multiple of `group_size`.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine, groups = dist.new_subgroups(1)
        >>> mine.ranks, len(groups)
        ([0], 1)
        >>> dist.destroy_process_group()
    """
    if group is not None:
        raise NotImplementedError("new_subgroups: group must be None")
    total = _get_default_group().size()
    size = int(group_size or os.environ.get("LOCAL_WORLD_SIZE", total))
    if size <= 0 or total % size:
        raise ValueError(f"new_subgroups: {total} processes cannot form groups of {size}")
    lists = [list(range(i, i + size)) for i in range(0, total, size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, **args)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Any, timeout: Any = None, backend: Any = None, **args: Any
) -> tuple[Any, list[Any]]:
    """Makes a group of each list of ranks.

    Args:
        ranks_per_subgroup_list: lists of global ranks.
        timeout: as in `new_group`.
        backend: as in `new_group`.
        args: further options of `new_group`.

    Returns:
        The group of this process (None where it is in none), and a list with a place for each group
        (`NON_GROUP_MEMBER` for those that this process is not in).

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine, groups = dist.new_subgroups_by_enumeration([[0]])
        >>> mine is groups[0]
        True
        >>> dist.destroy_process_group()
    """
    groups = [new_group(ranks, timeout, backend, **args) for ranks in ranks_per_subgroup_list]
    mine = [g for g in groups if isinstance(g, ProcessGroup)]
    return (mine[0] if mine else None), groups


def split_group(
    parent_pg: Any = None, split_ranks: Any = None, timeout: Any = None, **args: Any
) -> Any:
    """Makes a group of each list of ranks within a group.

    Args:
        parent_pg: the group; the one of all processes if None.
        split_ranks: lists of ranks in that group.
        timeout: as in `new_group`.
        args: must be empty.

    Returns:
        The group of this process; None where it is in none.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.split_group(split_ranks=[[0]]).size()
        1
        >>> dist.destroy_process_group()
    """
    if args or split_ranks is None:
        raise NotImplementedError(f"split_group: expected split_ranks and no {sorted(args)}")
    parent = _of(parent_pg) or _get_default_group()
    lists = [[parent.ranks[r] for r in part] for part in split_ranks]
    mine: Any = None
    for ranks in lists:
        made = new_group(ranks, timeout, use_local_synchronization=parent is not _state.default)
        if isinstance(made, ProcessGroup):
            mine = made
    return mine
