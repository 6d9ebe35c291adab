"""The group of all processes: of one process without MPI, of MPI's ranks otherwise; and what a
program asks of a group."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from typing import Any, ClassVar

import numpy as np

from clew.distributed import _mpi
from clew.distributed._process_group import Backend, ProcessGroup
from clew.distributed._stores import FileStore, HashStore, Store
from clew.distributed._work import wait_for

default_pg_timeout = datetime.timedelta(minutes=30)
default_pg_nccl_timeout = datetime.timedelta(minutes=10)


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
