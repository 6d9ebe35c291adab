"""How often processes speak with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.distributed import distributed_c10d as c10d
from clew.distributed._work import watching

__all__ = ["CommDebugMode"]

_COUNTED = (
    "all_reduce reduce broadcast all_gather all_gather_into_tensor gather scatter reduce_scatter "
    "reduce_scatter_tensor all_to_all all_to_all_single"
).split()


class _Counts(dict[Callable[..., Any], int]):
    def __missing__(self, key: Any) -> int:
        if any(key is getattr(c10d, name) for name in _COUNTED):
            return 0
        raise KeyError(
            f"CommDebugMode: counts are those of functions of torch.distributed: "
            f"{', '.join(_COUNTED)}; got {key!r}"
        )


class CommDebugMode:
    """A region in which collectives are counted, also those of distributed tensors' operations.

    A count is of this process and by the function of `clew.distributed` that does the work;
    PyTorch's is by its own operators, and of other moves where it has others. Collectives that
    compare ranks' calls are not counted, and neither are barriers and messages.

    Example:
        >>> import clew.distributed as dist
        >>> from clew.distributed.tensor import Shard, distribute_tensor, init_device_mesh
        >>> from clew.distributed.tensor.debug import CommDebugMode
        >>> x = distribute_tensor(clew.ones(2, 3), init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> mode = CommDebugMode()
        >>> with mode:
        ...     whole = x.full_tensor()
        >>> mode.get_total_counts(), mode.get_comm_counts()[dist.all_gather]
        (1, 1)
        >>> dist.destroy_process_group()
    """

    def __init__(self) -> None:
        self.comm_counts: dict[Callable[..., Any], int] = _Counts()

    def _count(self, name: str) -> None:
        if name in _COUNTED:
            self.comm_counts[getattr(c10d, name)] += 1

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        watching.append(self._count)
        return self

    def __exit__(self, *args: Any) -> None:
        watching.remove(self._count)

    def get_total_counts(self) -> int:
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Callable[..., Any], int]:
        """How many there were of each function."""
        return self.comm_counts

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"
