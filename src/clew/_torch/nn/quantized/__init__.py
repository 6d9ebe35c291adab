"""The older name of ao.nn.quantized."""

from __future__ import annotations

from typing import Any

from clew._torch._more import find
from clew._torch.nn.quantized import dynamic as dynamic


def __getattr__(name: str) -> Any:
    return find("ao.nn.quantized", name)
