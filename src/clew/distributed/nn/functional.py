"""Collectives that gradients go through; of one process they are identities."""

from __future__ import annotations

from typing import Any

from clew._C import Tensor
from clew.distributed.distributed_c10d import ReduceOp, _of, _one, _only

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


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The processes' tensors combined: the tensor."""
    _of(group)
    return tensor.clone()


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors."""
    _of(group)
    return (tensor.clone(),)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """One process's tensor."""
    _only("nn.broadcast", src)
    return all_reduce(tensor, group=group)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The processes' tensors combined, at one of them."""
    _only("nn.reduce", dst)
    return all_reduce(tensor, group=group)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors, at one of them."""
    _only("nn.gather", dst)
    return all_gather(tensor, group)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Tensor:
    """One of a process's tensors for each."""
    _only("nn.scatter", src)
    return all_reduce(_one("nn.scatter", tensors), group=group)


def reduce_scatter(
    output: Tensor, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The processes' lists combined; one item for each."""
    return all_reduce(_one("nn.reduce_scatter", input_list), group=group)


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None
) -> tuple[Tensor, ...]:
    """An item from each process for each."""
    return (all_reduce(_one("nn.all_to_all", input_tensor_list), group=group),)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
) -> Tensor:
    """A part from each process for each."""
    return all_reduce(input, group=group)
