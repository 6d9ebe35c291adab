"""Data loading, checkpointing and other helpers around tensors and modules."""

from __future__ import annotations

import importlib
from typing import Any

_lazy = (
    "benchmark",
    "checkpoint",
    "data",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "tensorboard",
)

__all__ = list(_lazy)


def __getattr__(name: str) -> Any:
    if name in _lazy:
        return importlib.import_module(f"{__name__}.{name}")
    from clew._namespace import missing_name

    raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy} - {"annotations"})
