"""all_to_all: every process sends a part of its own to every process."""

from __future__ import annotations

from typing import Any

from clew._C import Tensor
from clew.distributed import _arrays
from clew.distributed._check import compare_parts
from clew.distributed._collectives import _check, _counted, _give
from clew.distributed._groups import _of
from clew.distributed._process_group import ProcessGroup
from clew.distributed._work import Work


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Sends item j of this process's list to process j, from every process at once.

    Args:
        output_tensor_list: filled: item i comes from process i.
        input_tensor_list: what is sent; the items may differ in size.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Raises:
        ValueError: if a list's length is not the group's size, or the dtypes differ.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> got = [clew.zeros(2)]
        >>> dist.all_to_all(got, [clew.ones(2)])
        >>> got
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return None
    targets = _counted("all_to_all", output_tensor_list, found)
    sources = _counted("all_to_all", input_tensor_list, found)
    source = _arrays.joined(sources)
    array, finish = _arrays.room(targets)
    counts, wanted = ([t.numel() for t in ts] for ts in (sources, targets))
    return _exchange(found, "all_to_all", source, counts, array, wanted, finish, targets, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Cuts a tensor along its first dim and sends part j to process j, from every process at once.

    Args:
        output: filled with the parts that came, by rank, joined along the first dim.
        input: what is sent.
        output_split_sizes: how many rows come from each process; equal parts if None.
        input_split_sizes: how many rows go to each process; equal parts if None.
        group: the group; the one of all processes if None.
        async_op: True returns a Work at once, whose `wait()` completes the operation.

    Returns:
        None, or a `Work` if `async_op` is True. A process outside the group does nothing.

    Raises:
        ValueError: if the rows cannot be split so, or the dtypes differ.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> got = clew.zeros(2)
        >>> dist.all_to_all_single(got, clew.tensor([5.0, 6.0]))
        >>> got
        tensor([5., 6.])
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("all_to_all_single", output, input)
    if found is None:
        return None

    def counts(tensor: Tensor, sizes: Any) -> list[int]:
        rows = tensor.shape[0]
        if not sizes:
            if rows % found.size():
                raise ValueError(
                    f"distributed.all_to_all_single: {rows} rows cannot be split evenly over "
                    f"{found.size()} processes; give split sizes"
                )
            sizes = [rows // found.size()] * found.size()
        if sum(sizes) != rows or len(sizes) != found.size():
            raise ValueError(
                f"distributed.all_to_all_single: split sizes must be {found.size()} numbers with "
                f"the sum {rows}; got {list(sizes)}"
            )
        one = tensor.numel() // rows if rows else 0
        return [n * one for n in sizes]

    sent, wanted = counts(input, input_split_sizes), counts(output, output_split_sizes)
    source = _arrays.reading(input)
    array, finish = _arrays.writing(output)
    name = "all_to_all_single"
    return _exchange(found, name, source, sent, array, wanted, finish, [output], async_op)


def _exchange(
    group: ProcessGroup,
    name: str,
    source: Any,
    counts: list[int],
    array: Any,
    wanted: list[int],
    finish: Any,
    result: Any,
    async_op: bool,
) -> Any:
    if source.dtype != array.dtype:
        raise ValueError(f"distributed.{name}: the tensors must have one dtype")
    places = _check(group, name, extra=str(result[0].dtype).split(".")[-1])
    if places is not None:
        compare_parts(group, name, counts, wanted, places)
    request = group._comm.alltoall(source, counts, array, wanted)
    return _give(Work(group, name, [request], finish, result, (source, array)), async_op)
