"""What only PyTorch's programs look for: names that clew itself has no use for.

`torch.x` is `clew._torch.x` where that exists, else `clew.x`. Nothing here is loaded with clew.
"""

from __future__ import annotations

import importlib
from typing import Any

# Names of the module `torch` and the modules of this package that hold them.
NAMES: dict[str, str] = {}


def find(name: str) -> Any:
    """The object that `torch.<name>` is."""
    return getattr(importlib.import_module(NAMES[name]), name)
