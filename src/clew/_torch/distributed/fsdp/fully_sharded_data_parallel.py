"""Models whose parameters are spread over processes, by another module's name."""

from __future__ import annotations

from clew._torch.absent import _FULLY, absent
from clew._torch.distributed.fsdp.api import *  # noqa: F403

for _name in "FullyShardedDataParallel OptimStateKeyType _get_param_to_fqn".split():
    globals()[_name] = absent("distributed.fsdp", _name, _FULLY)
