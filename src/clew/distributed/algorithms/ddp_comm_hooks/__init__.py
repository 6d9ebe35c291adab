"""Functions that reduce gradients for DistributedDataParallel."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from clew.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(Enum):
    """The hooks by name."""

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)
    POWER_SGD = partial(powerSGD_hook.powerSGD_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Has a model reduce its gradients by one of the hooks.

    Args:
        comm_hook_type: which.
        model: a DistributedDataParallel.
        state: the hook's first argument.
    """
    if comm_hook_type is DDPCommHookType.POWER_SGD and state is None:
        state = powerSGD_hook.PowerSGDState(None)
    model.register_comm_hook(state, comm_hook_type.value)
