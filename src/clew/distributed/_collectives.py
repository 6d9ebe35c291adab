"""Collectives on tensors: what a group's processes give, combined or passed on."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew._C import Tensor
from clew.distributed import _arrays
from clew.distributed._groups import _of, get_group_rank
from clew.distributed._process_group import ProcessGroup, ReduceOp, begin
from clew.distributed._work import Work, wait_for


def _root(name: str, group: ProcessGroup, rank: Any, group_rank: Any, default: int | None) -> int:
    """The place in the group of the rank that a call names."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"distributed.{name}: give a global rank or one in the group, not both")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(f"distributed.{name}: no rank {group_rank} in {group}")
        return int(group_rank)
    if rank is None:
        if default is None:
            raise ValueError(f"distributed.{name}: a rank must be given")
        rank = group.ranks[default]
    return get_group_rank(group, rank)


def _check(group: ProcessGroup, name: str, tensor: Any = None, extra: Any = "") -> list[str] | None:
    if group._unchecked < 0:
        return None
    told = "" if tensor is None else f"{tuple(tensor.shape)}, {str(tensor.dtype).split('.')[-1]}"
    return group.check(name, f"({told}{', ' if told and extra else ''}{extra})")


def _counted(name: str, items: Any, group: ProcessGroup) -> list[Tensor]:
    if items is None or len(items) != group.size():
        raise ValueError(
            f"distributed.{name}: expected one tensor for each of {group.size()} processes; got "
            f"{None if items is None else len(items)}"
        )
    _arrays.expect(name, *items)
    return list(items)


def _alike(name: str, tensors: Any, tensor: Tensor) -> None:
    for one in tensors:
        if one.numel() != tensor.numel() or one.dtype != tensor.dtype:
            raise ValueError(
                f"distributed.{name}: the tensors must have one size and dtype; got "
                f"{tuple(one.shape)} of {one.dtype} beside {tuple(tensor.shape)} of {tensor.dtype}"
            )


def _give(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Combines the processes' tensors elementwise, in place on every process.

    Args:
        tensor: any shape, the same on all processes, and on the CPU; it gets the result. float16
            and bfloat16 are combined in float32.
        op: a `ReduceOp`; AVG divides the sum by the number of processes.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2)
        >>> dist.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("all_reduce", tensor)
    if found is None:
        return None
    _check(found, "all_reduce", tensor, ReduceOp(op).name)
    array, _, kind, finish = _arrays.combining("all_reduce", tensor, tensor, op, found.size())
    request = found._comm.allreduce(array, kind)
    return _give(Work(found, "all_reduce", [request], finish, [tensor], array), async_op)


def reduce(
    tensor: Tensor,
    dst: Any = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: Any = None,
) -> Any:
    """Combines the processes' tensors elementwise at one process.

    Args:
        tensor: any shape, the same on all processes. At the destination it gets the result.
        dst: the global rank of the destination.
        op: a `ReduceOp`.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.
        group_dst: the destination's rank in the group, instead of `dst`.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Raises:
        ValueError: if not exactly one of `dst` and `group_dst` is given.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2)
        >>> dist.reduce(x, dst=0)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("reduce", tensor)
    if found is None:
        return None
    root = _root("reduce", found, dst, group_dst, None)
    _check(found, "reduce", tensor, f"{ReduceOp(op).name}, to {root}")
    array, _, kind, finish = _arrays.combining("reduce", tensor, tensor, op, found.size())
    request = found._comm.reduce(array, kind, root)
    last = finish if found.rank() == root else None
    return _give(Work(found, "reduce", [request], last, [tensor], array), async_op)


def broadcast(
    tensor: Tensor,
    src: Any = None,
    group: Any = None,
    async_op: bool = False,
    group_src: Any = None,
) -> Any:
    """Copies the tensor of one process to all processes of the group.

    Args:
        tensor: what is sent at the source, what is filled elsewhere; one shape and dtype on all.
        src: the global rank of the source.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.
        group_src: the source's rank in the group, instead of `src`.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Raises:
        ValueError: if not exactly one of `src` and `group_src` is given.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.arange(3)
        >>> dist.broadcast(x, src=0)
        >>> x
        tensor([0, 1, 2])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("broadcast", tensor)
    if found is None:
        return None
    root = _root("broadcast", found, src, group_src, None)
    _check(found, "broadcast", tensor, f"from {root}")
    array, finish = _arrays.writing(tensor)
    request = found._comm.bcast(array, root)
    return _give(Work(found, "broadcast", [request], finish, [tensor], array), async_op)


def _gather_all(name: str, group: ProcessGroup, targets: Any, tensor: Tensor, of: str = "") -> Work:
    _check(group, name, tensor, of)
    source = _arrays.reading(tensor)
    array, finish = _arrays.room(targets)
    request = group._comm.allgather(source, array)
    return Work(group, name, [request], finish, list(targets), (source, array))


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """Collects the tensors of all processes in a list, on every process.

    Args:
        tensor_list: one tensor for each process, by rank in the group; filled.
        tensor: what this process gives. The tensors may differ in size between processes; every
            process gives places of the right sizes.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Raises:
        ValueError: if the list's length is not the group's size, or a size or dtype does not fit.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> parts = [clew.zeros(2)]
        >>> dist.all_gather(parts, clew.tensor([1.0, 2.0]))
        >>> parts
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("all_gather", tensor)
    if found is None:
        return None
    targets = _counted("all_gather", tensor_list, found)
    if any(t.numel() != tensor.numel() for t in targets):
        return _give(_gather_uneven(found, targets, tensor), async_op)
    _alike("all_gather", targets, tensor)
    return _give(_gather_all("all_gather", found, targets, tensor), async_op)


def _gather_uneven(group: ProcessGroup, targets: list[Tensor], tensor: Tensor) -> Work:
    """By messages to each rank: the sizes differ."""
    rank, count = group.rank(), group.size()
    source = _arrays.reading(tensor)
    array, finish = _arrays.room(targets)
    sizes = [t.numel() for t in targets]
    if sizes[rank] != tensor.numel():
        raise ValueError(
            f"distributed.all_gather: the place of rank {rank} has {sizes[rank]} elements for its "
            f"tensor of {tensor.numel()}"
        )
    sent = np.concatenate([source] * count)
    request = group._comm.alltoall(sent, [source.size] * count, array, sizes)
    return Work(group, "all_gather", [request], finish, targets, (sent, array))


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """Collects the tensors of all processes in one tensor, on every process.

    Args:
        output_tensor: filled with the tensors by rank: joined along the first dim, (n * d, ...), or
            stacked, (n, d, ...), for n processes.
        input_tensor: what this process gives, (d, ...); one shape and dtype on all.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> whole = clew.zeros(2)
        >>> dist.all_gather_into_tensor(whole, clew.tensor([1.0, 2.0]))
        >>> whole
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("all_gather_into_tensor", output_tensor, input_tensor)
    if found is None:
        return None
    _sized("all_gather_into_tensor", output_tensor, input_tensor, found.size())
    made = _gather_all("all_gather_into_tensor", found, [output_tensor], input_tensor)
    return _give(made, async_op)


def _sized(name: str, large: Tensor, small: Tensor, count: int) -> None:
    if large.numel() != small.numel() * count or large.dtype != small.dtype:
        raise ValueError(
            f"distributed.{name}: one tensor must have {count} times the other's elements, of the "
            f"same dtype; got {tuple(large.shape)} of {large.dtype} and {tuple(small.shape)} of "
            f"{small.dtype}"
        )


_all_gather_base = all_gather_into_tensor


def gather(
    tensor: Tensor,
    gather_list: Any = None,
    dst: Any = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: Any = None,
) -> Any:
    """Collects the tensors of all processes in a list, at one process.

    Args:
        tensor: what this process gives; one shape and dtype on all.
        gather_list: at the destination, one tensor for each process, by rank in the group; filled.
            None elsewhere.
        dst: the global rank of the destination; the group's first process if neither it nor
            `group_dst` is given.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.
        group_dst: the destination's rank in the group, instead of `dst`.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> parts = [clew.zeros(2)]
        >>> dist.gather(clew.ones(2), parts, dst=0)
        >>> parts
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("gather", tensor)
    if found is None:
        return None
    root = _root("gather", found, dst, group_dst, 0)
    here = found.rank() == root
    if not here and gather_list:
        raise ValueError(f"distributed.gather: only rank {root} gives a gather_list")
    targets = _counted("gather", gather_list, found) if here else []
    _alike("gather", targets, tensor)
    _check(found, "gather", tensor, f"to {root}")
    source = _arrays.reading(tensor)
    array, finish = _arrays.room(targets) if here else (None, None)
    request = found._comm.gather(source, array, root)
    return _give(Work(found, "gather", [request], finish, targets, (source, array)), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Any = None,
    src: Any = None,
    group: Any = None,
    async_op: bool = False,
    group_src: Any = None,
) -> Any:
    """Gives each process one tensor of a list that one process has.

    Args:
        tensor: filled with the tensor for this process.
        scatter_list: at the source, one tensor for each process, by rank in the group. None
            elsewhere.
        src: the global rank of the source; the group's first process if neither it nor `group_src`
            is given.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.
        group_src: the source's rank in the group, instead of `src`.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine = clew.zeros(2)
        >>> dist.scatter(mine, [clew.tensor([3.0, 4.0])], src=0)
        >>> mine
        tensor([3., 4.])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("scatter", tensor)
    if found is None:
        return None
    root = _root("scatter", found, src, group_src, 0)
    here = found.rank() == root
    if not here and scatter_list:
        raise ValueError(f"distributed.scatter: only rank {root} gives a scatter_list")
    sources = _counted("scatter", scatter_list, found) if here else []
    _alike("scatter", sources, tensor)
    _check(found, "scatter", tensor, f"from {root}")
    source = _arrays.joined(sources) if here else None
    array, finish = _arrays.writing(tensor)
    request = found._comm.scatter(source, array, root)
    return _give(Work(found, "scatter", [request], finish, [tensor], (source, array)), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Combines the processes' lists item by item; process i gets item i.

    Args:
        output: filled with the combined item for this process.
        input_list: one tensor for each process, by rank in the group, like `output`.
        op: a `ReduceOp`.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine = clew.zeros(2)
        >>> dist.reduce_scatter(mine, [clew.ones(2)])
        >>> mine
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    import clew

    found = _of(group)
    _arrays.expect("reduce_scatter", output)
    if found is None:
        return None
    items = _counted("reduce_scatter", input_list, found)
    _alike("reduce_scatter", items, output)
    joined = clew.cat([t.detach().reshape(-1) for t in items])
    return _reduce_scatter("reduce_scatter", found, output, joined, op, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Combines the processes' tensors elementwise; each process gets its part of the result.

    Args:
        output: filled with this process's part, (d, ...).
        input: what this process gives, (n * d, ...) or (n, d, ...) for n processes.
        op: a `ReduceOp`.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine = clew.zeros(2)
        >>> dist.reduce_scatter_tensor(mine, clew.ones(2))
        >>> mine
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("reduce_scatter_tensor", output, input)
    if found is None:
        return None
    _sized("reduce_scatter_tensor", input, output, found.size())
    return _reduce_scatter("reduce_scatter_tensor", found, output, input, op, async_op)


_reduce_scatter_base = reduce_scatter_tensor


def _reduce_scatter(
    name: str,
    group: ProcessGroup,
    output: Tensor,
    input: Tensor,
    op: Any,
    async_op: bool,
    of: str = "",
) -> Any:
    _check(group, name, output, ReduceOp(op).name + of)
    source, array, kind, finish = _arrays.combining(name, input, output, op, group.size())
    request = group._comm.reduce_scatter(source, array, kind)
    return _give(Work(group, name, [request], finish, [output], (source, array)), async_op)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> Any:
    """Waits until all processes of the group have called it.

    Args:
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.
        device_ids: not used: tensors are on the CPU.
        timeout: the longest wait, a timedelta; the group's limit if None.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.barrier()
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return None
    _check(found, "barrier")
    work = Work(found, "barrier", [found._comm.barrier()])
    if timeout is not None and not async_op:
        work.wait(timeout)
        return None
    return _give(work, async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits until all processes have called it, and names those that did not.

    Args:
        group: the group; the one of all processes if None.
        timeout: the longest wait, a timedelta; the group's limit if None.
        wait_all_ranks: name all missing processes instead of the first.

    Raises:
        RuntimeError: at rank 0 of the group, naming who is missing; at the others after twice the
            limit.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.monitored_barrier()
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None or found.size() == 1:
        return
    limit = found.limit if timeout is None else timeout.total_seconds()
    word = np.zeros(1, np.uint8)
    tag = 32700
    if found.rank():
        first = found._comm.isend(word, 0, tag)
        wait_for(first.Test, found, "monitored_barrier", limit)
        answer = found._comm.irecv(word, 0, tag)
        wait_for(answer.Test, found, "monitored_barrier", 2 * limit)
        return
    requests = {r: found._comm.irecv(np.zeros(1, np.uint8), r, tag) for r in range(1, found.size())}

    def come() -> bool:
        for rank in list(requests):
            if requests[rank].Test():
                del requests[rank]
        return not requests

    try:
        wait_for(come, found, "monitored_barrier", limit)
    except RuntimeError as error:
        missing = [found.ranks[r] for r in sorted(requests)]
        for request in requests.values():
            request.Cancel()
        raise RuntimeError(
            f"distributed.monitored_barrier: within {limit:g} s there came no word from "
            f"{'ranks ' + str(missing) if wait_all_ranks else 'rank ' + str(missing[0])}"
        ) from error
    sent = [found._comm.isend(word, r, tag) for r in range(1, found.size())]
    Work(found, "monitored_barrier", sent).wait()


begin.update(
    all_gather=all_gather,
    all_reduce=all_reduce,
    barrier=barrier,
    broadcast=broadcast,
    reduce_scatter=reduce_scatter,
)
