"""Whether a profiler is running."""

from __future__ import annotations

from clew import _C
from clew.autograd.function import NestedIOFunction as NestedIOFunction
from clew.autograd.profiler import DeviceType as DeviceType


def _profiler_enabled() -> bool:
    """Whether a profiler is running."""
    return bool(_C._trace_running())


def _disable_profiler() -> None:
    """Ends what a profiler is recording, and drops it."""
    if not _C._trace_running():
        raise RuntimeError("_disable_profiler: no profiler is running")
    _C._trace_abandon()


def _is_checkpoint_valid() -> bool:
    """Whether a backward that runs now may run another one; see the engine's."""
    from clew.autograd._ends import engine

    return engine.is_checkpoint_valid()
