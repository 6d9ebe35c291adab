"""Groups of processes: MPI's ranks (`clew launch -n 2 train.py`), or this process alone.

With one process, or without MPI, collectives have one part to combine, and mean what they mean in
PyTorch with one rank. The same code serves both; only the communicator differs.
"""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Any

from clew.distributed.distributed_c10d import (
    Backend,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    GroupMember,
    HashStore,
    P2POp,
    PrefixStore,
    ProcessGroup,
    QueueEmptyError,
    ReduceOp,
    Store,
    TCPStore,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    gather_object,
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
    irecv,
    is_initialized,
    isend,
    monitored_barrier,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    recv,
    recv_object_list,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_tensor,
    rendezvous,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    split_group,
)

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "split_group",
]

default_pg_timeout = datetime.timedelta(minutes=30)


def is_available() -> bool:
    """Whether there are process groups: yes.

    Example:
        >>> clew.distributed.is_available()
        True
    """
    return True


def is_gloo_available() -> bool:
    """Whether the backend "gloo" may be named: yes; it is MPI for several processes.

    Example:
        >>> clew.distributed.is_gloo_available()
        True
    """
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed, which groups of several processes need.

    Example:
        >>> clew.distributed.is_mpi_available() in (True, False)
        True
    """
    import importlib.util

    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Whether there is NCCL: no.

    Example:
        >>> clew.distributed.is_nccl_available()
        False
    """
    return False


def is_ucc_available() -> bool:
    """Whether there is UCC: no.

    Example:
        >>> clew.distributed.is_ucc_available()
        False
    """
    return False


def is_xccl_available() -> bool:
    """Whether there is XCCL: no.

    Example:
        >>> clew.distributed.is_xccl_available()
        False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend is there: "gloo" always, "mpi" where mpi4py is installed, no other.

    Args:
        backend: its name, in any case.

    Example:
        >>> clew.distributed.is_backend_available("gloo")
        True
        >>> clew.distributed.is_backend_available("ucc")
        False
    """
    return backend.lower() in ("gloo", "mpi") and (backend.lower() == "gloo" or is_mpi_available())


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process: whether TORCHELASTIC_RUN_ID is set.

    Example:
        >>> import os
        >>> clew.distributed.is_torchelastic_launched() == ("TORCHELASTIC_RUN_ID" in os.environ)
        True
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


if TYPE_CHECKING:
    from clew.distributed.device_mesh import DeviceMesh as DeviceMesh
    from clew.distributed.device_mesh import init_device_mesh as init_device_mesh
    from clew.nn.parallel.distributed import GradBucket as GradBucket

    from . import algorithms as algorithms
    from . import checkpoint as checkpoint
    from . import constants as constants
    from . import device_mesh as device_mesh
    from . import distributed_c10d as distributed_c10d
    from . import fsdp as fsdp
    from . import optim as optim
    from . import pipelining as pipelining
    from . import tensor as tensor

# These are imported at their first use.
_MODULES = (
    "algorithms",
    "checkpoint",
    "constants",
    "device_mesh",
    "distributed_c10d",
    "fsdp",
    "optim",
    "pipelining",
    "tensor",
)


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        import importlib

        if name in ("DeviceMesh", "init_device_mesh"):
            return getattr(importlib.import_module("clew.distributed.device_mesh"), name)
        if name == "GradBucket":
            return importlib.import_module("clew.nn.parallel.distributed").GradBucket
        if name in _MODULES:
            return importlib.import_module(f"clew.distributed.{name}")
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES} - {"Any", "TYPE_CHECKING", "annotations"})
