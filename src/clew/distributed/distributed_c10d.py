"""Groups and collectives, by PyTorch's name for the module."""

from __future__ import annotations

from typing import Any

from clew.distributed._all_to_all import all_to_all, all_to_all_single
from clew.distributed._collectives import (
    _all_gather_base,
    _reduce_scatter_base,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from clew.distributed._groups import (
    GroupMember,
    _get_default_group,
    _get_default_store,
    _of,
    _state,
    abort_process_group,
    default_pg_nccl_timeout,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
)
from clew.distributed._messages import (
    P2POp,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    rendezvous,
    scatter_object_list,
    send,
    send_object_list,
)
from clew.distributed._new_groups import (
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from clew.distributed._process_group import Backend, ProcessGroup, ReduceOp, reduce_op
from clew.distributed._stores import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)
from clew.distributed._work import Work

__all__ = [
    "Backend", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
    "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "QueueEmptyError",
    "ReduceOp", "Store", "TCPStore", "Work", "_all_gather_base", "_get_default_group",
    "_get_default_store", "_of", "_reduce_scatter_base", "abort_process_group", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "default_pg_nccl_timeout", "default_pg_timeout", "destroy_process_group", "gather",
    "gather_object", "get_backend", "get_backend_config", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_initialized", "isend", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce",
    "reduce_op", "reduce_scatter", "reduce_scatter_tensor", "rendezvous", "scatter",
    "scatter_object_list", "send", "send_object_list", "split_group",
]  # fmt: skip


def _new_process_group_helper(*args: Any, **kwargs: Any) -> tuple[Any, None]:
    return new_group(), None


class _World:
    """What there is: the default group and the others."""

    @property
    def default_pg(self) -> ProcessGroup | None:
        return _state.default

    @property
    def pg_map(self) -> dict[Any, Any]:
        return {g: (g._backend, None) for g in _state.groups}

    @property
    def pg_group_ranks(self) -> dict[Any, dict[int, int]]:
        return {g: {r: i for i, r in enumerate(g.ranks)} for g in _state.groups}


_world = _World()
