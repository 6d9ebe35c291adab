"""Collectives that give new tensors, with gradients.

What they give is there when they return: `wait_tensor` has nothing to wait for.
"""

from __future__ import annotations

from typing import Any

import clew
from clew._C import Tensor
from clew._torch.absent import _SHARDED, absent
from clew.distributed import DeviceMesh, ProcessGroup, ReduceOp, new_group
from clew.distributed.distributed_c10d import _of, _state
from clew.distributed.nn import functional as with_gradients

__all__ = [
    "all_gather_into_tensor_coalesced",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
    "wait_tensor",
]

# What PyTorch's give before they have come; here nothing is one.
AsyncCollectiveTensor = absent(
    "distributed._functional_collectives", "AsyncCollectiveTensor", _SHARDED
)


def _group(group: Any) -> ProcessGroup:
    """The group of what stands for it: itself, its name, a mesh, (mesh, dim), a list of ranks."""
    if isinstance(group, DeviceMesh):
        group = group.get_group()
    elif isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        group = group[0].get_group(group[1])
    elif isinstance(group, str):
        named = [g for g in _state.groups if g.group_name == group]
        if not named:
            raise ValueError(f"distributed: there is no group {group!r}")
        group = named[0]
    elif isinstance(group, (list, tuple)):
        ranks = sorted(group)
        of_these = [g for g in _state.groups if g.ranks == ranks]
        group = of_these[0] if of_these else new_group(ranks, use_local_synchronization=True)
    found = _of(group)
    if found is None:
        raise ValueError("distributed: this process is not in the group")
    return found


def _op(name: str) -> ReduceOp:
    known = {op.name.lower(): op for op in ReduceOp if op is not ReduceOp.PREMUL_SUM}
    if name.lower() not in known:
        raise ValueError(f"distributed: reduceOp must be one of {sorted(known)}; got {name!r}")
    return known[name.lower()]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there already."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The processes' tensors combined elementwise.

    Args:
        self: any shape, the same on all.
        reduceOp: such as "sum" or "avg".
        group: a group, its name, a mesh of one dim, (mesh, dim) or a list of ranks.
        tag: not needed.
    """
    return with_gradients.all_reduce(self.contiguous(), _op(reduceOp), _group(group))


def all_reduce_coalesced(
    self: list[Tensor], reduceOp: str, group: Any, tag: str = ""
) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return [all_reduce(one, reduceOp, group, tag) for one in self]


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of one process.

    Args:
        self: one shape and dtype on all.
        src: whose, by its rank in the group.
        group: as of `all_reduce`.
        tag: not needed.
    """
    found = _group(group)
    return with_gradients.broadcast(self.contiguous(), found.ranks[src], found)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The processes' tensors side by side.

    Args:
        self: one shape and dtype on all.
        gather_dim: along which dim.
        group: as of `all_reduce`.
        tag: not needed.
    """
    return clew.cat(with_gradients.all_gather(self.contiguous(), _group(group)), gather_dim)


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """`all_gather_tensor` of several tensors, along their first dims."""
    return [all_gather_tensor(one, 0, group, tag) for one in self]


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """This process's part of the processes' tensors combined elementwise.

    Args:
        self: one shape and dtype on all.
        reduceOp: such as "sum" or "avg".
        scatter_dim: along which dim it is cut; its size is a multiple of the group's.
        group: as of `all_reduce`.
        tag: not needed.
    """
    found, op = _group(group), _op(reduceOp)
    count = found.size()
    if self.shape[scatter_dim] % count:
        raise ValueError(
            f"distributed.reduce_scatter_tensor: dim {scatter_dim} must be a multiple of {count}; "
            f"got {tuple(self.shape)}"
        )
    parts = [p.contiguous() for p in self.chunk(count, scatter_dim)]
    mean = op == ReduceOp.AVG  # divided here, so that gradients are too
    made = with_gradients.reduce_scatter(
        clew.empty_like(parts[0]), parts, ReduceOp.SUM if mean else op, found
    )
    return made / count if mean else made


def reduce_scatter_tensor_coalesced(
    inputs: list[Tensor], reduceOp: str, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """`reduce_scatter_tensor` of several tensors, each along its own dim."""
    return [
        reduce_scatter_tensor(one, reduceOp, dim, group, tag)
        for one, dim in zip(inputs, scatter_dim, strict=True)
    ]


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Sends each process a part along the first dim, and gives what they send.

    Args:
        self: what is sent.
        output_split_sizes: rows that come from each; equal parts if None.
        input_split_sizes: rows that go to each; equal parts if None.
        group: as of `all_reduce`.
        tag: not needed.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    made = clew.empty((rows, *self.shape[1:]), dtype=self.dtype)
    return with_gradients.all_to_all_single(
        made, self.contiguous(), output_split_sizes, input_split_sizes, _group(group)
    )


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the process that sends to this one.

    Args:
        self: one shape and dtype on all.
        src_dst: to whom each process of the group sends; every one gets one.
        group: as of `all_reduce`.
        tag: not needed.
    """
    found = _group(group)
    if sorted(src_dst) != list(range(found.size())):
        raise ValueError(f"distributed.permute_tensor: not one target for each; got {src_dst}")
    size, rank = self.numel(), found.rank()
    to = [size if other == src_dst[rank] else 0 for other in range(found.size())]
    of = [size if src_dst[other] == rank else 0 for other in range(found.size())]
    return all_to_all_single(self.reshape(-1), of, to, found).view(self.shape)


# Gradients need no names of their own.
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
