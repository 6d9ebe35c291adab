"""Process groups by PyTorch's inner name."""

from __future__ import annotations

from clew._torch.absent import _SHARDED, absent
from clew.distributed.distributed_c10d import (
    FileStore,
    HashStore,
    PrefixStore,
    ProcessGroup,
    ReduceOp,
    Store,
    TCPStore,
    Work,
)

__all__ = [
    "FileStore",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
]

for _name in "FakeProcessGroup ProcessGroupGloo ProcessGroupNCCL Reducer Logger".split():
    globals()[_name] = absent("_C._distributed_c10d", _name, _SHARDED)
