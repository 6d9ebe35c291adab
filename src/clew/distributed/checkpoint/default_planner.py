"""Options of saving and loading."""

from __future__ import annotations

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """Options of `save`; there is only one way to save here.

    Args:
        flatten_state_dict: must be True.
        flatten_sharded_tensors: must be True.

    Raises:
        NotImplementedError: if either is False.

    Example:
        >>> from clew.distributed.checkpoint import DefaultSavePlanner
        >>> import tempfile
        >>> from clew.distributed import checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     entries = checkpoint.save(
        ...         {"w": clew.ones(2)}, checkpoint_id=folder, planner=DefaultSavePlanner()
        ...     )
        >>> len(entries)
        1
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True
    ) -> None:
        if not (flatten_state_dict and flatten_sharded_tensors):
            raise NotImplementedError("DefaultSavePlanner: states are always flattened")


class DefaultLoadPlanner:
    """Options of `load`.

    Args:
        flatten_state_dict: must be True.
        flatten_sharded_tensors: must be True.
        allow_partial_load: leave unchanged what the checkpoint lacks, instead of raising.

    Raises:
        NotImplementedError: if either of the first two is False.

    Example:
        >>> from clew.distributed.checkpoint import DefaultLoadPlanner
        >>> import tempfile
        >>> from clew.distributed import checkpoint
        >>> state = {"w": clew.zeros(2), "new": clew.zeros(1)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = checkpoint.save({"w": clew.ones(2)}, checkpoint_id=folder)
        ...     planner = DefaultLoadPlanner(allow_partial_load=True)
        ...     checkpoint.load(state, checkpoint_id=folder, planner=planner)
        >>> state
        {'w': tensor([1., 1.]), 'new': tensor([0.])}
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        if not (flatten_state_dict and flatten_sharded_tensors):
            raise NotImplementedError("DefaultLoadPlanner: states are always flattened")
        self.allow_partial_load = allow_partial_load
