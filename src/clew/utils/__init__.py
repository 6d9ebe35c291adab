"""Data loading, checkpointing and other helpers around tensors and modules."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import benchmark as benchmark
    from . import checkpoint as checkpoint
    from . import data as data
    from . import dlpack as dlpack
    from . import flop_counter as flop_counter
    from . import hooks as hooks
    from . import model_zoo as model_zoo
    from . import tensorboard as tensorboard
    from . import weak as weak

_lazy = (
    "benchmark",
    "checkpoint",
    "data",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "tensorboard",
    "weak",
)

__all__ = list(_lazy)


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name in _lazy:
            return importlib.import_module(f"{__name__}.{name}")
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy} - {"Any", "TYPE_CHECKING", "annotations"})
