"""What programs ask of a group."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from enum import Enum
from typing import Any, NewType

from clew.distributed import (
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    reduce_scatter_tensor,
)
from clew.distributed._groups import _state

GroupName = NewType("GroupName", str)
all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor
_BACKENDS = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "hpu": "hccl"}


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is outside of a group."""
    from clew.distributed import GroupMember

    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def get_default_backend_for_device(device: Any) -> str:
    """The backend that programs name for a device, such as "gloo" for the CPU.

    Args:
        device: a device, or its name.

    Raises:
        ValueError: for other devices.
    """
    kind = device.split(":")[0] if isinstance(device, str) else getattr(device, "type", None)
    if kind not in _BACKENDS:
        raise ValueError(f"get_default_backend_for_device: no backend is known for {device!r}")
    return _BACKENDS[kind]


def get_pg_count() -> int:
    """How many groups there are."""
    return len(_state.groups)


def supports_complex(reduceOp: Any) -> bool:
    """Whether an operation combines complex numbers.

    Args:
        reduceOp: a ReduceOp.
    """
    return ReduceOp(reduceOp) in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


class _PremulSum(int):
    """PREMUL_SUM with its factor."""

    factor: Any


def _make_nccl_premul_sum(factor: Any) -> _PremulSum:
    """The operation that multiplies what each process gives, and adds.

    Args:
        factor: a number, or a tensor of one.
    """
    made = _PremulSum(ReduceOp.PREMUL_SUM)
    made.factor = factor
    return made


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """`all_reduce` of each tensor of a list.

    Args:
        tensors: the tensors.
        op: as of `all_reduce`.
        group: as of `all_reduce`.
        async_op: True returns a Work for all.
    """
    return _together([all_reduce(t, op, group, True) for t in tensors], async_op)


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any:
    """`all_gather` of each tensor of a list.

    Args:
        output_tensor_lists: for each process as many tensors as the list has.
        input_tensor_list: the tensors.
        group: as of `all_gather`.
        async_op: True returns a Work for all.
    """
    works = [
        all_gather([row[i] for row in output_tensor_lists], t, group, True)
        for i, t in enumerate(input_tensor_list)
    ]
    return _together(works, async_op)


def _together(works: list[Any], async_op: bool) -> Any:
    """One Work of several; None where they are waited for, or the process is not in the group."""
    if any(work is None for work in works):
        return None
    made = _All(works)
    if async_op:
        return made
    made.wait()
    return None


class _All(Work):
    """Several operations as one."""

    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def wait(self, timeout: Any = None) -> bool:
        """Waits for each."""
        return all(work.wait(timeout) for work in self.works)

    def is_completed(self) -> bool:
        """Whether all are complete."""
        return all(work.is_completed() for work in self.works)

    def result(self) -> Any:
        """The tensors that they fill."""
        return [t for work in self.works for t in work.result()]


@contextlib.contextmanager
def _coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool | None = False
) -> Iterator[_All]:
    """A block whose operations would be sent as one; here each is sent when it is called."""
    yield _All([])


class DebugLevel(Enum):
    """How much is compared and told: what TORCH_DISTRIBUTED_DEBUG says."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: list[DebugLevel] = []


def get_debug_level() -> DebugLevel:
    """The level; `clew launch --check` compares what ranks call, whatever it is."""
    if not _level:
        set_debug_level_from_env()
    return _level[0]


def set_debug_level(arg: DebugLevel) -> None:
    """Sets the level.

    Args:
        arg: a DebugLevel.
    """
    _level[:] = [DebugLevel(arg)]


def set_debug_level_from_env() -> None:
    """Sets the level that TORCH_DISTRIBUTED_DEBUG names; OFF where it names none."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() or "OFF"
    if name not in DebugLevel.__members__:
        raise RuntimeError(
            f"TORCH_DISTRIBUTED_DEBUG must be one of {list(DebugLevel.__members__)}; got {name!r}"
        )
    set_debug_level(DebugLevel[name])


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """A block whose work a profiler shows under a name.

    Args:
        name: the name.
    """
    from clew.profiler import record_function

    with record_function(name):
        yield


_skipped: dict[tuple[str, int], int] = {}


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: Any = None) -> None:
    """Stops one rank in Python's debugger; the others wait until it goes on.

    Args:
        rank: which one.
        skip: how many calls at this line pass first.
        timeout_s: accepted; `monitored_barrier` and the launcher have time limits.
    """
    import pdb
    import sys

    from clew.distributed import barrier, get_rank

    caller = sys._getframe(1)
    place = (caller.f_code.co_filename, caller.f_lineno)
    _skipped[place] = _skipped.get(place, 0) + 1
    if _skipped[place] <= skip:
        return
    if get_rank() == rank:
        pdb.Pdb().set_trace(caller)
    barrier()
