"""The older name of ao.quantization."""

from __future__ import annotations

from typing import Any

from clew._torch._more import find
from clew.ao import quantization
from clew.ao.quantization import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and name in vars(quantization):
        return vars(quantization)[name]
    return find("ao.quantization", name)
