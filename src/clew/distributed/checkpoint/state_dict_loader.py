"""The module that PyTorch has `load` in, and its older names."""

from __future__ import annotations

from typing import Any

from clew.distributed.checkpoint._saving import load

__all__ = ["load", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """The older name of `load`, which see.

    Args:
        state_dict: is filled.
        storage_reader: a FileSystemReader.
        process_group: a group; that of all processes if None.
        coordinator_rank: must be 0.
        no_dist: this process loads by itself.
        planner: None, or a DefaultLoadPlanner.

    Example:
        >>> from clew.distributed.checkpoint import load_state_dict
        >>> import tempfile
        >>> from clew.distributed import checkpoint
        >>> state = {"w": clew.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = checkpoint.save({"w": clew.ones(2)}, checkpoint_id=folder)
        ...     load_state_dict(state, checkpoint.FileSystemReader(folder))
        >>> state
        {'w': tensor([1., 1.])}
    """
    if coordinator_rank != 0:
        raise NotImplementedError("load_state_dict: coordinator_rank must be 0")
    load(
        state_dict,
        storage_reader=storage_reader,
        process_group=process_group,
        no_dist=no_dist,
        planner=planner,
    )


_load_state_dict = load_state_dict
