"""Models whose parameters are spread over processes: the names, and options that are plain data."""

from __future__ import annotations

from clew._torch.absent import _SHARDED, absent
from clew._torch.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]

for _name in (
    "CPUOffloadPolicy FSDPModule FlatParameter FullyShardedDataParallel MixedPrecisionPolicy "
    "OffloadPolicy OptimStateKeyType UnshardHandle fully_shard register_fsdp_forward_method"
).split():
    globals()[_name] = absent("distributed.fsdp", _name, _SHARDED)
