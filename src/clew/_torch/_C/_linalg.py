"""The functions of `torch.linalg` by PyTorch's inner names, `linalg_` before each."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from clew import linalg

    found = getattr(linalg, name.removeprefix("linalg_"), None)
    if not name.startswith("linalg_") or found is None:
        raise AttributeError(f"module 'torch._C._linalg' has no attribute {name!r}")
    return found
