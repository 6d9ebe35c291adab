"""What looks at a CUDA device's memory raises."""

from __future__ import annotations

from clew._torch._more._raising import raising

_NAMES = "_dump_snapshot _record_memory_history _snapshot"
globals().update(raising("cuda.memory", _NAMES, AssertionError, "there is no CUDA device"))
