"""Collectives that gradients go through: each one's gradient is the collective the other way."""

from __future__ import annotations

from typing import Any

import clew
from clew._C import Tensor
from clew.distributed import distributed_c10d as c10d
from clew.distributed.distributed_c10d import ReduceOp, _get_default_group, _of, get_group_rank

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

_Function = clew.autograd.Function


def _group(group: Any) -> Any:
    return _of(group) or _get_default_group()


class _AllReduce(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, op: Any, tensor: Any) -> Any:
        ctx.group, ctx.op = group, op
        made = tensor.detach().clone()
        c10d.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.group, ctx.op, grad)


class _Broadcast(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, src: int, tensor: Any) -> Any:
        ctx.group, ctx.src = group, src
        made = tensor.detach().clone()
        c10d.broadcast(made, group=group, group_src=src)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        got = _Reduce.apply(ctx.group, ctx.src, ReduceOp.SUM, grad)
        return None, None, got if ctx.group.rank() == ctx.src else clew.zeros_like(got)


class _Reduce(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, dst: int, op: Any, tensor: Any) -> Any:
        ctx.group, ctx.dst = group, dst
        made = tensor.detach().clone()
        c10d.reduce(made, op=op, group=group, group_dst=dst)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.group, ctx.dst, grad)


class _AllGather(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        made = [clew.empty_like(tensor) for _ in range(group.size())]
        c10d.all_gather(made, tensor.contiguous(), group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        stacked = clew.stack([g.contiguous() for g in grads])
        return None, _ReduceScatter.apply(ctx.group, ReduceOp.SUM, stacked)


class _ReduceScatter(_Function):
    """Of a tensor whose first dim counts the ranks."""

    @staticmethod
    def forward(ctx: Any, group: Any, op: Any, stacked: Any) -> Any:
        ctx.group, ctx.op = group, op
        made = clew.empty(stacked.shape[1:], dtype=stacked.dtype)
        c10d.reduce_scatter_tensor(made, stacked.detach().contiguous(), op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, clew.stack(_AllGather.apply(ctx.group, grad.contiguous()))


class _Gather(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, dst: int, tensor: Any) -> Any:
        ctx.group, ctx.dst = group, dst
        made = [clew.zeros_like(tensor) for _ in range(group.size())]
        c10d.gather(
            tensor.contiguous(), made if group.rank() == dst else None, group=group, group_dst=dst
        )
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.group, ctx.dst, *[g.contiguous() for g in grads])


class _Scatter(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, src: int, *tensors: Any) -> Any:
        ctx.group, ctx.src = group, src
        made = clew.zeros_like(tensors[0])
        here = group.rank() == src
        c10d.scatter(made, list(tensors) if here else None, group=group, group_src=src)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, *_Gather.apply(ctx.group, ctx.src, grad)


class _Exchange(_Function):
    @staticmethod
    def forward(ctx: Any, group: Any, sizes: list[int], wanted: list[int], tensor: Any) -> Any:
        ctx.group, ctx.sizes, ctx.wanted = group, sizes, wanted
        made = clew.empty((sum(wanted), *tensor.shape[1:]), dtype=tensor.dtype)
        c10d.all_to_all_single(made, tensor.contiguous(), wanted, sizes, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, _Exchange.apply(ctx.group, ctx.wanted, ctx.sizes, grad)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Combines the processes' tensors elementwise; gradients are combined by the same operation.

    Args:
        tensor: any shape, the same on all processes; not changed.
        op: a `ReduceOp`. Only SUM and AVG have right gradients.
        group: the group; the one of all processes if None.

    Returns:
        The result, on every process.

    Example:
        >>> from clew.distributed.nn import all_reduce
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> all_reduce(x * 3).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        >>> dist.destroy_process_group()
    """
    return _AllReduce.apply(_group(group), op, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Collects the tensors of all processes, on every process; gradients are summed and sent back.

    Args:
        tensor: any shape, the same on all processes.
        group: the group; the one of all processes if None.

    Returns:
        A tuple of the tensors, by rank in the group.

    Example:
        >>> from clew.distributed.nn import all_gather
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> all_gather(x)[0].sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _AllGather.apply(_group(group), tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Copies the tensor of one process to all; the sum of the gradients goes to that process.

    Args:
        tensor: one shape and dtype on all processes; not changed.
        src: the global rank of the source.
        group: the group; the one of all processes if None.

    Returns:
        The source's tensor.

    Example:
        >>> from clew.distributed.nn import broadcast
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> broadcast(x, src=0).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Broadcast.apply(found, get_group_rank(found, src), tensor)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Combines the processes' tensors at one process, whose gradient goes to all.

    Args:
        tensor: any shape, the same on all processes; not changed.
        dst: the global rank of the destination.
        op: a `ReduceOp`. Only SUM has right gradients.
        group: the group; the one of all processes if None.

    Returns:
        The result at the destination; elsewhere a copy of the process's own tensor.

    Example:
        >>> from clew.distributed.nn import reduce
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> reduce(x, dst=0).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Reduce.apply(found, get_group_rank(found, dst), op, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Collects the tensors of all processes at one process; each one's gradient is sent back to it.

    Args:
        tensor: any shape, the same on all processes.
        dst: the global rank of the destination.
        group: the group; the one of all processes if None.

    Returns:
        A tuple of the tensors, by rank in the group; of zeros at the other processes.

    Example:
        >>> from clew.distributed.nn import gather
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> gather(x, dst=0)[0].sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Gather.apply(found, get_group_rank(found, dst), tensor)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Tensor:
    """Gives each process one tensor of one process's list, which gets their gradients.

    Args:
        tensors: one for each process, by rank in the group, of one shape; those of the source
            count, and the others give tensors of that shape.
        src: the global rank of the source.
        group: the group; the one of all processes if None.

    Returns:
        The tensor for this process.

    Example:
        >>> from clew.distributed.nn import scatter
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> scatter([x], src=0).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Scatter.apply(found, get_group_rank(found, src), *tensors)


def reduce_scatter(
    output: Tensor, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """Combines the processes' lists item by item; process i gets item i. Gradients are collected.

    Args:
        output: not used: PyTorch's place for the result.
        input_list: one tensor for each process, by rank in the group, of one shape.
        op: a `ReduceOp`. Only SUM has right gradients.
        group: the group; the one of all processes if None.

    Returns:
        The item for this process.

    Example:
        >>> from clew.distributed.nn import reduce_scatter
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> reduce_scatter(clew.empty(2), [x]).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _ReduceScatter.apply(_group(group), op, clew.stack(list(input_list)))


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None
) -> tuple[Tensor, ...]:
    """Sends item j of this process's list to process j; gradients go the other way.

    Args:
        output_tensor_list: tensors of the shapes that come, by rank; not changed.
        input_tensor_list: what is sent, by rank; the items may differ in size.
        group: the group; the one of all processes if None.

    Returns:
        A tuple of the tensors that came, by rank.

    Example:
        >>> from clew.distributed.nn import all_to_all
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> all_to_all([clew.empty(2)], [x])[0].sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    given, wanted = list(input_tensor_list), list(output_tensor_list)
    flat = clew.cat([t.reshape(-1) for t in given])
    sizes, counts = [t.numel() for t in given], [t.numel() for t in wanted]
    made = _Exchange.apply(_group(group), sizes, counts, flat)
    return tuple(part.view(t.shape) for part, t in zip(made.split(counts), wanted))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
) -> Tensor:
    """Cuts a tensor along its first dim and sends part j to process j; gradients go the other way.

    Args:
        output: a tensor with as many rows as come; not changed.
        input: what is sent.
        output_split_sizes: how many rows come from each process; equal parts if None.
        input_split_sizes: how many rows go to each process; equal parts if None.
        group: the group; the one of all processes if None.

    Returns:
        The parts that came, by rank, joined along the first dim.

    Example:
        >>> from clew.distributed.nn import all_to_all_single
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clew.ones(2, requires_grad=True)
        >>> all_to_all_single(clew.empty(2), x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    found = _group(group)
    n = found.size()
    sizes = list(input_split_sizes or [input.shape[0] // n] * n)
    wanted = list(output_split_sizes or [output.shape[0] // n] * n)
    return _Exchange.apply(found, sizes, wanted, input)
