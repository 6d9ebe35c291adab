"""Groups of some of the processes: new_group, new_subgroups, split_group."""

from __future__ import annotations

import datetime
import os
from typing import Any

import numpy as np

from clew.distributed._groups import GroupMember, _backend, _get_default_group, _of, _state
from clew.distributed._process_group import ProcessGroup
from clew.distributed._work import wait_for


def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Makes a group of some processes; all processes call it, in the same order.

    Args:
        ranks: the members' global ranks; all if None.
        timeout: how long an operation may take, a timedelta; as the group of all if None.
        backend: as the group of all if None.
        pg_options: must be None.
        use_local_synchronization: True where only the members call it.
        group_desc: what it is for.
        device_id: not used: tensors are on the CPU.
        sort_ranks: the group's order is ascending; with False that of `ranks`.

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
    wanted = list(default.ranks if ranks is None else ranks)
    wanted = sorted(wanted) if sort_ranks else wanted
    if len(set(wanted)) != len(wanted) or any(not 0 <= r < default.size() for r in wanted):
        raise ValueError(
            f"new_group: the ranks must be distinct, of 0 to {default.size() - 1}; got {wanted}"
        )
    if use_local_synchronization:  # others have not counted this group
        tag = hash((len(wanted), *wanted)) % 20000
        name = f"group_of_{'_'.join(map(str, wanted))}"
    else:
        default.check("new_group", f"({wanted})")
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
