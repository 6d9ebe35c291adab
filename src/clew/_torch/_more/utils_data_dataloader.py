"""What loaders do with data pipes in worker processes."""

from __future__ import annotations

from collections.abc import Callable

from clew.utils.data import get_worker_info


def _sharding_worker_init_fn(
    worker_init_fn: Callable[[int], None] | None, world_size: int, rank_id: int, worker_id: int
) -> None:
    """Leaves one share of a data pipe to a worker: of those of all ranks' workers.

    Args:
        worker_init_fn: what is called afterwards.
        world_size: how many ranks there are.
        rank_id: which of them this is.
        worker_id: which of its workers this is.
    """
    info = get_worker_info()
    if info is None:
        raise RuntimeError("_sharding_worker_init_fn: this process is no worker of a DataLoader")
    info.dataset._pipe_share(info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)
