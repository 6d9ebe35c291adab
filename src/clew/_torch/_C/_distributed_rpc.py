"""Remote references, which programs ask `isinstance` for: there are none."""

from __future__ import annotations

from clew._torch.absent import _SHARDED, absent

PyRRef = absent("_C._distributed_rpc", "PyRRef", _SHARDED)
