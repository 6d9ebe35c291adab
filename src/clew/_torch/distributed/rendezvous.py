"""How processes find each other: MPI starts them together."""

from __future__ import annotations

import sys
import types
from typing import Any

from clew._torch.absent import absent
from clew.distributed import rendezvous as rendezvous

_STARTED = "ranks find each other through MPI; start them with `clew launch` or mpiexec"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent("distributed.rendezvous", name, _STARTED)


class _Callable(types.ModuleType):
    """The module, which stands at the place of the function of its name once it is imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return rendezvous(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
