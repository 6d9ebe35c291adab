"""Neural networks: modules, their functions, initialisation and utilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import functional as functional
from . import init as init
from . import modules as modules
from . import parameter as parameter
from . import utils as utils
from .modules import *  # noqa: F403
from .modules.module import Module as Module
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

if TYPE_CHECKING:
    from . import attention as attention
    from . import common_types as common_types
    from . import grad as grad
    from . import parallel as parallel
    from .parallel import DataParallel as DataParallel

# These are imported at their first use.
_LATER = ("attention", "grad", "parallel", "common_types")


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _LATER:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "DataParallel":
            return importlib.import_module(f"{__name__}.parallel").DataParallel
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "DataParallel"} - {"Any", "TYPE_CHECKING", "annotations"})
