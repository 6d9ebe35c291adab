"""Names for checkpoints that keep the results of some operations: none does here."""

from __future__ import annotations

import enum
from typing import Any

from clew._torch.absent import absent

_WHY = "a checkpoint computes all of its function again; put it around the parts that are not kept"
create_selective_checkpoint_contexts = absent(
    "utils.checkpoint", "create_selective_checkpoint_contexts", _WHY
)


class CheckpointPolicy(enum.Enum):
    """What a rule says of an operation's results."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a rule is told.

    Args:
        is_recompute: whether the function runs again.
        op_output: the results.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output
