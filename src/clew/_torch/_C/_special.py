"""The functions of `torch.special` by PyTorch's inner names, `special_` before each."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from clew import special

    found = getattr(special, name.removeprefix("special_"), None)
    if not name.startswith("special_") or found is None:
        raise AttributeError(f"module 'torch._C._special' has no attribute {name!r}")
    return found
