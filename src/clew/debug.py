"""Finding out what went wrong: where a NaN was born, what a tensor holds, what is missing.

Each part loads when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew._insight.debug.compare import Difference as Difference
    from clew._insight.debug.compare import RecordedRun as RecordedRun
    from clew._insight.debug.compare import compare as compare
    from clew._insight.debug.compare import record_run as record_run
    from clew._insight.debug.doctor import Finding as Finding
    from clew._insight.debug.doctor import doctor as doctor
    from clew._insight.debug.gradients import check_gradients as check_gradients
    from clew._insight.debug.leaks import Growth as Growth
    from clew._insight.debug.leaks import leaks as leaks
    from clew._insight.debug.memory import Holding as Holding
    from clew._insight.debug.memory import MemoryTable as MemoryTable
    from clew._insight.debug.memory import memory as memory
    from clew._insight.debug.recorder import record as record
    from clew._insight.debug.replaying import replay as replay
    from clew._insight.debug.summary import Summary as Summary
    from clew._insight.debug.summary import summary as summary
    from clew._insight.debug.watch import NonFinite as NonFinite
    from clew._insight.debug.watch import NonFiniteError as NonFiniteError
    from clew._insight.debug.watch import nan_watch as nan_watch

# Public name -> the module that holds it.
_PARTS = {
    "Difference": "compare",
    "Finding": "doctor",
    "Growth": "leaks",
    "Holding": "memory",
    "MemoryTable": "memory",
    "NonFinite": "watch",
    "NonFiniteError": "watch",
    "RecordedRun": "compare",
    "Summary": "summary",
    "check_gradients": "gradients",
    "compare": "compare",
    "doctor": "doctor",
    "leaks": "leaks",
    "memory": "memory",
    "nan_watch": "watch",
    "record": "recorder",
    "record_run": "compare",
    "replay": "replaying",
    "summary": "summary",
}

__all__ = sorted(_PARTS)


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _PARTS:
            return getattr(importlib.import_module(f"clew._insight.debug.{_PARTS[name]}"), name)
        from clew._namespace import missing_name

        raise missing_name(__name__, name, dict.fromkeys(_PARTS))


def __dir__() -> list[str]:
    return __all__
