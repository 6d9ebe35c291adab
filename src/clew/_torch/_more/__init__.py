"""Names that PyTorch's modules have beyond those of clew's modules of the same name.

`torch.x.y.name` is looked for in the module `x_y` of this package when `clew.x.y` lacks it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import Any


@functools.cache
def _home(module: str) -> ModuleType | None:
    name = f"{__name__}.{module.replace('.', '_')}"
    return None if importlib.util.find_spec(name) is None else importlib.import_module(name)


def find(module: str, name: str) -> Any:
    """The object that `torch.<module>.<name>` is.

    Raises:
        AttributeError: there is none.
    """
    home = _home(module)
    if hasattr(home, name):
        return getattr(home, name)
    from clew._torch._more._imported import find_imported

    return find_imported(module, name)
