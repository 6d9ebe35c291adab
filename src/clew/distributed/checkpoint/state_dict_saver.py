"""The module that PyTorch has `save` in, and its older name."""

from __future__ import annotations

from typing import Any

from clew.distributed.checkpoint._saving import async_save, save

__all__ = ["async_save", "save", "save_state_dict"]


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Any:
    """The older name of `save`, which see.

    Args:
        state_dict: what to write.
        storage_writer: a FileSystemWriter.
        process_group: a group; that of all processes if None.
        coordinator_rank: must be 0.
        no_dist: this process saves by itself.
        planner: None, or a DefaultSavePlanner.

    Returns:
        What was written.

    Example:
        >>> from clew.distributed.checkpoint import save_state_dict
        >>> import tempfile
        >>> from clew.distributed import checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = checkpoint.FileSystemWriter(folder)
        ...     entries = save_state_dict({"w": clew.ones(2)}, writer)
        >>> len(entries)
        1
    """
    if coordinator_rank != 0:
        raise NotImplementedError("save_state_dict: coordinator_rank must be 0")
    return save(
        state_dict,
        storage_writer=storage_writer,
        process_group=process_group,
        no_dist=no_dist,
        planner=planner,
    )
