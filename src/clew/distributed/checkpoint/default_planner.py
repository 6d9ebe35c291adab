"""Options of saving and loading."""

from __future__ import annotations

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """The way that `save` takes.

    Args:
        flatten_state_dict: must be True.
        flatten_sharded_tensors: must be True.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True
    ) -> None:
        if not (flatten_state_dict and flatten_sharded_tensors):
            raise NotImplementedError("DefaultSavePlanner: states are always flattened")


class DefaultLoadPlanner:
    """The way that `load` takes.

    Args:
        flatten_state_dict: must be True.
        flatten_sharded_tensors: must be True.
        allow_partial_load: leave what the checkpoint lacks as it is.
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
