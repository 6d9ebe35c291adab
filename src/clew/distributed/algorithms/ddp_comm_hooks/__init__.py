"""Functions that reduce gradients for DistributedDataParallel."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from clew.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


# From 3.13 on a function's partial application in a class is a method, if nothing says otherwise.
_member: Any = getattr(enum, "member", lambda value: value)  # from 3.11 on


class DDPCommHookType(enum.Enum):
    """The hooks by name."""

    ALLREDUCE = _member(partial(default_hooks.allreduce_hook))
    FP16_COMPRESS = _member(partial(default_hooks.fp16_compress_hook))
    BF16_COMPRESS = _member(partial(default_hooks.bf16_compress_hook))
    POWER_SGD = _member(partial(powerSGD_hook.powerSGD_hook))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Makes a model reduce its gradients by one of the hooks that this package names.

    Args:
        comm_hook_type: which hook.
        model: a DistributedDataParallel; changed.
        state: the hook's first argument: the group, or a PowerSGDState for POWER_SGD, which gets
            one with the defaults if None.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
        >>> from clew.distributed.algorithms.ddp_comm_hooks import register_ddp_comm_hook
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model)
        >>> model(clew.ones(1, 2)).sum().backward()
        >>> model.module.weight.grad
        tensor([[1., 1.]])
        >>> dist.destroy_process_group()
    """
    if comm_hook_type is DDPCommHookType.POWER_SGD and state is None:
        state = powerSGD_hook.PowerSGDState(None)
    model.register_comm_hook(state, comm_hook_type.value)
